// The time of a record: without one that can be read and believed the record is refused, because the clock of the import
// says nothing of when something happened. Source: docs/wire/import.md §1.0.

import type { JsonValue } from '#core/json.ts'
import { RecordReject } from './imported-event.ts'
import { isEmptyValue } from './record-fields.ts'
import { readTime, type TimeForm } from './source-time.ts'
import { checkTime } from './time-window.ts'

/**
 * @param nowMs the import's clock. Holding back the live window is a choice of the job, so it is not made here.
 * @param field what a reject names.
 * @returns microseconds since 1970.
 * @throws RecordReject `timestamp_missing`, `timestamp_invalid`, `timestamp_zone_unknown`, `timestamp_out_of_range`,
 *   `timestamp_future`.
 */
export function recordTime(value: JsonValue | undefined, form: TimeForm, nowMs: number, field: string): number {
  if (value === undefined || isEmptyValue(value)) throw new RecordReject('timestamp_missing', field)
  const timeUs = readTime(value, form, field)
  if (timeUs === null) throw new RecordReject('timestamp_invalid', field)
  checkTime(timeUs, { nowMs, holdLiveWindow: false }, field)
  return timeUs
}
