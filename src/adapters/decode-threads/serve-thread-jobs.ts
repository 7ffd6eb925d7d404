// The thread's side of `decode-threads.ts`: runs one job after another and posts the outcome of each job.

import { parentPort } from 'node:worker_threads'
import type { JobTable } from '#ports/thread-pool.ts'

/** The outcome of a job. Buffers in `moved` are transferred to the caller instead of being copied. */
export interface JobAnswer<Outcome> {
  readonly outcome: Outcome
  readonly moved?: ArrayBuffer[]
}

/** A function for each kind of job. If a function throws, the thread ends and the job fails as `unavailable`. */
export type JobHandlers<Jobs extends JobTable<Jobs>> = {
  readonly [Kind in keyof Jobs]: (job: Jobs[Kind][0]) => JobAnswer<Jobs[Kind][1]>
}

/** Called once, by the module that a pool's threads run. */
export function serveThreadJobs<Jobs extends JobTable<Jobs>>(handlers: JobHandlers<Jobs>): void {
  const port = parentPort!
  port.on('message', <Kind extends keyof Jobs>({ kind, job }: { kind: Kind; job: Jobs[Kind][0] }) => {
    const { outcome, moved } = handlers[kind](job)
    port.postMessage(outcome, moved ?? [])
  })
}
