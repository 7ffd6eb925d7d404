// The time of a record. A record without a valid and plausible time is refused, because the time of the import is no
// substitute. Source: docs/wire/import.md §1.0.

import type { JsonValue } from '#core/json.ts'
import { RecordReject } from './imported-event.ts'
import { isEmptyValue } from './record-fields.ts'
import { readTime, type TimeForm } from './source-time.ts'
import { checkTime, type TimeWindow } from './time-window.ts'

/**
 * @param window the context of the converter.
 * @param field named in a reject.
 * @returns microseconds since 1970.
 * @throws RecordReject `timestamp_missing`, `timestamp_invalid`, `timestamp_zone_unknown`, `timestamp_out_of_range`,
 *   `timestamp_future`, `within_live_window`.
 */
export function readRecordTime(
  value: JsonValue | undefined,
  form: TimeForm,
  window: TimeWindow,
  field: string,
): number {
  if (value === undefined || isEmptyValue(value)) throw new RecordReject('timestamp_missing', field)
  const timeUs = readTime(value, form, field)
  if (timeUs === null) throw new RecordReject('timestamp_invalid', field)
  checkTime(timeUs, window, field)
  return timeUs
}
