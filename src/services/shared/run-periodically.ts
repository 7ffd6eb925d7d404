// Repeats a task until the process stops. A failed run is logged, and the next run tries again.

import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import { waitOrStop } from './wait-or-stop.ts'

/** While a task keeps failing, it logs at most one line per this time. */
const complaintPauseMs = 60_000

/** A task that one worker repeats for all workers. */
export interface Schedule {
  readonly everyMs: number
  readonly what: string
  /** @throws PortError */
  round(signal: AbortSignal): Promise<unknown>
}

/** @param task must end when the signal aborts, or soon after. */
export async function runPeriodically(
  task: Schedule['round'],
  options: Pick<Schedule, 'everyMs' | 'what'> & {
    readonly logger: Logger
    readonly signal: AbortSignal
    /**
     * Called before each round; false skips it, because another worker has the task. When absent, no round is skipped.
     */
    readonly mayRun?: (() => Promise<boolean>) | undefined
  },
): Promise<void> {
  const { everyMs, what, logger, signal, mayRun } = options
  let complaintFromMs = Number.NEGATIVE_INFINITY
  while (!signal.aborted) {
    try {
      if (mayRun === undefined || (await mayRun())) await task(signal)
    } catch (cause) {
      if (signal.aborted) return
      if (performance.now() >= complaintFromMs) {
        complaintFromMs = performance.now() + complaintPauseMs
        // The error is due to size or load, so its stack does not help.
        const isSlow = cause instanceof PortError && cause.code === 'timeout'
        if (isSlow) logger.warn({ reason: cause.message }, `${what} took too long; retrying`)
        else logger.warn({ err: cause }, `${what} failed; retrying`)
      }
    }
    await waitOrStop(everyMs, signal)
  }
}
