// Reports which persons a flag exposed to its variants, and whether they were split as the flag defines.

import type { Flag } from '#core/flags/definitions/flag.ts'
import { readConfigVersion } from '#core/flags/definitions/read-rules.ts'
import type { Buckets } from '#core/insights/buckets.ts'
import {
  findExpectedVariants,
  type ShareTest,
  testVariantShares,
  type VariantExposure,
} from '#core/insights/exposure.ts'
import type { Project } from '#core/project.ts'
import { ok, type Result } from '#core/result.ts'
import type { ExposureQuery, InsightQueries } from '#ports/events/insight-queries.ts'
import { createFlagCallBuckets, type FlagCallRange, type FlagCallRangeIssue, type FlagCallsDeps } from './flag-usage.ts'

export interface Exposure {
  readonly buckets: Buckets
  readonly variants: readonly VariantExposure[]
  /** Persons who were exposed to more than one variant; they are counted for none. */
  readonly multiple: number
  /** Null when there is nothing to test (`testVariantShares`). */
  readonly shareTest: ShareTest | null
}

/** @throws PortError of the event store. */
export async function answerExposure(
  deps: Pick<FlagCallsDeps, 'clock'> & { insights: Pick<InsightQueries, 'findFirstEventTime' | 'countExposures'> },
  project: Project,
  flag: Pick<Flag, 'key' | 'filters'>,
  { importJobIds, ...range }: FlagCallRange & Pick<ExposureQuery, 'importJobIds'>,
  signal: AbortSignal,
): Promise<Result<Exposure, FlagCallRangeIssue>> {
  const buckets = await createFlagCallBuckets(deps, project, range, signal)
  if (!buckets.ok) return buckets
  const expected = findExpectedVariants(flag.filters)
  const query = {
    projectId: project.id,
    flagKey: flag.key,
    buckets: buckets.value,
    variants: expected.map(({ variant }) => variant),
    isOfRules: readConfigVersion(flag.filters) === 2,
    importJobIds,
  }
  const { firsts, multiple } = await deps.insights.countExposures(query, signal)
  const variants = expected.map((variant, index) => ({ ...variant, firsts: firsts[index]! }))
  const counts = variants.map(({ expectedShare, firsts }) => ({
    expectedShare,
    persons: firsts.reduce((sum, count) => sum + count, 0),
  }))
  return ok({ buckets: buckets.value, variants, multiple, shareTest: testVariantShares(counts) })
}
