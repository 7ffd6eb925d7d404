// When a closed import job has got everything that was taken for it.

import type { LogStream } from '#core/events/log-stream.ts'
import type { ImportJob } from '#core/imports/import-job.ts'
import { findProgress, type ProgressStore } from '../progress/find-progress.ts'
import type { ImportWorkDeps } from './job-batch.ts'

/** How long a front may still take events for a job after its state has changed: it asks once a second. */
const closingMs = 3_000

interface DrainDeps extends Pick<ImportWorkDeps, 'clock' | 'log'> {
  readonly jobs: ProgressStore & Pick<ImportWorkDeps['jobs'], 'updateImportJob'>
}

type ClosedJob = Pick<ImportJob, 'id' | 'projectId' | 'state' | 'step' | 'updatedAtMs'>

interface Ends {
  /** When the job was closed, epoch ms: a job that is closed again has other ends. */
  readonly updatedAtMs: number
  /** Where each stream ended when no front took events for the job any more. */
  readonly streams: readonly { readonly stream: LogStream; readonly endOffset: number }[]
}

export interface Drain {
  /**
   * @returns whether every record that a front may have taken for the job is processed. Its exceptions and AI events go
   *   with the live ones. The times of records do not count, since a clock may be set.
   */
  isDrained(job: ClosedJob): Promise<boolean>
  /** Forgets what is known of all other jobs. */
  keepOnly(jobIds: readonly number[]): void
}

export function createDrain({ jobs, clock, log }: DrainDeps): Drain {
  const known = new Map<number, Ends>()

  async function endsOf({ id, updatedAtMs }: ClosedJob): Promise<Ends> {
    const found = known.get(id)
    if (found?.updatedAtMs === updatedAtMs) return found
    const streams: Ends['streams'][number][] = []
    for (const { stream } of await log.streams()) {
      const { doneOffset } = await findProgress(jobs, stream)
      streams.push({ stream, endOffset: (await log.status(stream, doneOffset)).endOffset })
    }
    const ends = { updatedAtMs, streams }
    known.set(id, ends)
    return ends
  }

  async function isDrained(job: ClosedJob): Promise<boolean> {
    const { id, projectId, state, step, updatedAtMs } = job
    const sinceMs = clock.nowMs() - updatedAtMs
    // A clock that was set back tells nothing of how long it is, so the closing begins anew.
    if (sinceMs < 0) await jobs.updateImportJob(id, { updatedAtMs: clock.nowMs() }, { states: [state], step })
    if (sinceMs < closingMs) return false
    for (const { stream, endOffset } of (await endsOf(job)).streams) {
      const { offset, doneOffset, deferral } = await findProgress(jobs, stream)
      const isDeferred = deferral?.projects.some(each => each.projectId === projectId) === true
      // What waits of other projects' records is nothing to this one's.
      if ((isDeferred ? doneOffset : offset) < endOffset) return false
    }
    return true
  }

  return {
    isDrained,
    keepOnly(jobIds) {
      const kept = new Set(jobIds)
      for (const id of known.keys()) if (!kept.has(id)) known.delete(id)
    },
  }
}
