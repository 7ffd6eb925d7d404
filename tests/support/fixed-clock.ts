import type { Clock } from '#ports/clock.ts'

/** A clock that stands still until it is moved. */
export function fixedClock(startMs: number | string): Clock & { set(ms: number): void; advance(ms: number): void } {
  let nowMs = typeof startMs === 'number' ? startMs : Date.parse(startMs)
  return {
    nowMs: () => nowMs,
    set: ms => {
      nowMs = ms
    },
    advance: ms => {
      nowMs += ms
    },
  }
}
