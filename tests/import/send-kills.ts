// Sends a job in a process that is killed repeatedly, and compares what the service received with the job.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { JobFolder } from '#importer/job/job-folder.ts'
import { readCheckpoint, sumSendCounts } from '#importer/send/checkpoint.ts'
import type { BatchStandIn } from '../support/batch-stand-in.ts'
import { collectText } from '../support/child-processes.ts'
import { eventsOf, type MemoryJobOptions, memoryStagedJob } from '../support/memory-staged-job.ts'
import { expectedKeys, storedKeys } from '../support/sending.ts'

/** When a process is killed: at a step, or some milliseconds after its start. */
export type Kill = { readonly step: string; readonly count: number } | { readonly afterMs: number }

/** @returns whether the process finished before it was killed. */
export async function sendAndKill(folder: string, target: string, job: MemoryJobOptions, kill: Kill | null) {
  const child = spawn(
    process.execPath,
    [
      ...['--disable-warning=ExperimentalWarning', new URL('send-child.ts', import.meta.url).pathname],
      ...[folder, target, JSON.stringify(job)],
      ...(kill !== null && 'step' in kill ? [kill.step, String(kill.count)] : []),
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const errors = collectText(child.stderr)
  const timer = kill !== null && 'afterMs' in kill ? setTimeout(() => child.kill('SIGKILL'), kill.afterMs) : undefined
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  clearTimeout(timer)
  assert.ok(code === 0 || signal === 'SIGKILL', errors())
  return code === 0
}

export async function assertExactlyOnce(folder: string, standIn: BatchStandIn, options: MemoryJobOptions) {
  const job = memoryStagedJob(options)
  assert.deepEqual(storedKeys(standIn.taken), await expectedKeys(job))
  // The checkpoint counts each event once, however often its batch was sent.
  const { parts, isSent } = readCheckpoint(new JobFolder(folder))!
  const counts = sumSendCounts(parts.map(each => each.counts))
  assert.ok(isSent)
  assert.equal(counts.sent, (await eventsOf(job)).length)
  assert.equal(
    counts.read,
    job.parts.reduce((sum, { records }) => sum + records, 0),
  )
}
