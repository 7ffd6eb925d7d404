// A clock and timers that stand still until a test moves them. Between two timers, pending promises can run.

import { setImmediate as nextTurn } from 'node:timers/promises'

interface Due {
  atMs: number
  readonly everyMs: number | null
  readonly callback: () => void
}

export function movedTime() {
  let nowMs = 1_000_000
  const timers = new Set<Due>()
  const add = (callback: () => void, afterMs: number, everyMs: number | null) => {
    const due = { atMs: nowMs + afterMs, everyMs, callback }
    timers.add(due)
    return { cancel: () => void timers.delete(due) }
  }
  return {
    monotonicNowMs: () => nowMs,
    startTimer: (callback: () => void, everyMs: number) => add(callback, everyMs, everyMs),
    startTimeout: (callback: () => void, afterMs: number) => add(callback, afterMs, null),
    timerCount: () => timers.size,
    /** Lets time pass without running timers, as synchronous work does. */
    pass: (ms: number) => {
      nowMs += ms
    },
    async move(ms: number): Promise<void> {
      const untilMs = nowMs + ms
      for (;;) {
        await nextTurn()
        const next = [...timers].sort((a, b) => a.atMs - b.atMs)[0]
        if (next === undefined || next.atMs > untilMs) break
        nowMs = Math.max(nowMs, next.atMs)
        if (next.everyMs === null) timers.delete(next)
        else next.atMs += next.everyMs
        next.callback()
      }
      nowMs = Math.max(nowMs, untilMs)
      await nextTurn()
    },
  }
}
