// Derives the id of a reject from the place of its record in the log, so that reprocessing a record replaces its own reject.

import type { RecordPlace } from '#core/events/log-stream.ts'
import { uuidV5 } from '#core/events/uuid-v5.ts'

/** Source: ours. */
const rejectNamespace = Buffer.from('5d1c2a0e0b7e4f6c9a415e0d8f6b7c33', 'hex')

/** The id of a log record's reject, the same every time the record is processed. Source: ours. */
export function rejectUuid({ stream, offset }: RecordPlace, receivedAtMs: number): string {
  return uuidV5(rejectNamespace, `${stream}:${offset}:${receivedAtMs}`)
}

/**
 * The id for an unreadable record. It has no readable time, so the log's id distinguishes it from records of other logs.
 */
export function damagedRecordUuid(logId: string, { stream, offset }: RecordPlace): string {
  return uuidV5(rejectNamespace, `damaged:${logId}:${stream}:${offset}`)
}
