// Threads for work that would block the event loop. A type maps each kind of job to its input and outcome, so that both
// keep their types from the caller to the thread and back.

/** Maps a kind of job to the thread's input and outcome. Both must survive a structured clone. */
export type JobTable<Jobs> = { readonly [Kind in keyof Jobs]: readonly [job: unknown, outcome: unknown] }

/** A job of any kind in the table, with its kind. */
export type AnyJob<Jobs extends JobTable<Jobs>> = {
  [Kind in keyof Jobs]: { readonly kind: Kind; readonly job: Jobs[Kind][0] }
}[keyof Jobs]

export interface ThreadPool<Jobs extends JobTable<Jobs>> {
  /**
   * Runs a job in a thread.
   * @param bytes how much of the queue's size limit the job uses while it waits.
   * @param buffers are transferred to the thread with the job, so the caller can no longer use them.
   * @param gone aborted when the client no longer waits: a job that has no thread yet is then dropped.
   * @throws PortError `unavailable` when the job's queue is full, the job was dropped, its thread died or the pool is
   *   closing; `timeout` when the job exceeded the time limit. In each case the job has no outcome.
   */
  run<Kind extends keyof Jobs>(
    kind: Kind,
    job: Jobs[Kind][0],
    bytes: number,
    buffers: ArrayBuffer[],
    gone?: AbortSignal,
  ): Promise<Jobs[Kind][1]>
}
