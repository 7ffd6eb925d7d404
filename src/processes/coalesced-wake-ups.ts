// Combines wake-ups. A wake-up is a message to another process that means the same no matter how often it is sent, so a
// busy stream sends one wake-up every few milliseconds instead of one per commit.

import type { LogStream } from '#core/events/log-stream.ts'

/** Shorter than the worker's rest between small chunks. */
const everyMs = 10

/** Passes on a stream's first wake-up at once, and then at most one per 10 ms; the last wake-up is always passed on. */
export function coalesceWakeUps(wakeUp: (stream: LogStream) => void): (stream: LogStream) => void {
  /** Streams woken up within the last 10 ms. The value is true if another wake-up was requested since. */
  const resting = new Map<LogStream, boolean>()
  const send = (stream: LogStream) => {
    resting.set(stream, false)
    setTimeout(() => {
      if (resting.get(stream) === true) send(stream)
      else resting.delete(stream)
    }, everyMs).unref()
    wakeUp(stream)
  }
  return stream => {
    if (resting.has(stream)) resting.set(stream, true)
    else send(stream)
  }
}
