// Caches counts of hours and days in which a flag was called very often, so that its usage is answered without reading
// its calls again. They only save time: `InsightQueries.countFlagUsage` uses those that are still correct, and counts
// the calls of all other buckets (docs/decisions/0046).

import type { FlagUsageQuery } from './insight-queries.ts'

/** How long cached counts are stored: those that are still requested are counted again then. */
export const cachedUsageDays = 90

/**
 * No client waits for these: each may take minutes, and the limit on users' queries does not apply to them. `signal`
 * ends one, with its reason.
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
   * The UTC days on which distinct ids called flags, for ids that moved to another person since a time, each with when the
   * last one moved, all in epoch ms.
   */
  listMovedDays(projectId: number, movedFromMs: number, signal?: AbortSignal): Promise<ReadonlyMap<number, number>>
  /** The cached counts of these buckets that are still correct, each with a time before it was counted. */
  listCachedUsage(
    query: FlagUsageQuery,
    signal?: AbortSignal,
  ): Promise<readonly { readonly fromMs: number; readonly cachedAtMs: number }[]>
  /** Counts the calls of these buckets, and caches the counts. Repeating it replaces them. */
  cacheUsage(query: FlagUsageQuery & { readonly nowMs: number }, signal?: AbortSignal): Promise<void>
}

export interface BusyFlag {
  readonly flagKey: string
  /** About how many calls there are, by the start of their UTC day in epoch ms; no days without calls. */
  readonly callsOfDay: ReadonlyMap<number, number>
}
