// Lines for what strangers, or a store that is away, make happen thousands of times a second: one now and then, with how often
// it happened. Written each time, they would fill the disk and take the time of everything else.

const usualPauseMs = 60_000

/**
 * Bounds the lines of one kind of event.
 * @param monotonicNowMs milliseconds from any start that never jump back.
 * @param pauseMs how long there is no other line after one.
 * @returns called for each event. It calls `log` when a line is due, with how many events there were since the last line, this
 *   one included.
 */
export function occasionally(
  monotonicNowMs: () => number,
  pauseMs: number = usualPauseMs,
): (log: (times: number) => void) => void {
  let nextLineAtMs = Number.NEGATIVE_INFINITY
  let times = 0
  return log => {
    times++
    const nowMs = monotonicNowMs()
    if (nowMs < nextLineAtMs) return
    nextLineAtMs = nowMs + pauseMs
    const sinceLastLine = times
    times = 0
    log(sinceLastLine)
  }
}
