// When a message of Segment happened. Source: docs/wire/import.md §1.3 (times).

import { type JsonObject, ownValue } from '#core/json.ts'
import { RecordReject } from '#importer/records/imported-event.ts'
import { isEmptyValue } from '#importer/records/record-fields.ts'
import { readTime } from '#importer/records/source-time.ts'
import { checkTime, type TimeWindow } from '#importer/records/time-window.ts'

/**
 * `timestamp`, which Segment has already corrected for the clock of the device; else the same correction; else the
 * device's own time; else that of receipt.
 * @param zone of times that name none; null refuses them.
 * @returns microseconds since 1970.
 * @throws RecordReject
 */
export function segmentTime(record: JsonObject, zone: string | null, window: TimeWindow): number {
  const read = (field: string): number | null => {
    const value = ownValue(record, field)
    return value === undefined || isEmptyValue(value) ? null : readTime(value, { zone }, field)
  }
  for (const field of fields) {
    const timeUs = read(field)
    if (timeUs === null) continue
    const correctedUs = field === 'originalTimestamp' ? timeUs - clockErrorOf(read) : timeUs
    checkTime(correctedUs, window, field)
    return correctedUs
  }
  const written = fields.find(field => !isEmptyValue(ownValue(record, field)))
  throw new RecordReject(written === undefined ? 'timestamp_missing' : 'timestamp_invalid', written ?? fields[0])
}

const fields = ['timestamp', 'originalTimestamp', 'receivedAt'] as const

/** By how much the clock of the device is ahead, in microseconds; none where it cannot be told. */
function clockErrorOf(read: (field: string) => number | null): number {
  const readable = (field: string) => {
    try {
      return read(field)
    } catch (error) {
      if (error instanceof RecordReject) return null
      throw error
    }
  }
  const [sentUs, receivedUs] = [readable('sentAt'), readable('receivedAt')]
  return sentUs === null || receivedUs === null ? 0 : sentUs - receivedUs
}
