// By which time things are old enough to be deleted. A wall clock that was set, or that a machine lost, says anything, and
// what is deleted by it does not come back. So its word is not enough: time that has passed while a process ran is
// certain, and a clock that moved otherwise is believed once it has stood there for a day.
// Source: ours, docs/decisions/0056-nothing-is-deleted-on-one-look-at-the-clock.md.

import { dayMs } from './time.ts'

export interface TrustedTime {
  /** Epoch ms: so late it is for certain, or as the wall clock said when it was last believed. 0 before that. */
  readonly atMs: number
  /** While the wall clock is not believed: how far ahead of `atMs` it is, negative when it is behind; 0 otherwise. */
  readonly aheadMs: number
  /** How long processes have seen the wall clock stand there; 0 while it is believed. */
  readonly stoodMs: number
}

/** A restart takes less, and a clock that is wrong by less deletes too little early to matter. */
export const believedMsMax = 3_600_000
/** How long a clock has to stand where it jumped to before it is believed. */
export const standingMs = dayMs

/**
 * @param last null before the first look.
 * @param elapsedMs since the last look, by a clock that nobody sets; 0 when another process made it.
 */
export function lookAtClock(last: TrustedTime | null, nowMs: number, elapsedMs: number): TrustedTime {
  const atMs = (last?.atMs ?? 0) + elapsedMs
  const aheadMs = nowMs - atMs
  if (Math.abs(aheadMs) <= believedMsMax) return believed(nowMs)
  // A clock that goes on as time does stays as far ahead.
  const isWhereItWas = last !== null && Math.abs(last.aheadMs - aheadMs) <= believedMsMax
  const stoodMs = isWhereItWas ? last.stoodMs + elapsedMs : 0
  return stoodMs >= standingMs ? believed(nowMs) : { atMs, aheadMs, stoodMs }
}

function believed(nowMs: number): TrustedTime {
  return { atMs: nowMs, aheadMs: 0, stoodMs: 0 }
}

export function isBelieved({ aheadMs }: TrustedTime): boolean {
  return aheadMs === 0
}
