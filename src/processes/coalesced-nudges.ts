// A nudge is a message to another process, and says the same however often it is sent: a busy lane sends one now and
// then instead of one per commit.

import type { LogLane } from '#core/events/captured-event.ts'

/** Shorter than the worker rests between small chunks. */
const everyMs = 10

/** Passes the first nudge of a lane on at once, and then at most one per 10 ms; the last one always arrives. */
export function coalesceNudges(nudge: (lane: LogLane) => void): (lane: LogLane) => void {
  /** Lanes that were nudged just now; true when somebody asked again since. */
  const resting = new Map<LogLane, boolean>()
  const send = (lane: LogLane) => {
    resting.set(lane, false)
    setTimeout(() => {
      if (resting.get(lane) === true) send(lane)
      else resting.delete(lane)
    }, everyMs).unref()
    nudge(lane)
  }
  return lane => {
    if (resting.has(lane)) resting.set(lane, true)
    else send(lane)
  }
}
