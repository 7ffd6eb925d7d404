// A clock that tests move, also in a child process. Refused anywhere a stranger could reach it.

import type { Clock } from '#ports/clock.ts'

export function isTestClockAllowed(host: string): boolean {
  return process.env.NODE_ENV === 'test' && /^(127\.\d+\.\d+\.\d+|::1|localhost)$/.test(host)
}

export function movableClock(startMs: number): Clock & { set(nowMs: number): void } {
  let nowMs = startMs
  return {
    nowMs: () => nowMs,
    set: ms => {
      nowMs = ms
    },
  }
}
