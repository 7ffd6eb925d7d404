// Counts that are stored by UTC day: what a project used, what fronts refused, and what processing warned about.

import type { JsonObject } from '#core/json.ts'
import type { EventUsage, LiveUsage } from '#core/usage.ts'
import type { UsageDay } from '../events/event-store-upkeep.ts'

/** Days are `YYYY-MM-DD`, UTC, and bounds are inclusive. */
export interface UsageStore {
  /**
   * Adds flag requests to their day's counter. A repeat counts twice. Fronts count in memory and call this every few
   * seconds, so a front that crashes loses the counts it has not written yet.
   */
  addFlagRequests(counts: readonly { projectId: number; day: string; count: number }[]): Promise<void>
  /**
   * Sets the event counts of these days to the counts in the event store. The first counts that are set for a day before
   * `frozenBeforeDay` are final: later counts are ignored, so that a day stays as it was charged, even if the schedule
   * paused.
   * @param lostDays days from which the event store has lost events: each count keeps the larger value.
   */
  saveEventCounts(
    projectId: number,
    days: readonly UsageDay[],
    frozenBeforeDay: string,
    lostDays?: readonly string[],
  ): Promise<void>
  listUsage(projectId: number, fromDay: string, toDay: string): Promise<readonly UsageRow[]>
  /** Sums of what all fronts have written. Projects without flag requests may be missing. */
  sumFlagRequests(
    projectIds: readonly number[],
    fromDay: string,
    toDay: string,
  ): Promise<readonly { projectId: number; count: number }[]>
  /** Sums of what was charged. Projects without usage may be missing. */
  sumUsage(
    projectIds: readonly number[],
    fromDay: string,
    toDay: string,
  ): Promise<readonly (LiveUsage & { readonly projectId: number })[]>
}

export interface UsageRow extends EventUsage {
  readonly day: string
  readonly flagRequests: number
}

/** Counts of events with a known project key that a front refused; the log has no record of them. */
export interface RefusedStore {
  /** Writes all counts or none. A count with a warning also raises the warning `count` times, with one sample. */
  addRefused(counts: readonly RefusedCount[]): Promise<void>
  /** Sums of the counts by reason, from the UTC day `fromDay` on. */
  listRefused(projectId: number, fromDay: string): Promise<readonly RefusedSummary[]>
  /** Retention: deletes the counts of UTC days before `firstDay`, and after `lastDay` if there is one. */
  deleteRefusedOutside(firstDay: string, lastDay: string | null): Promise<void>
}

export interface RefusedCount {
  readonly projectId: number
  readonly day: string
  /** A code of docs/wire/errors.md. At most one count of a call has the same project, day and reason. */
  readonly reason: string
  readonly count: number
  readonly lastSeenMs: number
  /** Details of an ingestion warning of the type `reason`; null if none is raised. */
  readonly warning: JsonObject | null
}

export interface RefusedSummary {
  readonly reason: string
  readonly count: number
  readonly lastSeenMs: number
}

/** Ingestion warnings. They are written with chunks (`chunk-store.ts`) and with `addRefused`. */
export interface WarningStore {
  /** One item per type, latest first. Counts are exact for whole UTC days; only some samples are kept per day and type. */
  listWarnings(
    projectId: number,
    query: { sinceMs: number; sampleCountMax: number },
  ): Promise<readonly WarningSummary[]>
  /** Retention: deletes counts and samples of UTC days before `firstDay`, and after `lastDay` if there is one. */
  deleteWarningsOutside(firstDay: string, lastDay: string | null): Promise<void>
}

export interface WarningSummary {
  readonly type: string
  readonly count: number
  readonly lastSeenMs: number
  readonly warnings: readonly { readonly timestampMs: number; readonly details: JsonObject }[]
}

export interface AccountingStore extends UsageStore, RefusedStore, WarningStore {}
