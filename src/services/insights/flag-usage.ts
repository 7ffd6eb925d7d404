// Answers how often a flag was called: its range, its buckets, and the counts.

import { type Buckets, clampToRange, createBuckets } from '#core/insights/buckets.ts'
import { type DateRangeIssue, readDateRange } from '#core/insights/date-range.ts'
import type { FlagUsage } from '#core/insights/flag-usage.ts'
import type { Project } from '#core/project.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Clock } from '#ports/clock.ts'
import type { InsightQueries } from '#ports/events/insight-queries.ts'
import { toBucketCalendar } from './project-calendar.ts'

/** The range as written in a request; null for each end that it leaves out. */
export interface FlagCallRange {
  readonly from: string | null
  readonly to: string | null
  readonly interval: 'hour' | 'day'
}

/** Why a range cannot be counted. */
export type FlagCallRangeIssue =
  | { readonly kind: 'dates'; readonly issue: DateRangeIssue }
  | { readonly kind: 'too_many_buckets'; readonly bucketsMax: number }

export interface FlagCallsDeps {
  readonly insights: Pick<InsightQueries, 'findFirstEventTime' | 'countFlagUsage'>
  readonly clock: Clock
}

/** Nearly three years of days, 41 days of hours. */
const bucketsMax = 1_000

/** @throws PortError of the event store. */
export async function answerFlagUsage(
  deps: FlagCallsDeps,
  project: Project,
  flagKey: string,
  range: FlagCallRange,
  signal: AbortSignal,
): Promise<Result<{ buckets: Buckets; usage: FlagUsage }, FlagCallRangeIssue>> {
  const buckets = await createFlagCallBuckets(deps, project, range, signal)
  if (!buckets.ok) return buckets
  const query = { projectId: project.id, flagKey, buckets: buckets.value }
  return ok({ buckets: buckets.value, usage: await deps.insights.countFlagUsage(query, signal) })
}

/** The buckets of a range, at least one; the last 30 days when it has no start. @throws PortError of the event store. */
export async function createFlagCallBuckets(
  { insights, clock }: Pick<FlagCallsDeps, 'clock'> & { insights: Pick<InsightQueries, 'findFirstEventTime'> },
  project: Project,
  { from, to, interval }: FlagCallRange,
  signal: AbortSignal,
): Promise<Result<Buckets, FlagCallRangeIssue>> {
  const { id } = project
  const nowMs = clock.nowMs()
  const calendar = toBucketCalendar(project)
  const range = readDateRange({ from: from ?? '-30d', to, isExplicit: false }, interval, { ...calendar, nowMs })
  if (!range.ok) return err({ kind: 'dates', issue: range.error })
  const firstMs = range.value.fromMs ?? (await insights.findFirstEventTime({ projectId: id }, signal)) ?? nowMs
  const fromMs = clampToRange(range.value, firstMs)
  const buckets = createBuckets({ ...range.value, fromMs }, interval, calendar, bucketsMax)
  return buckets === null ? err({ kind: 'too_many_buckets', bucketsMax }) : ok(buckets)
}
