// Forgets cookieless visitors once their day is closed: deletes its salt and the worker's state of its visitors.
// Source: docs/wire/ingestion.md 13.

import { findDaysToKeep } from '#core/cookieless/visitor-day.ts'
import type { Clock } from '#ports/clock.ts'
import type { CookielessSalts } from '#ports/state/cookieless-salts.ts'
import type { CookielessVisitorUpkeep } from '#ports/state/cookieless-visitors.ts'
import type { Logger } from '#telemetry/log.ts'
import { runPeriodically } from '../shared/run-periodically.ts'

const everyMs = 60_000
/** How many rows of each kind one transaction deletes, so that chunks need not wait for it. */
const rowsAtOnceMax = 1_000

export function createVisitorRetention(options: {
  readonly salts: Pick<CookielessSalts, 'deleteSaltsExcept'>
  readonly visitors: CookielessVisitorUpkeep
  /**
   * The wall clock, unlike for other deletion by age: the promise is to forget in time. If the clock is ahead, it has closed
   * these days for the fronts as well; the only cost is that a day's visitors are counted again.
   */
  readonly clock: Clock
  readonly logger: Logger
  /** Whether this worker holds the schedule lease, so that it runs the schedules. */
  readonly mayRun?: () => Promise<boolean>
}): { run(signal: AbortSignal): Promise<void>; forgetNow(signal: AbortSignal): Promise<void> } {
  const { salts, visitors, clock, logger, mayRun } = options

  /** Runs one round. @throws PortError */
  async function forgetNow(signal: AbortSignal): Promise<void> {
    const kept = findDaysToKeep(clock.nowMs())
    let justGone: readonly string[] = []
    try {
      // If the clock here is ahead, a front whose day is still open recreates the salt until the next round. Its visitors must
      // be known until then, or a visitor that identified would be taken for the one before.
      justGone = await salts.deleteSaltsExcept(kept)
    } finally {
      while (!signal.aborted && (await visitors.deleteVisitorsExcept(kept, justGone, rowsAtOnceMax)) > 0);
    }
  }

  return {
    forgetNow,
    run: signal =>
      runPeriodically(forgetNow, {
        everyMs,
        what: 'deleting cookieless visitors of past days',
        logger,
        signal,
        mayRun,
      }),
  }
}
