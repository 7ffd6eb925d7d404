// Deletes old reports on a project's ingestion: warnings, and the counts of events that fronts refused.

import { dayMs } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'
import type { RefusedStore, WarningStore } from '#ports/state/accounting-store.ts'
import type { Schedule } from '../shared/run-periodically.ts'
import type { RetentionClock } from './retention-clock.ts'

/** Whole UTC days including today, so that looking back 30 days of 24 h finds everything. */
const keptDays = 31

export function createOldCountsCleanup({
  store,
  clock,
}: {
  readonly store: Pick<WarningStore, 'deleteWarningsOutside'> & Pick<RefusedStore, 'deleteRefusedOutside'>
  readonly clock: Pick<RetentionClock, 'nowMs' | 'isTrusted'>
}) {
  async function round(): Promise<void> {
    const firstKept = utcDay(clock.nowMs() - (keptDays - 1) * dayMs)
    // Days far in the future come from a clock that was ahead, perhaps by years, and are deleted too.
    const lastKept = clock.isTrusted() ? utcDay(clock.nowMs() + keptDays * dayMs) : null
    await store.deleteWarningsOutside(firstKept, lastKept)
    await store.deleteRefusedOutside(firstKept, lastKept)
  }

  return { everyMs: 3_600_000, what: 'deleting old warnings', round } satisfies Schedule
}
