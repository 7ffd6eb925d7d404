import type { Timers } from '#ports/clock.ts'

export const systemTimers: Timers = {
  startTimer: (callback, everyMs) => {
    const timer = setInterval(callback, everyMs).unref()
    return { cancel: () => clearInterval(timer) }
  },
  startTimeout: (callback, afterMs) => {
    const timer = setTimeout(callback, afterMs).unref()
    return { cancel: () => clearTimeout(timer) }
  },
}
