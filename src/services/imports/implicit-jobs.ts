// Finds the implicit jobs, which collect imports that name no job: one per project and UTC day of acceptance.

import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { ImplicitJob } from '#core/imports/import-job.ts'
import { buildImportDayKey, type ImplicitJobs } from '#core/processing/process-chunk.ts'
import { utcDay } from '#core/usage.ts'
import type { Clock } from '#ports/clock.ts'
import type { ImportJobStore } from '#ports/state/import-job-store.ts'

/**
 * `isRetry` bypasses the cache, because a cached job may have been discarded; without `mayCreate`, only existing jobs are
 * returned. Throws `PortError`s.
 */
export type FindImplicitJobs = (
  items: readonly Pick<CapturedEvent, 'projectId' | 'capturedAtMs'>[],
  options: { readonly isRetry: boolean; readonly mayCreate: boolean },
) => Promise<ImplicitJobs>

const cacheCountMax = 1_000

export function createImplicitJobFinder(options: {
  readonly jobs: Pick<ImportJobStore, 'listImplicitJobs' | 'createImplicitJob'>
  readonly clock: Clock
}): FindImplicitJobs {
  const { jobs, clock } = options
  const cache = new Map<string, readonly ImplicitJob[]>()

  async function listOrCreateJobs(
    projectId: number,
    day: string,
    lastMs: number,
    mayCreate: boolean,
  ): Promise<readonly ImplicitJob[]> {
    const known = await jobs.listImplicitJobs(projectId, day)
    if (!mayCreate || known.some(({ untilMs }) => untilMs === null || untilMs >= lastMs)) return known
    await jobs.createImplicitJob(projectId, day, clock.nowMs())
    return jobs.listImplicitJobs(projectId, day)
  }

  return async (items, { isRetry, mayCreate }) => {
    if (isRetry || cache.size >= cacheCountMax) cache.clear()
    const found = new Map<string, readonly ImplicitJob[]>()
    for (const [key, ofDay] of Map.groupBy(items, buildImportDayKey)) {
      const { projectId, capturedAtMs } = ofDay[0]!
      const lastMs = ofDay.reduce((last, item) => Math.max(last, item.capturedAtMs), 0)
      let known = cache.get(key)
      if (known === undefined || !known.some(({ untilMs }) => untilMs === null || untilMs >= lastMs))
        known = await listOrCreateJobs(projectId, utcDay(capturedAtMs), lastMs, mayCreate)
      cache.set(key, known)
      found.set(key, known)
    }
    return found
  }
}
