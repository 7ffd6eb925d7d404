// Opens the log that a front appends to. Readers that wait for records are woken up after each durable commit.

import { embeddedStreamNames } from '#adapters/sqlite-log/embedded-streams.ts'
import { openSqliteLogWriter } from '#adapters/sqlite-log/sqlite-log-writer.ts'
import type { Config } from '#config.ts'
import type { LogStream } from '#core/events/log-stream.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventLogWriter } from '#ports/log/event-log.ts'
import type { LogBindingStore } from '#ports/state/worker-state.ts'
import { readPositions } from '#services/progress/bind-log.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import { getLogFolder } from './log.ts'

/**
 * A segment is deleted as a whole when its last records exceed the retention. Its first records are therefore kept longer,
 * by the time that the segment covers: a twenty-fourth of the retention.
 */
const segmentAgePerHourMs = 3_600_000 / 24
const segmentAgeMinMs = 600_000

export interface LogWriterOptions {
  readonly config: Config
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Metrics
  /** The state's position in each stream; nothing is appended at a lower offset. */
  readonly positions: Pick<LogBindingStore, 'findLogPosition'>
  /** Called with the stream after each durable commit. */
  readonly wakeUp: (stream: LogStream) => void
}

export async function openLogWriter(options: LogWriterOptions, opened: AsyncDisposableStack): Promise<EventLogWriter> {
  const { config, clock, logger, metrics, positions, wakeUp } = options
  const writer = await openSqliteLogWriter({
    folder: getLogFolder(config),
    firstOffsets: await readPositions(positions, embeddedStreamNames),
    nowMs: clock.nowMs,
    logBytesMax: config.logBytesMax,
    minFreeBytes: config.freeBytesMin,
    segmentAgeMs: Math.max(config.logRetentionHours * segmentAgePerHourMs, segmentAgeMinMs),
    logger,
    onSynced: ({ stream }) => wakeUp(stream),
  })
  const log = opened.adopt(writer, each => each.close())
  metrics.onCollect(() => {
    for (const [stream, recordCount] of log.countWaitingRecords()) metrics.logQueueRecords.set({ stream }, recordCount)
  })
  return log
}
