// How fast passwords and links may be guessed. An attempt is counted before its password is checked, so that attempts sent
// at the same time count too; a success takes its count back. No limit lasts: anyone could lock a user out.

/** Attempts are counted by account and by network address. */
export type AttemptKind = 'account' | 'address'

export interface Attempts {
  readonly count: number
  /** For an account, the last attempt; for an address, the beginning of its minute. */
  readonly atMs: number
}

const account = { freeCount: 5, firstWaitMs: 1_000, longestWaitMs: 15 * 60_000, forgottenAfterMs: 24 * 3_600_000 }
const address = { countMax: 20, windowMs: 60_000 }

/** When the attempts no longer count, so that nothing has to be stored about them. */
export const attemptsForgottenAfterMs: Readonly<Record<AttemptKind, number>> = {
  account: account.forgottenAfterMs,
  address: address.windowMs,
}

export type Admission =
  | { readonly isAdmitted: true; readonly attempts: Attempts }
  | { readonly isAdmitted: false; readonly retryAfterMs: number }

/** @param seen the attempts so far; null without any. */
export function admitAttempt(kind: AttemptKind, seen: Attempts | null, nowMs: number): Admission {
  // A clock that was set back must not make anyone wait longer.
  const known = seen !== null && nowMs - seen.atMs < attemptsForgottenAfterMs[kind] && seen.atMs <= nowMs ? seen : null
  if (known === null) return { isAdmitted: true, attempts: { count: 1, atMs: nowMs } }
  const openAtMs = kind === 'account' ? known.atMs + computeWaitMs(known.count) : computeWindowEndMs(known)
  if (openAtMs > nowMs) return { isAdmitted: false, retryAfterMs: openAtMs - nowMs }
  return { isAdmitted: true, attempts: { count: known.count + 1, atMs: kind === 'account' ? nowMs : known.atMs } }
}

/** After five failures one second, then twice as long each time, up to 15 minutes. */
function computeWaitMs(failureCount: number): number {
  if (failureCount < account.freeCount) return 0
  return Math.min(account.firstWaitMs * 2 ** (failureCount - account.freeCount), account.longestWaitMs)
}

function computeWindowEndMs({ count, atMs }: Attempts): number {
  return count < address.countMax ? 0 : atMs + address.windowMs
}
