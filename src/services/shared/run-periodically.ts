// A task that is repeated until the process stops. A failed run is logged and left to the next one.

import type { Logger } from '#telemetry/log.ts'
import { waitOrStop } from './back-off.ts'

/** One line per this long while it goes on failing. */
const complaintPauseMs = 60_000

export async function runPeriodically(
  task: () => Promise<void>,
  options: { readonly everyMs: number; readonly what: string; readonly logger: Logger; readonly signal: AbortSignal },
): Promise<void> {
  const { everyMs, what, logger, signal } = options
  let complaintFromMs = Number.NEGATIVE_INFINITY
  while (!signal.aborted) {
    try {
      await task()
    } catch (cause) {
      if (performance.now() >= complaintFromMs) {
        complaintFromMs = performance.now() + complaintPauseMs
        logger.warn({ err: cause }, `${what} failed and is tried again`)
      }
    }
    await waitOrStop(everyMs, signal)
  }
}
