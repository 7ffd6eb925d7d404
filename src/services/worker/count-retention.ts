// Deletes old reports on a project's ingestion: warnings, and the counts of events that fronts refused.

import { dayMs } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'
import type { Clock } from '#ports/clock.ts'
import type { RefusedStore, WarningStore } from '#ports/state/accounting-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { runPeriodically } from '../shared/run-periodically.ts'

/** Whole UTC days, today among them, so that a look back over 30 days of 24 h finds everything. */
export const keptDays = 31
const everyMs = 3_600_000

export function createCountRetention(options: {
  readonly store: Pick<WarningStore, 'deleteWarningsBefore'> & Pick<RefusedStore, 'deleteRefusedBefore'>
  readonly clock: Clock
  readonly logger: Logger
  /** Whether this worker has the schedules. */
  readonly mayRun?: () => Promise<boolean>
}): { run(signal: AbortSignal): Promise<void>; deleteNow(): Promise<void> } {
  const { store, clock, logger, mayRun } = options

  /** Runs one round. @throws PortError */
  async function deleteNow(): Promise<void> {
    const firstKept = utcDay(clock.nowMs() - (keptDays - 1) * dayMs)
    await store.deleteWarningsBefore(firstKept)
    await store.deleteRefusedBefore(firstKept)
  }

  return {
    deleteNow,
    run: signal => runPeriodically(deleteNow, { everyMs, what: 'deleting old warnings', logger, signal, mayRun }),
  }
}
