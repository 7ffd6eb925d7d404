// How long to wait between tries: twice as long after each failure, up to a limit, with jitter so that several callers do
// not try at the same moment.

export interface BackOff {
  readonly firstMs: number
  readonly longestMs: number
  /** The random share of each wait, from 0 to 1; 0.5 if absent. */
  readonly jitter?: number
}

/**
 * @param attempt 0 for the wait after the first failure.
 * @param random 0 ≤ x < 1. The default gives the whole wait, without jitter: for a caller that never tries at the same time as
 * others.
 */
export function computeBackOffMs({ firstMs, longestMs, jitter = 0.5 }: BackOff, attempt: number, random = 1): number {
  return Math.min(longestMs, firstMs * 2 ** attempt) * (1 - jitter + jitter * random)
}
