// Answers a trend: its range, its buckets, the conditions of its cohorts, and one count per series and period.

import {
  type Buckets,
  clampToRange,
  createBuckets,
  createEarlierBuckets,
  findPreviousPeriod,
} from '#core/insights/buckets.ts'
import type { Condition } from '#core/insights/conditions.ts'
import { countComparisonShiftWeeks, type DateRangeIssue, readDateRange } from '#core/insights/date-range.ts'
import { pointsMax, type TrendSeries, type TrendsQuery } from '#core/insights/trends-query.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import type { Project } from '#core/project.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventScope } from '#ports/events/event-queries.ts'
import {
  type InsightQueries,
  TooManyConditions,
  type TrendCountQuery,
  type TrendLine,
  UnsupportedPattern,
} from '#ports/events/insight-queries.ts'
import { CohortConditions, type CohortConditionsDeps, type CohortIssue } from './cohort-conditions.ts'
import { toBucketCalendar } from './project-calendar.ts'

export interface TrendsDeps extends CohortConditionsDeps {
  readonly insights: Pick<InsightQueries, 'findFirstEventTime' | 'countTrend'>
  readonly clock: Clock
}

/** A line of the answer. */
export interface CountedLine extends TrendLine {
  readonly series: TrendSeries
  /** The index of the series in the query. */
  readonly order: number
  readonly buckets: Buckets
  /** Null unless periods are compared. */
  readonly period: 'current' | 'previous' | null
  /** The cohort that the line is for; null for all persons, undefined without a breakdown by cohorts. */
  readonly cohort?: { readonly id: number; readonly name: string } | null
}

/** A query, and the pending job whose events it counts as well. */
export type ScopedTrendsQuery = TrendsQuery & Pick<EventScope, 'importJobId'>

/** Why a query cannot be answered. */
export type TrendsIssue =
  | { readonly kind: 'dates'; readonly issue: DateRangeIssue }
  | { readonly kind: 'too_many_points'; readonly pointsMax: number }
  | { readonly kind: 'cohort'; readonly issue: CohortIssue }
  | { readonly kind: 'unsupported_pattern' }
  | { readonly kind: 'too_many_conditions' }

/** @throws PortError of the event store, and of the state. */
export async function answerTrends(
  deps: TrendsDeps,
  project: Project,
  query: ScopedTrendsQuery,
  signal: AbortSignal,
): Promise<Result<readonly CountedLine[], TrendsIssue>> {
  const current = await makeTrendBuckets(deps, project, query, signal)
  if (!current.ok) return current
  const cohorts = new CohortConditions(deps, project)
  const parts = await planCounts(cohorts, query)
  if (!parts.ok) return err({ kind: 'cohort', issue: parts.error })
  const buckets = current.value
  const nowMs = deps.clock.nowMs()
  const lines: { current: CountedLine[]; previous: CountedLine[] } = { current: [], previous: [] }
  try {
    for (const part of parts.value) {
      const count: TrendCountQuery = {
        ...toEventScope(project, query),
        ...{ buckets, event: part.series.event, math: part.series.math },
        ...{ condition: part.condition, breakdown: toPropertyBreakdown(query) },
        settings: { timezone: project.timezone, nowMs },
      }
      const counted = selectShownLines(query, await deps.insights.countTrend(count, signal))
      lines.current.push(
        ...counted.map(line => ({ ...line, ...part.of, buckets, period: query.compare && ('current' as const) })),
      )
      if (query.compare === null) continue
      const earlier = createEarlierBuckets(
        buckets,
        query.compare.back ?? computeComparedShift(query, buckets),
        toBucketCalendar(project),
      )
      const compared = selectShownLines(
        query,
        await deps.insights.countTrend(toEarlierPeriodCount(count, counted, earlier), signal),
      )
      lines.previous.push(
        ...compared.map(line => ({ ...line, ...part.of, buckets: earlier, period: 'previous' as const })),
      )
    }
  } catch (error) {
    if (error instanceof UnsupportedPattern) return err({ kind: 'unsupported_pattern' })
    if (error instanceof TooManyConditions) return err({ kind: 'too_many_conditions' })
    throw error
  }
  return ok([...lines.current, ...lines.previous])
}

function toEventScope({ id }: Project, { importJobId }: ScopedTrendsQuery): EventScope {
  return omitUndefined({ projectId: id, importJobId })
}

/** At least one bucket, so that every series has its line. */
async function makeTrendBuckets(
  { insights, clock }: TrendsDeps,
  project: Project,
  query: ScopedTrendsQuery,
  signal: AbortSignal,
): Promise<Result<Buckets, TrendsIssue>> {
  const nowMs = clock.nowMs()
  const range = readDateRange(query.dates, query.interval, { ...toBucketCalendar(project), nowMs })
  if (!range.ok) return err({ kind: 'dates', issue: range.error })
  const firstMs =
    range.value.fromMs ?? (await insights.findFirstEventTime(toEventScope(project, query), signal)) ?? nowMs
  // The first event, or the first time that can be stored, may be later than the range.
  const fromMs = clampToRange(range.value, firstMs)
  const countMax = Math.floor(pointsMax / computeLineCountMax(query))
  const buckets = createBuckets({ ...range.value, fromMs }, query.interval, toBucketCalendar(project), countMax)
  return buckets === null ? err({ kind: 'too_many_points', pointsMax }) : ok(buckets)
}

/** The maximum number of lines of an answer. */
function computeLineCountMax({ series, breakdowns, compare }: TrendsQuery): number {
  const perSeries =
    breakdowns === null ? 1 : breakdowns.kind === 'cohorts' ? breakdowns.cohortIds.length : breakdowns.limit + 2
  return series.length * Math.max(perSeries, 1) * (compare === null ? 1 : 2)
}

interface Part {
  readonly series: TrendSeries
  readonly condition: Condition
  readonly of: Pick<CountedLine, 'series' | 'order' | 'cohort'>
}

/** Lists the counts to query: one per series, or one per series and cohort. */
async function planCounts(cohorts: CohortConditions, query: TrendsQuery): Promise<Result<Part[], CohortIssue>> {
  const common = await cohorts.resolve(query.condition)
  if (!common.ok) return common
  const parts: Part[] = []
  for (const [order, series] of query.series.entries()) {
    const own = await cohorts.resolve(series.condition)
    if (!own.ok) return own
    const condition: Condition = { kind: 'all', conditions: [common.value, own.value] }
    if (query.breakdowns?.kind !== 'cohorts') {
      parts.push({ series, condition, of: { series, order } })
      continue
    }
    for (const id of query.breakdowns.cohortIds) {
      if (id === null) {
        parts.push({ series, condition, of: { series, order, cohort: null } })
        continue
      }
      const members = await cohorts.members(id, 'query.breakdownFilter.breakdown')
      if (!members.ok) return members
      const narrowed: Condition = { kind: 'all', conditions: [condition, members.value] }
      parts.push({ series, condition: narrowed, of: { series, order, cohort: { id, name: cohorts.nameOf(id) } } })
    }
  }
  return ok(parts)
}

function toPropertyBreakdown({ breakdowns }: TrendsQuery): TrendCountQuery['breakdown'] {
  return breakdowns?.kind === 'properties' ? { by: breakdowns.by, limit: breakdowns.limit } : null
}

function computeComparedShift({ dates, interval }: TrendsQuery, buckets: Buckets): Temporal.DurationLike {
  const weeks = countComparisonShiftWeeks(dates, interval)
  return weeks === null ? findPreviousPeriod(buckets) : { weeks }
}

/** Counts the earlier period for the breakdown values of the current one, so that each line has its counterpart. */
function toEarlierPeriodCount(
  count: TrendCountQuery,
  current: readonly TrendLine[],
  buckets: Buckets,
): TrendCountQuery {
  if (count.breakdown === null) return { ...count, buckets }
  const values = current.flatMap(({ value }) =>
    value === null || value === 'other' || value.every(text => text === '') ? [] : [value],
  )
  return { ...count, buckets, breakdown: { ...count.breakdown, values } }
}

function selectShownLines({ breakdowns }: TrendsQuery, lines: readonly TrendLine[]): readonly TrendLine[] {
  const hidesOther = breakdowns?.kind === 'properties' && breakdowns.hidesOther
  return hidesOther ? lines.filter(({ value }) => value !== 'other') : lines
}
