// A clock that tests can move, in a child process too (`hooks.ts`).

import type { Clock } from '#ports/clock.ts'

export function createMovableClock(startMs: number): Clock & { set(nowMs: number): void } {
  let nowMs = startMs
  return {
    nowMs: () => nowMs,
    set: ms => {
      nowMs = ms
    },
  }
}
