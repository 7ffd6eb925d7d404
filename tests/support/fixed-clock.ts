import { setImmediate as turn } from 'node:timers/promises'
import type { FetchClock } from '#importer/fetch/waiting.ts'
import type { Clock } from '#ports/clock.ts'

/** A clock that stands still until a test moves it. */
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

export interface QuickClock extends FetchClock {
  readonly waits: readonly number[]
  /** The sum of all waits. */
  readonly sleptMs: () => number
}

/** A clock for an importer. It advances only by waits, which return at once. */
export function quickClock(startMs = Date.UTC(2026, 0, 15)): QuickClock {
  const waits: number[] = []
  const sleptMs = () => waits.reduce((sum, ms) => sum + ms, 0)
  return {
    waits,
    sleptMs,
    nowMs: () => startMs + sleptMs(),
    sleep: async (ms, signal) => {
      await turn()
      signal.throwIfAborted()
      waits.push(ms)
    },
    random: () => 0.5,
  }
}
