// Forgets cookieless visitors once their day is closed: deletes its salt and the worker's state of its visitors.
// Source: docs/wire/ingestion.md 13.

import { findDaysToKeep } from '#core/cookieless/visitor-day.ts'
import type { Clock } from '#ports/clock.ts'
import type { CookielessSalts, CookielessVisitorUpkeep } from '#ports/state/cookieless-visitors.ts'
import type { Schedule } from '../shared/run-periodically.ts'

/** How many rows of each kind one transaction deletes, so that chunks need not wait for it. */
const rowsAtOnceMax = 1_000

export function createVisitorDataCleanup({
  salts,
  visitors,
  clock,
}: {
  readonly salts: Pick<CookielessSalts, 'deleteSaltsExcept'>
  readonly visitors: CookielessVisitorUpkeep
  /**
   * The wall clock, not the retention clock as for other deletion by age, because visitors must be forgotten on time. If
   * the clock is ahead, these days are closed for the fronts as well; the only cost is that a day's visitors are counted
   * again.
   */
  readonly clock: Clock
}): Schedule {
  async function round(signal: AbortSignal): Promise<void> {
    const kept = findDaysToKeep(clock.nowMs())
    let justGone: readonly string[] = []
    try {
      // If the clock here is ahead, a front whose day is still open recreates the salt until the next round. The visitors
      // of that salt must be known until then; otherwise a visitor that has identified itself would get the same hash as
      // before.
      justGone = await salts.deleteSaltsExcept(kept)
    } finally {
      while (!signal.aborted && (await visitors.deleteVisitorsExcept(kept, justGone, rowsAtOnceMax)) > 0);
    }
  }

  return { everyMs: 60_000, what: 'deleting cookieless visitors of past days', round }
}
