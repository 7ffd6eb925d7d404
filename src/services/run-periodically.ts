// A task that is repeated until the process stops. A failed run is logged and left to the next one.

import type { Logger } from '#telemetry/log.ts'
import { waitOrStop } from './back-off.ts'

export async function runPeriodically(
  task: () => Promise<void>,
  options: { readonly everyMs: number; readonly what: string; readonly logger: Logger; readonly signal: AbortSignal },
): Promise<void> {
  const { everyMs, what, logger, signal } = options
  while (!signal.aborted) {
    try {
      await task()
    } catch (cause) {
      logger.warn({ err: cause }, `${what} failed and is tried again`)
    }
    await waitOrStop(everyMs, signal)
  }
}
