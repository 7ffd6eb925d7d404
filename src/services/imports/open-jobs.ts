// Which import jobs a front takes events for. Answers are at most a second old: publishing waits for longer than that
// before it takes a job's events as complete.

import { type ImportJob, isOpen } from '#core/imports/import-job.ts'
import type { Clock } from '#ports/clock.ts'
import type { ImportJobStore } from '#ports/state/import-job-store.ts'

export type JobAnswer = 'open' | 'closed' | 'unknown'

export interface OpenJobs {
  /** @throws PortError */
  check(projectId: number, importJobId: number): Promise<JobAnswer>
}

const keptMs = 1_000
/** Importers run one job or a few at once. */
const keptCountMax = 1_000

export function createOpenJobs(options: {
  readonly jobs: Pick<ImportJobStore, 'findImportJob'>
  readonly clock: Clock
}): OpenJobs {
  const { jobs, clock } = options
  const kept = new Map<number, { readonly askedAtMs: number; readonly found: Promise<ImportJob | null> }>()

  function find(id: number): Promise<ImportJob | null> {
    const nowMs = clock.nowMs()
    const known = kept.get(id)
    if (known !== undefined && nowMs - known.askedAtMs >= 0 && nowMs - known.askedAtMs < keptMs) return known.found
    if (kept.size >= keptCountMax) kept.clear()
    const found = jobs.findImportJob(id)
    kept.set(id, { askedAtMs: nowMs, found })
    found.catch(() => kept.delete(id))
    return found
  }

  return {
    check: async (projectId, importJobId) => {
      const job = await find(importJobId)
      if (job?.projectId !== projectId) return 'unknown'
      return isOpen(job.state) ? 'open' : 'closed'
    },
  }
}
