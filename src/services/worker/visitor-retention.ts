// Forgets who visitors without cookies were once their day is closed: its salt goes, and what the worker kept of them.
// Source: docs/wire/ingestion.md 13.

import { keptDays } from '#core/cookieless/visitor-day.ts'
import type { Clock } from '#ports/clock.ts'
import type { CookielessSalts } from '#ports/state/cookieless-salts.ts'
import type { CookielessVisitorUpkeep } from '#ports/state/cookieless-visitors.ts'
import type { Logger } from '#telemetry/log.ts'
import { runPeriodically } from '../shared/run-periodically.ts'

const everyMs = 60_000
/** What one transaction deletes of each kind, so that chunks need not wait for it. */
const rowsAtOnceMax = 1_000

export function createVisitorRetention(options: {
  readonly salts: Pick<CookielessSalts, 'deleteSaltsExcept'>
  readonly visitors: CookielessVisitorUpkeep
  /**
   * The wall clock, unlike what else is deleted for its age: to forget in time is the promise. One that is ahead has
   * closed these days for the fronts as well, and costs no more than that a day's visitors are counted anew.
   */
  readonly clock: Clock
  readonly logger: Logger
  /** Whether this worker has the schedules. */
  readonly mayRun?: () => Promise<boolean>
}): { run(signal: AbortSignal): Promise<void>; forgetNow(signal: AbortSignal): Promise<void> } {
  const { salts, visitors, clock, logger, mayRun } = options

  /** Runs one round. @throws PortError */
  async function forgetNow(signal: AbortSignal): Promise<void> {
    const kept = keptDays(clock.nowMs())
    let justGone: readonly string[] = []
    try {
      // A front for which the day is open brings its salt back until the next round: then the clock here is ahead. Its
      // visitors have to be known for as long, or one who identified would be taken for who came before.
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
