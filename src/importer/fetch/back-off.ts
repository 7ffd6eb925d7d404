// How long to wait before the same question is asked again. Source: docs/wire/import.md §2.5, "Back-off".

const firstMs = 1_000
const longestMs = 60_000
/** Longer than the hour of any known limit, so that a mistaken header does not stop a job for days. */
const retryAfterMsMax = 24 * 3_600_000

/**
 * @param tries how often it has failed in a row, from 1.
 * @param random 0 ≤ x < 1: full jitter, so that the workers of many jobs do not come back together.
 * @param retryAfterMs what the source asks for: never sooner, even where it asks for 0.
 */
export function backOffMs(tries: number, random: number, retryAfterMs: number | null): number {
  const jitterMs = Math.ceil(random * Math.min(longestMs, firstMs * 2 ** Math.min(tries - 1, 10)))
  return retryAfterMs === null ? jitterMs : Math.max(jitterMs, Math.min(retryAfterMs, retryAfterMsMax))
}

/** @param header seconds, or a date as HTTP writes it. @returns milliseconds from now; null when it says neither. */
export function retryAfterOf(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null
  if (/^\s*\d+(\.\d+)?\s*$/.test(header)) return Math.round(Number(header) * 1_000)
  const at = Date.parse(header)
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs)
}
