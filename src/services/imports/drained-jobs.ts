// Determines when every event accepted for a closed import job has been processed.

import type { LogStream } from '#core/events/log-stream.ts'
import type { ImportJob } from '#core/imports/import-job.ts'
import { findStreamProgress, type ProgressStore } from '../progress/find-progress.ts'
import type { ImportWorkDeps } from './job-batch.ts'

/** How long a front may still accept events for a job after its state has changed: fronts query it once a second. */
const closingMs = 3_000

interface DrainDeps extends Pick<ImportWorkDeps, 'clock' | 'log'> {
  readonly jobs: ProgressStore & Pick<ImportWorkDeps['jobs'], 'updateImportJob'>
}

type ClosedJob = Pick<ImportJob, 'id' | 'projectId' | 'state' | 'step' | 'updatedAtMs'>

interface Ends {
  /** When the job was closed, epoch ms. Closing it again invalidates the ends of the streams. */
  readonly updatedAtMs: number
  /** Where each stream ended when all fronts had stopped accepting events for the job. */
  readonly streams: readonly { readonly stream: LogStream; readonly endOffset: number }[]
}

export type DrainedJobTracker = ReturnType<typeof createDrainedJobTracker>

export function createDrainedJobTracker({ jobs, clock, log }: DrainDeps) {
  const known = new Map<number, Ends>()

  async function findEndOffsets({ id, updatedAtMs }: ClosedJob): Promise<Ends> {
    const found = known.get(id)
    if (found?.updatedAtMs === updatedAtMs) return found
    const streams: Ends['streams'][number][] = []
    for (const { stream } of await log.listStreams()) {
      const { doneOffset } = await findStreamProgress(jobs, stream)
      streams.push({ stream, endOffset: (await log.readStreamStatus(stream, doneOffset)).endOffset })
    }
    const ends = { updatedAtMs, streams }
    known.set(id, ends)
    return ends
  }

  /**
   * @returns whether every record that a front may have accepted for the job is processed, in all streams: the job's
   * exceptions and AI events are in the streams of live events. Record times are ignored, since clocks may be adjusted.
   */
  async function isDrained(job: ClosedJob): Promise<boolean> {
    const { id, projectId, state, step, updatedAtMs } = job
    const sinceMs = clock.nowMs() - updatedAtMs
    // The clock was set back, so the elapsed time is unknown: start waiting again.
    if (sinceMs < 0) await jobs.updateImportJob(id, { updatedAtMs: clock.nowMs() }, { states: [state], step }, null)
    if (sinceMs < closingMs) return false
    for (const { stream, endOffset } of (await findEndOffsets(job)).streams) {
      const { offset, doneOffset, deferral } = await findStreamProgress(jobs, stream)
      const isDeferred = deferral?.projects.some(each => each.projectId === projectId) === true
      // Deferred records of other projects do not matter.
      if ((isDeferred ? doneOffset : offset) < endOffset) return false
    }
    return true
  }

  return {
    isDrained,
    /** Forgets the awaited offsets of all jobs except these. */
    keepOnly(jobIds: readonly number[]): void {
      const kept = new Set(jobIds)
      for (const id of known.keys()) if (!kept.has(id)) known.delete(id)
    },
  }
}
