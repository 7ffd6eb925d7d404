// Thins out nudges. A nudge is a message to another process that says the same however often it is sent, so a busy
// stream sends one every few milliseconds instead of one per commit.

import type { LogStream } from '#core/events/log-stream.ts'

/** Shorter than the worker's rest between small chunks. */
const everyMs = 10

/** Passes on a stream's first nudge at once, and then at most one per 10 ms; the last one always arrives. */
export function coalesceNudges(nudge: (stream: LogStream) => void): (stream: LogStream) => void {
  /** Streams nudged within the last 10 ms; true if another nudge was requested since. */
  const resting = new Map<LogStream, boolean>()
  const send = (stream: LogStream) => {
    resting.set(stream, false)
    setTimeout(() => {
      if (resting.get(stream) === true) send(stream)
      else resting.delete(stream)
    }, everyMs).unref()
    nudge(stream)
  }
  return stream => {
    if (resting.has(stream)) resting.set(stream, true)
    else send(stream)
  }
}
