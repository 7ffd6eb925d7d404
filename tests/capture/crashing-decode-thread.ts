// The real decode thread, except that a body naming the event "crash" ends it.

import { parentPort } from 'node:worker_threads'
import type { DecodeJob } from '#wire/threads/decode-thread.ts'

parentPort!.on('message', (job: DecodeJob) => {
  const bytes = job.kind === 'flags' ? job.body.bytes : job.input.body
  if (Buffer.from(bytes.slice(0, 200)).toString().includes('"crash"')) process.exit(1)
})
await import('#wire/threads/decode-thread.ts')
