// Converts a row of Plausible to one event that holds the sums of a day. Source: docs/wire/import.md §1.7.

import { type JsonObject, ownValue } from '#core/json.ts'
import { contentUuid } from '#importer/records/deterministic-uuid.ts'
import { checkIdLength } from '#importer/records/distinct-ids.ts'
import type { Conversion } from '#importer/records/imported-event.ts'
import { putProperty, readEventName } from '#importer/records/record-fields.ts'
import { readRecordTime } from '#importer/records/record-time.ts'
import type { TimeWindow } from '#importer/records/time-window.ts'
import { isCountColumn, readNumber } from './plausible-tables.ts'

export interface PlausibleSettings {
  /** The site's name in Plausible, which is its domain. */
  readonly site: string
  /** The zone of the site's days; null refuses all rows. */
  readonly zone: string | null
  /** How many pseudo-visitors the views of a day are spread over; null takes the count of each row. */
  readonly visitors: number | null
  readonly window: TimeWindow
}

/** The start of the row's day. @throws RecordReject */
export function readDayStart(row: JsonObject, { zone, window }: PlausibleSettings): number {
  return readRecordTime(ownValue(row, 'date'), { zone }, window, 'date')
}

export function convertToSum(table: string, row: JsonObject, settings: PlausibleSettings): Conversion {
  const timeUs = readDayStart(row, settings)
  const properties: JsonObject = {}
  for (const [column, value] of Object.entries(row)) {
    if (column === 'date') continue
    putProperty(properties, column, isCountColumn(column) ? (readNumber(row, column) ?? value) : value)
  }
  properties.$import_aggregate = true
  properties.$process_person_profile = false
  const event = readEventName(`plausible_${table}`, 'table')
  const distinctId = checkIdLength(`plausible:${settings.site}`)
  const uuid = contentUuid('plausible', row)
  const filledIn = { isIdFilledIn: true, isTimeFilledIn: true } as const
  return { events: [{ uuid, event, sourceName: table, distinctId, timeUs, ...filledIn, properties }] }
}
