/** Whole seconds until an instant, rounded up so that 0 means that it has come. */
export function countSecondsUntil(untilMs: number, nowMs: number): number {
  return Math.max(0, Math.ceil((untilMs - nowMs) / 1_000))
}

/**
 * The seconds that an answer asks to wait.
 * @param retryAfter the header: seconds or a date. Null if it is absent or neither.
 */
export function parseRetryAfter(retryAfter: string | null, nowMs: number): number | null {
  if (retryAfter === null) return null
  if (/^\s*\d+\s*$/.test(retryAfter)) return Number(retryAfter)
  const atMs = Date.parse(retryAfter)
  return Number.isNaN(atMs) ? null : countSecondsUntil(atMs, nowMs)
}

/** `40 s`, `2 min 5 s`, `1 h 3 min`. */
export function formatSeconds(seconds: number): string {
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60]
  if (hours > 0) return minutes > 0 ? `${hours} h ${minutes} min` : `${hours} h`
  if (minutes > 0) return seconds % 60 > 0 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`
  return `${seconds} s`
}
