// How long to wait before a request is retried. Source: docs/wire/import.md §2.5, "Back-off".

import { type BackOff, backOffMs } from '#core/back-off.ts'

/** Full jitter, so that the workers of many jobs do not all retry at the same time. */
const waits: BackOff = { firstMs: 1_000, longestMs: 60_000, jitter: 1 }
/** Longer than any known limit (an hour); bounded so that a wrong header does not stop a job for days. */
const retryAfterMsMax = 24 * 3_600_000

/**
 * @param tries consecutive failures, from 1.
 * @param random 0 ≤ x < 1
 * @param retryAfterMs the wait that the source asks for. The result is never shorter.
 */
export function retryWaitMs(tries: number, random: number, retryAfterMs: number | null): number {
  const waitMs = Math.ceil(backOffMs(waits, tries - 1, random))
  return retryAfterMs === null ? waitMs : Math.max(waitMs, Math.min(retryAfterMs, retryAfterMsMax))
}

/** @param header seconds or an HTTP date. @returns milliseconds from now; null when the header is neither. */
export function parseRetryAfter(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null
  if (/^\s*\d+(\.\d+)?\s*$/.test(header)) return Math.round(Number(header) * 1_000)
  const at = Date.parse(header)
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs)
}
