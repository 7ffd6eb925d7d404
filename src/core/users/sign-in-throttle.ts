// How fast passwords and links may be guessed. An attempt is counted before its password is checked, so that attempts sent
// at the same time count too. No limit lasts: anyone could lock a user out.

/**
 * What attempts are counted on:
 * - `address`: the network that they come from;
 * - `account`: an e-mail address that no user has, as it was typed;
 * - `user`: a user, from networks where they have not signed in;
 * - `home`: a user at one network where they have signed in. Others cannot make them wait there;
 * - `own`: a user who gave the right password or has a session: their sign-ins and changes of what is their own.
 */
export type AttemptKind = keyof typeof keptAttempts

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

/**
 * How long attempts are kept, and for how many names of a kind. Names of users are as many as there are users, and are not
 * removed for others. A home is remembered for as long as a session lasts.
 */
export const keptAttempts = {
  address: { forMs: minuteMs, namesMax: 10_000 },
  account: { forMs: dayMs, namesMax: 10_000 },
  user: { forMs: dayMs, namesMax: null },
  home: { forMs: 30 * dayMs, namesMax: 10_000 },
  own: { forMs: minuteMs, namesMax: null },
} as const

const perMinuteMax: { readonly [K in AttemptKind]?: number } = { address: 20, own: 10 }
const backOff = { freeCount: 5, firstWaitMs: 1_000, longestWaitMs: 15 * minuteMs }
/** The clocks of fronts differ by less than this. */
const skewMs = minuteMs

export interface Attempts {
  readonly count: number
  /** The beginning of the minute for kinds with a limit per minute; for others, the last attempt. */
  readonly atMs: number
}

export type Admission =
  | { readonly isAdmitted: true; readonly attempts: Attempts }
  | { readonly isAdmitted: false; readonly retryAfterMs: number }

/** @param seen the attempts so far; null without any. */
export function admitAttempt(kind: AttemptKind, seen: Attempts | null, nowMs: number): Admission {
  const countMax = perMinuteMax[kind]
  const forgottenAfterMs = countMax === undefined ? dayMs : minuteMs
  // A clock that was set back must not make anyone wait for long.
  const isKnown = seen !== null && nowMs - seen.atMs < forgottenAfterMs && seen.atMs - nowMs <= skewMs
  if (!isKnown) return { isAdmitted: true, attempts: { count: 1, atMs: nowMs } }
  const { count, atMs } = seen
  const waitMs = countMax === undefined ? computeWaitMs(count) : count < countMax ? 0 : minuteMs
  const retryAfterMs = Math.min(atMs, nowMs) + waitMs - nowMs
  if (retryAfterMs > 0) return { isAdmitted: false, retryAfterMs }
  return {
    isAdmitted: true,
    attempts: { count: count + 1, atMs: countMax === undefined ? Math.max(atMs, nowMs) : atMs },
  }
}

/** After five failures one second, then twice as long each time, up to 15 minutes. */
function computeWaitMs(failureCount: number): number {
  if (failureCount < backOff.freeCount) return 0
  return Math.min(backOff.firstWaitMs * 2 ** (failureCount - backOff.freeCount), backOff.longestWaitMs)
}
