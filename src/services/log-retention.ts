// Deletes what the log no longer needs: whole segments that lie behind the committed position and are older than the
// retention. What is not processed yet is never deleted, however old; the log itself decides where segments end.

import { type LogLane, logLanes } from '#core/events/captured-event.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventLogReader } from '#ports/event-log.ts'
import type { ManagementStore } from '#ports/management-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { runPeriodically } from './run-periodically.ts'

const everyMs = 60_000

export interface LogRetention {
  run(signal: AbortSignal): Promise<void>
  /** One round. @returns how many segments went. @throws PortError */
  deleteNow(): Promise<number>
}

export function createLogRetention(options: {
  readonly log: Pick<EventLogReader, 'deleteBehind'>
  /** Answers the durable position, not what the worker holds in memory. */
  readonly positions: Pick<ManagementStore, 'findLogPosition'>
  readonly clock: Clock
  readonly logger: Logger
  readonly retentionMs: number
  readonly lanes?: readonly LogLane[]
}): LogRetention {
  const { log, positions, clock, logger, retentionMs } = options

  async function deleteNow(): Promise<number> {
    let count = 0
    for (const lane of options.lanes ?? logLanes) {
      const { offset } = await positions.findLogPosition(lane)
      count += (await log.deleteBehind(lane, offset, clock.nowMs() - retentionMs)).deletedSegmentCount
    }
    if (count > 0) logger.info({ segmentCount: count }, 'processed log segments deleted')
    return count
  }

  return {
    deleteNow,
    run: signal =>
      runPeriodically(async () => void (await deleteNow()), { everyMs, what: 'log retention', logger, signal }),
  }
}
