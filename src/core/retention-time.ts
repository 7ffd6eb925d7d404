// By which time things are old enough to be deleted. A wall clock that was set, or that a machine lost, says anything, and
// what is deleted by it does not come back. So its word is not enough: time that has passed while a process ran is
// certain, and a clock that moved otherwise is believed as far as it has been, at least, through a day of running.
// Source: ours, docs/decisions/0056-nothing-is-deleted-on-one-look-at-the-clock.md.

import { dayMs } from './time.ts'

export interface TrustedTime {
  /** Epoch ms: so late it is for certain, or as the wall clock said when it was last believed. Near 0 before that. */
  readonly atMs: number
  /**
   * While the wall clock is not believed: how far ahead of `atMs` it has been, at least, as long as `stoodMs` says; negative
   * when it is behind. 0 otherwise.
   */
  readonly aheadMs: number
  /** How long processes have run meanwhile, all together; 0 while the wall clock is believed. */
  readonly stoodMs: number
}

/** A restart takes less, and a clock that is wrong by less deletes too little early to matter. */
export const believedMsMax = 3_600_000
/** How long a clock has to stand where it jumped to, or further ahead, before it is believed to be there. */
export const standingMs = dayMs
/** No clock is believed to be so early: a time before this only counts how long processes have run. */
const begunMs = 365 * dayMs

/**
 * @param last null before the first look.
 * @param elapsedMs since the last look, by a clock that nobody sets; 0 when another process made it.
 */
export function lookAtClock(last: TrustedTime | null, nowMs: number, elapsedMs: number): TrustedTime {
  const atMs = (last?.atMs ?? 0) + elapsedMs
  const aheadMs = nowMs - atMs
  if (Math.abs(aheadMs) <= believedMsMax) return trustClock(nowMs)
  // A clock that goes on as time does stays as far ahead. One of a machine that was off or asleep is further ahead by that
  // time, which happens every day; it confirms what it said before as well as one that stayed. One that goes back does not.
  const isConfirmed = last !== null && last.aheadMs !== 0 && last.aheadMs - aheadMs <= believedMsMax
  if (!isConfirmed) return { atMs, aheadMs, stoodMs: 0 }
  const stoodMs = last.stoodMs + elapsedMs
  if (stoodMs < standingMs) return { atMs, aheadMs: last.aheadMs, stoodMs }
  // What it has gained meanwhile was not seen for a day yet.
  return lookAtClock({ atMs: atMs + last.aheadMs, aheadMs: 0, stoodMs: 0 }, nowMs, 0)
}

function trustClock(nowMs: number): TrustedTime {
  return { atMs: nowMs, aheadMs: 0, stoodMs: 0 }
}

export function isBelieved({ aheadMs }: TrustedTime): boolean {
  return aheadMs === 0
}

/** Whether the wall clock was ever believed. */
export function hasBegun({ atMs }: TrustedTime): boolean {
  return atMs >= begunMs
}
