import assert from 'node:assert/strict'
import { once } from 'node:events'
import { getPriority } from 'node:os'
import { it } from 'node:test'
import { Worker } from 'node:worker_threads'

const isLinux = process.platform === 'linux'

it('a thread with a lower priority leaves the priority of its process unchanged', { skip: !isLinux }, async () => {
  const before = getPriority()
  const code = `
    import { readlinkSync } from 'node:fs'
    import { getPriority } from 'node:os'
    import { parentPort } from 'node:worker_threads'
    import { lowerThreadPriority } from '${new URL('./thread-priority.ts', import.meta.url)}'
    lowerThreadPriority()
    parentPort.postMessage(getPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1))))`
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`))
  const [priority] = await once(worker, 'message')
  assert.deepEqual([priority, getPriority()], [Math.min(before + 5, 19), before])
})
