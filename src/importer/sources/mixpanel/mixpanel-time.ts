// The time of Mixpanel's events, which older projects export in their own zone. Each record gets notes about its zone,
// because only all records together show which zone it is. Source: docs/wire/import.md §1.2 (time, zone shift).

import { getOwnValue, isRawNumber, type JsonObject, type JsonValue, readJsonNumber } from '#core/json.ts'
import { RecordReject } from '#importer/records/imported-event.ts'
import { isEmptyValue } from '#importer/records/record-fields.ts'
import {
  checkTimeInWindow,
  readTime,
  type TimeWindow,
  usPerMs,
  usPerSecond,
  wallClockToUtc,
} from '#importer/records/source-time.ts'

export interface EventTime {
  readonly timeUs: number
  /** The number read as UTC; null for a text, which names its zone or was read in the configured zone. */
  readonly numberUs: number | null
}

const millisecondsFrom = 1e10
const quarterSeconds = 900
/** Projects created earlier export times in their own zone. */
const utcFromUs = Date.UTC(2023, 0, 1) * usPerMs

/**
 * @param zone IANA name of the project's zone if its numbers are local times; null if they are UTC.
 * @throws RecordReject
 */
export function readEventTime(from: JsonObject, zone: string | null, window: TimeWindow): EventTime {
  const field = 'properties.time'
  const value = getOwnValue(from, 'time')
  if (isEmptyValue(value)) throw new RecordReject('timestamp_missing', field)
  const size = parseNumber(value!)
  const unit = size !== null && Math.abs(size) > millisecondsFrom ? 'ms' : 's'
  const writtenUs = readTime(value!, { zone, unit }, field)
  if (writtenUs === null) throw new RecordReject('timestamp_invalid', field)
  const timeUs = size === null || zone === null ? writtenUs : wallClockToUtcUs(writtenUs, zone)
  checkTimeInWindow(timeUs, window, field)
  return { timeUs, numberUs: size === null ? null : writtenUs }
}

function parseNumber(value: JsonValue): number | null {
  if (typeof value === 'number' || isRawNumber(value)) return readJsonNumber(value)!
  return typeof value === 'string' && /^\s*-?\d+(?:\.\d+)?\s*$/.test(value) ? Number(value) : null
}

function wallClockToUtcUs(wallUs: number, zone: string): number {
  const wholeUs = Math.floor(wallUs / usPerSecond) * usPerSecond
  return wallClockToUtc(wholeUs, zone) + (wallUs - wholeUs)
}

/**
 * `zone_shift:SECONDS`: the difference between the event's time and its time of receipt, rounded to quarters of an hour.
 * With a configured zone, `zone_shift_differs` if the difference is not the zone's offset. Without a time of receipt,
 * `zone_unproved` for an event from the years in which projects exported local times.
 */
export function createTimeZoneNotes(from: JsonObject, { timeUs, numberUs }: EventTime, zone: string | null): string[] {
  if (numberUs === null) return []
  const receivedMs = findReceiptMs(from)
  if (receivedMs === null) return zone === null && timeUs < utcFromUs ? ['zone_unproved'] : []
  const seconds = (numberUs - receivedMs * usPerMs) / usPerSecond
  // `+ 0` turns -0 into 0.
  const shift = Math.round(seconds / quarterSeconds) * quarterSeconds + 0
  const zoneShift = (numberUs - timeUs) / usPerSecond
  return [`zone_shift:${shift}`, ...(zone !== null && shift !== zoneShift ? ['zone_shift_differs'] : [])]
}

/** @returns epoch ms; null for an event imported into Mixpanel, which was received long after the event happened. */
function findReceiptMs(from: JsonObject): number | null {
  if (getOwnValue(from, '$import') === true) return null
  return (
    parseReceiptMs(getOwnValue(from, '$mp_api_timestamp_ms')) ??
    parseReceiptMs(getOwnValue(from, 'mp_processing_time_ms'))
  )
}

/** @returns epoch ms; null for an implausible number, such as the small counters in copies of exports. */
function parseReceiptMs(value: JsonValue | undefined): number | null {
  const ms = value === undefined ? null : parseNumber(value)
  return ms !== null && ms > 1e12 && ms < 1e14 ? ms : null
}
