// Deletes old reports on a project's ingestion: warnings, and the counts of events that fronts refused.

import { dayMs } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'
import type { RefusedStore, WarningStore } from '#ports/state/accounting-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { runPeriodically } from '../shared/run-periodically.ts'
import type { RetentionClock } from './retention-clock.ts'

/** Whole UTC days including today, so that looking back 30 days of 24 h finds everything. */
export const keptDays = 31
const everyMs = 3_600_000

export function createCountRetention(options: {
  readonly store: Pick<WarningStore, 'deleteWarningsOutside'> & Pick<RefusedStore, 'deleteRefusedOutside'>
  readonly clock: Pick<RetentionClock, 'nowMs' | 'isTrusted'>
  readonly logger: Logger
  /** Whether this worker holds the schedule lease, so that it runs the schedules. */
  readonly mayRun?: () => Promise<boolean>
}): { run(signal: AbortSignal): Promise<void>; deleteNow(): Promise<void> } {
  const { store, clock, logger, mayRun } = options

  /** Runs one round. @throws PortError */
  async function deleteNow(): Promise<void> {
    const firstKept = utcDay(clock.nowMs() - (keptDays - 1) * dayMs)
    // Days in the future come from a clock that was ahead, perhaps by years.
    const lastKept = clock.isTrusted() ? utcDay(clock.nowMs() + keptDays * dayMs) : null
    await store.deleteWarningsOutside(firstKept, lastKept)
    await store.deleteRefusedOutside(firstKept, lastKept)
  }

  return {
    deleteNow,
    run: signal => runPeriodically(deleteNow, { everyMs, what: 'deleting old warnings', logger, signal, mayRun }),
  }
}
