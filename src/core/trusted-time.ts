// The time used to decide what is old enough to be deleted. A wall clock that was set, or reset by the machine, may show
// any time, and data deleted because of a wrong time is lost. So the wall clock alone is not enough: time that passed while
// a process ran is certain, and any other movement of the clock is trusted only as far as the clock has stayed at least
// that far ahead through a day of running. Source: ours,
// docs/decisions/0056-nothing-is-deleted-on-one-look-at-the-clock.md.

import { dayMs } from './time.ts'

export interface TrustedTime {
  /**
   * Epoch ms: the time that has certainly been reached, or what the wall clock showed when it was last trusted. Near 0
   * before the clock is first trusted.
   */
  readonly atMs: number
  /**
   * While the wall clock is not trusted: the least that it has been ahead of `atMs` during `stoodMs`; negative when it is
   * behind. 0 while it is trusted.
   */
  readonly aheadMs: number
  /** How long processes have run, in total, since the wall clock has been that far ahead; 0 while it is trusted. */
  readonly stoodMs: number
}

/**
 * A deviation of the wall clock up to this is trusted at once: a restart takes less, and a clock that is wrong by less
 * deletes hardly anything too early.
 */
export const trustedMsMax = 3_600_000
/** How long a clock must stay where it jumped to, or further ahead, before it is trusted. */
export const clockSettleMs = dayMs
/**
 * An `atMs` below this only shows how long processes have run, since a clock that shows such an early time is never
 * trusted.
 */
const begunMs = 365 * dayMs

/**
 * @param last null at the first call.
 * @param elapsedMs since the previous call, by a clock that cannot be set; 0 when another process made that call.
 */
export function updateTrustedTime(last: TrustedTime | null, nowMs: number, elapsedMs: number): TrustedTime {
  const atMs = (last?.atMs ?? 0) + elapsedMs
  const aheadMs = nowMs - atMs
  if (Math.abs(aheadMs) <= trustedMsMax) return trustClock(nowMs)
  // While a machine runs, a clock that is ahead stays equally far ahead. After the machine was off or asleep, which may
  // happen every day, its clock is further ahead by the time that passed: this confirms the earlier reading just as well. A
  // clock that moves back does not confirm the earlier reading.
  const isConfirmed = last !== null && last.aheadMs !== 0 && last.aheadMs - aheadMs <= trustedMsMax
  if (!isConfirmed) return { atMs, aheadMs, stoodMs: 0 }
  const stoodMs = last.stoodMs + elapsedMs
  if (stoodMs < clockSettleMs) return { atMs, aheadMs: last.aheadMs, stoodMs }
  // Any further gain of the clock has not been observed for a whole day yet, so it must be confirmed separately.
  return updateTrustedTime({ atMs: atMs + last.aheadMs, aheadMs: 0, stoodMs: 0 }, nowMs, 0)
}

function trustClock(nowMs: number): TrustedTime {
  return { atMs: nowMs, aheadMs: 0, stoodMs: 0 }
}

export function isTimeTrusted({ aheadMs }: TrustedTime): boolean {
  return aheadMs === 0
}

/** Whether the wall clock was ever trusted. */
export function wasTimeEverTrusted({ atMs }: TrustedTime): boolean {
  return atMs >= begunMs
}
