// Describes waits, such as `source limit, 14 min`. Source: docs/wire/import.md §2.8.

export interface FetchWaiting {
  /** Such as `source limit`. */
  readonly reason: string
  readonly untilMs: number
}

/** The reason of a wait for the rate limit of a source. */
export const sourceLimit = 'source limit'

export function describeWait({ reason, untilMs }: FetchWaiting, nowMs: number): string {
  if (untilMs <= nowMs) return `${reason}, trying again`
  return `${reason}, ${formatSpan(untilMs - nowMs)}`
}

/** Rounded up: `45 s`, `14 min`, `18.3 h`, `3.1 days`. */
export function formatSpan(ms: number): string {
  const seconds = Math.ceil(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.ceil(ms / 60_000)
  if (minutes < 120) return `${minutes} min`
  const hours = Math.ceil(ms / 360_000) / 10
  return hours < 48 ? `${hours} h` : `${Math.ceil((hours / 24) * 10) / 10} days`
}
