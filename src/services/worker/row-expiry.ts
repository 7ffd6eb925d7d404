// Deletes rows of the event store that are too old according to the retention clock.

import type { EventStoreUpkeep } from '#ports/events/event-store-upkeep.ts'
import type { Logger } from '#telemetry/log.ts'
import { runPeriodically } from '../shared/run-periodically.ts'
import type { RetentionClock } from './retention-clock.ts'

const everyMs = 3_600_000

export function createRowExpiry(options: {
  readonly events: Pick<EventStoreUpkeep, 'deleteExpired'>
  readonly retentionClock: Pick<RetentionClock, 'nowMs' | 'isTrusted'>
  readonly logger: Logger
  readonly mayRun?: () => Promise<boolean>
}): { run(signal: AbortSignal): Promise<void> } {
  const { events, retentionClock, logger, mayRun } = options
  const task = () => events.deleteExpired({ nowMs: retentionClock.nowMs(), isTrusted: retentionClock.isTrusted() })
  return { run: signal => runPeriodically(task, { everyMs, what: 'deleting expired rows', logger, signal, mayRun }) }
}
