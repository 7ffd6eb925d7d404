// The real decode thread, except that a body with an event named "crash" ends it.

import { parentPort } from 'node:worker_threads'
import type { AnyJob } from '#ports/thread-pool.ts'
import type { DecodeJobs } from '#wire/threads/decode-jobs.ts'

parentPort!.on('message', ({ kind, job }: AnyJob<DecodeJobs>) => {
  const bytes = kind === 'flags' ? job.body.bytes : job.input.body
  if (Buffer.from(bytes.slice(0, 200)).toString().includes('"crash"')) process.exit(1)
})
await import('#compose/front/decode-thread.ts')
