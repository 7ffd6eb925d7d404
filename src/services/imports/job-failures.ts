// Tracks jobs that fail: when to try each again, with growing waits, and, in the state store for the private API, since when
// and why each fails.

import type { ImportJob } from '#core/imports/import-job.ts'
import { formatStoreFailureCode, internalError } from '#core/imports/job-failure.ts'
import { PortError } from '#ports/port-error.ts'
import { computeStoreBackOffMs } from '../shared/wait-or-stop.ts'
import type { ImportWorkDeps } from './job-batch.ts'

/** @param monotonicNowMs replaced in tests. */
export function createJobFailureTracker(
  { jobs, clock, logger, random }: Pick<ImportWorkDeps, 'jobs' | 'clock' | 'logger' | 'random'>,
  monotonicNowMs: () => number = () => performance.now(),
) {
  const waits = new Map<number, { readonly attempt: number; readonly untilMs: number }>()
  return {
    /** Whether the wait after the last failure has ended. */
    isDue: (jobId: number) => (waits.get(jobId)?.untilMs ?? 0) <= monotonicNowMs(),

    /** @throws PortError of the state */
    async note(job: ImportJob, cause: unknown): Promise<void> {
      const attempt = (waits.get(job.id)?.attempt ?? -1) + 1
      waits.set(job.id, { attempt, untilMs: monotonicNowMs() + computeStoreBackOffMs(attempt, random()) })
      const code = cause instanceof PortError ? formatStoreFailureCode(cause.port, cause.code) : internalError
      if (job.failure?.code === code) return
      logger.warn(
        { err: cause, importJob: job.id, project: job.projectId, code },
        'publishing or discarding an import job failed; retrying',
      )
      await jobs.recordImportFailure(job.id, { code, sinceMs: job.failure?.sinceMs ?? clock.nowMs() })
    },

    /** Call when the job makes progress again. @throws PortError of the state */
    async forget(job: ImportJob): Promise<void> {
      waits.delete(job.id)
      if (job.failure !== null) await jobs.recordImportFailure(job.id, null)
    },
  }
}
