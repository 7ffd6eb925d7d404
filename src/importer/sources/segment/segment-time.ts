// The time of a Segment message. Source: docs/wire/import.md §1.3 (times).

import { type JsonObject, ownValue } from '#core/json.ts'
import { RecordReject } from '#importer/records/imported-event.ts'
import { isEmptyValue } from '#importer/records/record-fields.ts'
import { readTime } from '#importer/records/source-time.ts'
import { checkTime, type TimeWindow } from '#importer/records/time-window.ts'

export interface SegmentTime {
  readonly timeUs: number
  readonly field: string
}

/**
 * Reads `timestamp`, which Segment has corrected for the device's clock; else `originalTimestamp`, corrected here if
 * `sentAt` and
 * `receivedAt` allow it; else the time of receipt.
 * @param zone of times that name none; null refuses them.
 * @returns microseconds since 1970, and the field used.
 * @throws RecordReject
 */
export function readSegmentTime(record: JsonObject, zone: string | null, window: TimeWindow): SegmentTime {
  const read = (field: string): number | null => {
    const value = ownValue(record, field)
    return value === undefined || isEmptyValue(value) ? null : readTime(value, { zone }, field)
  }
  for (const field of fields) {
    const timeUs = read(field)
    if (timeUs === null) continue
    const correctedUs = field === 'originalTimestamp' ? timeUs - estimateClockErrorUs(read) : timeUs
    checkTime(correctedUs, window, field)
    return { timeUs: correctedUs, field }
  }
  const written = fields.find(field => !isEmptyValue(ownValue(record, field)))
  throw new RecordReject(written === undefined ? 'timestamp_missing' : 'timestamp_invalid', written ?? fields[0])
}

/** The other time fields of a message. @param used the field of the event's time. */
export function listOtherTimeFields(record: JsonObject, used: string): readonly string[] {
  return [...fields, 'sentAt'].filter(field => field !== used && !isEmptyValue(ownValue(record, field)))
}

const fields = ['timestamp', 'originalTimestamp', 'receivedAt'] as const

/** How far the device's clock is ahead, in microseconds; 0 when unknown. */
function estimateClockErrorUs(read: (field: string) => number | null): number {
  const readOrNull = (field: string) => {
    try {
      return read(field)
    } catch (error) {
      if (error instanceof RecordReject) return null
      throw error
    }
  }
  const [sentUs, receivedUs] = [readOrNull('sentAt'), readOrNull('receivedAt')]
  return sentUs === null || receivedUs === null ? 0 : sentUs - receivedUs
}
