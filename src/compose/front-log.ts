// Where a front appends what it accepts: its own writer of the log in the data folder, or the log that a test put in its
// place. Either way whoever waits for records is nudged after each durable commit.

import { openSqliteLogWriter, type SqliteLogWriter } from '#adapters/sqlite-log/sqlite-log-writer.ts'
import { type LogLane, logLanes } from '#core/events/captured-event.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventLogWriter } from '#ports/event-log.ts'
import type { ManagementStore } from '#ports/management-store.ts'
import { readFirstOffsets } from '#services/processing/bind-log.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { Config } from '../config.ts'
import { logFolder } from './stores.ts'

export interface FrontLogOptions {
  readonly config: Config
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Metrics
  /** Where the state stands in each lane, below which nothing is appended. */
  readonly positions: Pick<ManagementStore, 'findLogPosition'>
  /** Called with the lane after each durable commit. */
  readonly nudge: (lane: LogLane) => void
  /** Used in place of a writer of our own. */
  readonly eventLog?: EventLogWriter | undefined
}

export interface FrontLog {
  readonly eventLog: EventLogWriter
  /** The same log where it is our own, whose condition is known; otherwise null. */
  readonly ownLog: SqliteLogWriter | null
}

export async function openFrontLog(options: FrontLogOptions): Promise<FrontLog> {
  if (options.eventLog !== undefined) return { eventLog: nudgingLog(options.eventLog, options.nudge), ownLog: null }
  const ownLog = await openOwnLog(options)
  return { eventLog: ownLog, ownLog }
}

async function openOwnLog(options: FrontLogOptions): Promise<SqliteLogWriter> {
  const { config, clock, logger, metrics, positions, nudge } = options
  const log = await openSqliteLogWriter({
    folder: logFolder(config),
    firstOffsets: await readFirstOffsets(positions),
    nowMs: clock.nowMs,
    logBytesMax: config.logBytesMax,
    minFreeBytes: config.freeBytesMin,
    logger,
    onSynced: ({ lane }) => nudge(lane),
  })
  metrics.onCollect(() => {
    for (const lane of logLanes) metrics.logQueueRecords.set({ lane }, log.waitingRecords(lane))
  })
  return log
}

/** A log from outside reports no commits, but its `append` returns behind one. */
function nudgingLog(log: EventLogWriter, nudge: (lane: LogLane) => void): EventLogWriter {
  return {
    append: async (lane, records) => {
      await log.append(lane, records)
      nudge(lane)
    },
    close: () => log.close(),
  }
}
