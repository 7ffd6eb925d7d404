// Limits log lines about events that any client, or an unreachable store, can cause thousands of times a second: writes a
// line now and then, with the number of events. One line per event would fill the disk and slow everything else down.

const usualPauseMs = 60_000

/**
 * Limits the log lines about one kind of event.
 * @param monotonicNowMs milliseconds from an arbitrary start; never jumps back.
 * @param pauseMs the shortest time between two lines.
 * @returns a function to call for each event. It calls `log` when a line is due, with the number of events since the last
 * line, including the current event.
 */
export function createLogLimiter(
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
