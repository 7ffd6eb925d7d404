// A trend query: how often events happened, or how many subjects did them, per bucket of time. Source: PostHog's
// TrendsQuery; docs/wire/private-api.md.

import type { BucketInterval } from './buckets.ts'
import type { Breakdown, Condition } from './conditions.ts'
import type { WrittenDateRange } from './date-range.ts'

export const numberAggregates = ['sum', 'avg', 'min', 'max', 'median', 'p90', 'p95', 'p99'] as const
export type NumberAggregate = (typeof numberAggregates)[number]

/** What is counted in each bucket. */
export type TrendMath =
  /** Events. */
  | { readonly kind: 'events' }
  /** Current persons, each once. */
  | { readonly kind: 'persons' }
  /** Groups of a type, each once; events without a group are not counted. */
  | { readonly kind: 'groups'; readonly groupTypeIndex: number }
  /** An event property's numbers. */
  | { readonly kind: 'numbers'; readonly aggregate: NumberAggregate; readonly property: string }

export interface TrendSeries {
  /** Null counts events of every name. */
  readonly event: string | null
  readonly customName: string | null
  readonly math: TrendMath
  readonly condition: Condition
}

export type TrendBreakdowns =
  | {
      readonly kind: 'properties'
      /** One or two. */
      readonly by: readonly Breakdown[]
      /** The response gives each value as a list, even with one breakdown. */
      readonly isList: boolean
      /** How many values are reported separately. */
      readonly limit: number
      readonly hidesOther: boolean
    }
  /** One series per cohort; an id of null stands for all persons. */
  | { readonly kind: 'cohorts'; readonly cohortIds: readonly (number | null)[] }

export interface TrendsQuery {
  readonly series: readonly TrendSeries[]
  readonly interval: BucketInterval
  readonly dates: WrittenDateRange
  /** Applies to every series. */
  readonly condition: Condition
  readonly leavesOutTestAccounts: boolean
  readonly breakdowns: TrendBreakdowns | null
  readonly compare: TrendComparison | null
  /** Each bucket shows its figure plus the figures of all earlier buckets. */
  readonly isCumulative: boolean
}

/** The earlier period to compare with; the directly preceding period when `back` is null. */
export interface TrendComparison {
  readonly back: Temporal.DurationLike | null
}

/** Maximum number of series of a query. */
export const seriesMax = 20
/** Maximum number of points in one response, over all its series. */
export const pointsMax = 10_000
