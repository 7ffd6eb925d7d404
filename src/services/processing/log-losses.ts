// Handles records that the log lost, as reported by a chunk: they are recorded next to the log, logged and counted.

import type { LogStream } from '#core/events/log-stream.ts'
import type { LogChunk, LogLoss, MissingRecords } from '#ports/log/event-log.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'

/** How much of a damaged record is kept next to the log. */
const keptBytesMax = 16 * 1024

/**
 * The losses of a chunk: missing records, and damaged ones, whose project is unknown. The caller must record them before the
 * position passes them, so that a crash reports them twice rather than never.
 */
export function collectLogLosses({ stream, missing, records }: LogChunk, noticedAtMs: number): LogLoss[] {
  const losses: LogLoss[] = []
  if (missing !== null) {
    const { recordCount, fromOffset, toOffset, file } = missing
    losses.push({
      ...{ stream, fromOffset, toOffset, file, noticedAtMs },
      ...(recordCount !== toOffset - fromOffset && { recordCount }),
    })
  }
  for (const { offset, record } of records) {
    if (record.kind !== 'damaged') continue
    const body = Buffer.from(record.body.subarray(0, keptBytesMax)).toString('base64')
    losses.push({ stream, fromOffset: offset, toOffset: offset + 1, file: null, noticedAtMs, body })
  }
  return losses
}

export function warnOfDamagedRecords({ stream, records }: LogChunk, { logger }: { readonly logger: Logger }): void {
  for (const { offset, record } of records)
    if (record.kind === 'damaged') logger.error({ stream, offset }, 'damaged log record stored as a reject')
}

/** The log lost these records before they were processed, so their projects are unknown. */
export function warnOfMissingRecords(
  stream: LogStream,
  { recordCount, fromOffset, toOffset, file }: MissingRecords,
  { logger, metrics }: { readonly logger: Logger; readonly metrics: Metrics },
): void {
  const reason = file === null ? 'a log file was removed, truncated or damaged' : `${file} is damaged`
  logger.error({ stream, recordCount, fromOffset, toOffset }, `records are missing from the log: ${reason}`)
  metrics.eventsProcessed.inc({ lane: stream, outcome: 'rejected', reason: 'log_record_missing' }, recordCount)
}
