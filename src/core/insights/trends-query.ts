// What a trend asks for: how often events happened, or how many did them, per bucket of time.
// Source: PostHog's TrendsQuery; docs/wire/private-api.md.

import type { BucketInterval } from './buckets.ts'
import type { Breakdown, Condition } from './conditions.ts'
import type { WrittenDateRange } from './date-range.ts'

export const numberAggregates = ['sum', 'avg', 'min', 'max', 'median', 'p90', 'p95', 'p99'] as const
export type NumberAggregate = (typeof numberAggregates)[number]

/** What is counted in each bucket. */
export type TrendMath =
  /** Events. */
  | { readonly kind: 'events' }
  /** Persons of today, each once. */
  | { readonly kind: 'persons' }
  /** Groups of a type, each once; events without one count for none. */
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
      /** The answer names each value as a list, also where there is one breakdown. */
      readonly isList: boolean
      /** How many values have a line of their own. */
      readonly limit: number
      readonly hidesOther: boolean
    }
  /** A line for each cohort; null for everybody. */
  | { readonly kind: 'cohorts'; readonly cohortIds: readonly (number | null)[] }

export interface TrendsQuery {
  readonly series: readonly TrendSeries[]
  readonly interval: BucketInterval
  readonly dates: WrittenDateRange
  /** Holds for every series. */
  readonly condition: Condition
  readonly leavesOutTestAccounts: boolean
  readonly breakdowns: TrendBreakdowns | null
  readonly compare: TrendComparison | null
  /** Each bucket shows its figure and those of the buckets before it together. */
  readonly isCumulative: boolean
}

/** With which earlier period; the one directly before when `back` is null. */
export interface TrendComparison {
  readonly back: Temporal.DurationLike | null
}

/** The most series of a query. */
export const seriesMax = 20
/** The most points of all series of an answer together. */
export const pointsMax = 10_000
