// What a fetch will cost, before it starts: parts, calls, and the least time that the limits of the source allow.
// Source: docs/wire/import.md §1.2 (3 years by day are 1,095 calls, at least 18.3 hours), §2.1 stage 0.

import { leastDurationMs } from './call-limits.ts'
import type { FetchSource } from './fetch-source.ts'

export interface FetchPlan {
  readonly partCount: number
  /** The least number of requests. */
  readonly callCount: number
  /** From the limits of the source alone; 0 when it has none. */
  readonly leastMs: number
  /** Null when the source does not say. */
  readonly bytes: number | null
  readonly firstPart: string | null
  readonly lastPart: string | null
  /** Lines for the user to read. */
  readonly notes: readonly string[]
}

/** Sends requests only to a source whose parts must be listed, such as a bucket. */
export async function readFetchPlan(source: FetchSource, signal: AbortSignal): Promise<FetchPlan> {
  let [partCount, bytes, firstPart, lastPart] = [0, 0 as number | null, null as string | null, null as string | null]
  for await (const part of source.listParts(signal)) {
    partCount++
    bytes = bytes === null || part.bytes === null ? null : bytes + part.bytes
    firstPart ??= part.id
    lastPart = part.id
  }
  const callCount = partCount * source.callsPerPart
  const leastMs = leastDurationMs(callCount, source.limits)
  return { partCount, callCount, leastMs, bytes, firstPart, lastPart, notes: source.notes }
}
