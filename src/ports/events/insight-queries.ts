// Queries of insights: counts over many events. Each identity counts once and persons are current (`event-store.ts`);
// events of pending imports count only where a query names their job. These queries have a separate queue, so that many of
// them never delay lists of single events.

import type { Buckets } from '#core/insights/buckets.ts'
import type { Breakdown, Condition } from '#core/insights/conditions.ts'
import type { FlagUsage } from '#core/insights/flag-usage.ts'
import type { TrendMath } from '#core/insights/trends-query.ts'
import type { EventScope } from './event-queries.ts'

/**
 * Aborting `signal` ends the query in the store and rejects with the signal's reason.
 * @throws PortError from every method: `unavailable` if the store cannot be reached, `timeout` after the query limit, `full`
 *   if too many queries of the project wait or the query would exceed the limits on memory and size, `corrupt`.
 */
export interface InsightQueries {
  /** When the project's earliest event since 2015 happened, epoch ms; null while it has none. */
  findFirstEventTime(seen: EventScope, signal?: AbortSignal): Promise<number | null>
  /**
   * The lines of one series of a trend. Without breakdowns, there is one line. With breakdowns, there is a line for each of
   * the values with the highest sums (highest first, equal sums in byte order), then a line for events without a value and
   * a line for all other values. Lines without any figure are left out. Conditions match like in the evaluator of flags,
   * except for values that the store reads differently (docs/wire/private-api.md 11.1).
   * @throws UnsupportedPattern, TooManyConditions
   */
  countTrend(query: TrendCountQuery, signal?: AbortSignal): Promise<readonly TrendLine[]>
  /** How often a flag was called, by value and bucket. Calls that were deduplicated count, and so do their callers. */
  countFlagUsage(query: FlagUsageQuery, signal?: AbortSignal): Promise<FlagUsage>
  /** Which persons a flag exposed to which variant, judging by its calls, also deduplicated, and by exposure events. */
  countExposures(query: ExposureQuery, signal?: AbortSignal): Promise<FlagExposure>
}

/** The store cannot search for a pattern or text of the conditions. */
export class UnsupportedPattern extends Error {}

/** The conditions of a query and of its cohorts exceed what the store reads in one query. */
export class TooManyConditions extends Error {}

export interface TrendCountQuery extends EventScope {
  /** At least one. */
  readonly buckets: Buckets
  /** Null counts events of every name. */
  readonly event: string | null
  readonly math: TrendMath
  /** Cohorts are replaced by their conditions. */
  readonly condition: Condition
  readonly breakdown: TrendBreakdown | null
  readonly settings: InsightSettings
}

export interface TrendBreakdown {
  /** One or two. */
  readonly by: readonly Breakdown[]
  readonly limit: number
  /** The values to show instead of the values that rank first. */
  readonly values?: readonly BreakdownValue[]
}

/** Settings of the project by which conditions read values. */
export interface InsightSettings {
  readonly timezone: string
  readonly nowMs: number
}

/** One text per breakdown; '' for an event without the property, and for null. */
export type BreakdownValue = readonly string[]

export interface ExposureQuery extends FlagUsageQuery {
  /** The answers that expose a person, each once; calls with other answers do not count. */
  readonly variants: readonly string[]
  /** Whether the flag has rules (a document of version 2), whose calls name the variant along with its value. */
  readonly isOfRules: boolean
  /** Import jobs whose calls count; other imports expose no person. */
  readonly importJobIds: readonly number[]
}

export interface FlagExposure {
  /** For each variant and bucket, how many persons' first call in the range is in the bucket and had the variant. */
  readonly firsts: readonly (readonly number[])[]
  /** The number of persons whose calls had more than one of the variants; they are counted for none of them. */
  readonly multiple: number
}

export interface FlagUsageQuery {
  readonly projectId: number
  /** Calls name a flag by its key, so calls from before the key was changed are not found. */
  readonly flagKey: string
  /** At least one. */
  readonly buckets: Pick<Buckets, 'edges'>
}

export interface TrendLine {
  /** The line's figure in each bucket; 0 for a bucket without any events. */
  readonly data: readonly number[]
  /** `other` for all values without a line; null without breakdowns. */
  readonly value: BreakdownValue | 'other' | null
}

// Caches counts of hours and days in which a flag was called very often, so that its usage is answered without reading its
// calls again. The cache only saves time: `InsightQueries.countFlagUsage` uses the counts that are still correct, and
// counts the calls of all other buckets (docs/decisions/0046).

/** How long cached counts are stored. Counts that are still requested after that are counted again. */
export const cachedUsageDays = 90

/**
 * No client waits for these methods: each may take minutes, and the limit on users' queries does not apply. Aborting
 * `signal` ends the query and rejects with the signal's reason.
 * @throws PortError from every method, like `EventQueries`.
 */
export interface FlagUsageUpkeep {
  /** Flags with at least `callsMin` stored rows of calls since a time, the most called first, `limit` at most. */
  listBusyFlags(
    projectId: number,
    since: { readonly fromMs: number; readonly callsMin: number; readonly limit: number },
    signal?: AbortSignal,
  ): Promise<readonly BusyFlag[]>
  /**
   * The UTC days on which flags were called by distinct ids that have moved to another person since a time. Each day comes
   * with the time at which the last such id moved, all in epoch ms.
   */
  listDaysOfMovedIds(projectId: number, movedFromMs: number, signal?: AbortSignal): Promise<ReadonlyMap<number, number>>
  /** The buckets whose cached counts are still correct, each with a time before its calls were counted. */
  listCachedUsage(
    query: FlagUsageQuery,
    signal?: AbortSignal,
  ): Promise<readonly { readonly fromMs: number; readonly cachedAtMs: number }[]>
  /** Counts the calls of these buckets, and caches the counts. A repeated call replaces the counts. */
  cacheUsage(query: FlagUsageQuery & { readonly nowMs: number }, signal?: AbortSignal): Promise<void>
}

export interface BusyFlag {
  readonly flagKey: string
  /** About how many calls there are, by the start of their UTC day in epoch ms; no days without calls. */
  readonly callsOfDay: ReadonlyMap<number, number>
}
