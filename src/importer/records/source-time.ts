// Reads the times of records, in every format that exports use, and formats times of events. Instants are microseconds since
// 1970. A record without a valid and plausible time is refused, because the time of the import is not a substitute. Source:
// docs/wire/import.md §1.0, §1.9.

import { getOwnValue, isRawNumber, type JsonObject, type JsonValue } from '#core/json.ts'
import { RecordReject } from './imported-event.ts'
import { isEmptyValue } from './record-fields.ts'

export const usPerMs = 1_000
const usPerDay = 86_400_000_000
export const usPerSecond = 1_000_000

export type EpochUnit = 's' | 'ms' | 'us' | 'ns'

export interface TimeForm {
  /** IANA zone for texts without a zone; null refuses such texts. `UTC` for a product that always exports UTC. */
  readonly zone: string | null
  /** The unit of numbers. Default: inferred from their size. */
  readonly unit?: EpochUnit
  /** The order of day and month in dates such as `01.09.2026` and `1/9/2026`, which are invalid without this setting. */
  readonly dateOrder?: DateOrder
}

export type DateOrder = 'dmy' | 'mdy'

/** Which times a record may have. */
export interface TimeWindow {
  readonly nowMs: number
  /** Refuse events of the live window instead of sending them as `recent`. */
  readonly holdLiveWindow: boolean
}

const usPerUnit: Record<EpochUnit, number> = { s: usPerSecond, ms: usPerMs, us: 1, ns: 0.001 }
const text =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?\s*(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?$/i
const yearLast =
  /^(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:[T ,]\s*(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?\s*(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?$/i
const numeral = /^-?\d+(?:\.\d+)?$/
const earliestUs = Date.UTC(1971, 0, 1) * usPerMs
const aheadMsMax = 3_600_000
/** Events younger than this are sent and counted as `recent`, or held back if the job is so configured. */
const liveWindowMs = 48 * 3_600_000

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
  checkTimeInWindow(timeUs, window, field)
  return timeUs
}

/** Like `readRecordTime`, for a field of the record itself. */
export function readTimeField(record: JsonObject, field: string, form: TimeForm, window: TimeWindow): number {
  return readRecordTime(getOwnValue(record, field), form, window, field)
}

/**
 * The first readable time; the caller checks whether it is plausible. A reject names the first field that is not empty.
 * @throws RecordReject `timestamp_missing`, `timestamp_invalid`, `timestamp_zone_unknown`.
 */
export function findFirstTime(
  record: JsonObject,
  fields: readonly string[],
  form: TimeForm,
  isEmpty: typeof isEmptyValue = isEmptyValue,
): { readonly timeUs: number; readonly field: string } {
  let firstWritten: string | null = null
  for (const field of fields) {
    const value = getOwnValue(record, field)
    if (value === undefined || isEmpty(value)) continue
    firstWritten ??= field
    const timeUs = readTime(value, form, field)
    if (timeUs !== null) return { timeUs, field }
  }
  throw new RecordReject(firstWritten === null ? 'timestamp_missing' : 'timestamp_invalid', firstWritten ?? fields[0]!)
}

/** @throws RecordReject */
export function checkTimeInWindow(timeUs: number, window: TimeWindow, field: string): void {
  if (timeUs < earliestUs) throw new RecordReject('timestamp_out_of_range', field)
  if (timeUs > (window.nowMs + aheadMsMax) * usPerMs) throw new RecordReject('timestamp_future', field)
  if (window.holdLiveWindow && isTimeRecent(timeUs, window.nowMs)) throw new RecordReject('within_live_window', field)
}

export function isTimeRecent(timeUs: number, nowMs: number): boolean {
  return timeUs > (nowMs - liveWindowMs) * usPerMs
}

/**
 * @returns microseconds since 1970; null for a value that is not a time.
 * @throws RecordReject `timestamp_zone_unknown` if neither the text nor the form has a zone.
 */
export function readTime(value: JsonValue, form: TimeForm, field: string): number | null {
  if (typeof value === 'number') return parseNumericTime(value, form.unit)
  if (isRawNumber(value)) return parseNumeral(value.rawJSON, form.unit)
  if (typeof value !== 'string') return null
  const trimmed = value.trim()
  if (numeral.test(trimmed)) return parseNumeral(trimmed, form.unit)
  const parts = text.exec(trimmed) ?? orderYearFirst(trimmed, form.dateOrder)
  if (parts === null) return null
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', zone] = parts
  const wallUs = toWallClockUs(Number(year), Number(month), Number(day), Number(hour), Number(minute), Number(second))
  if (wallUs === null) return null
  const inSecondUs = Number(fraction.slice(0, 6).padEnd(6, '0'))
  if (zone !== undefined) {
    const offsetUs = parseOffset(zone)
    return offsetUs === null ? null : wallUs - offsetUs + inSecondUs
  }
  if (form.zone === null) throw new RecordReject('timestamp_zone_unknown', field)
  return wallClockToUtc(wallUs, form.zone) + inSecondUs
}

/** Reorders a date whose year comes last into year, month and day. */
function orderYearFirst(trimmed: string, order: DateOrder | undefined): readonly (string | undefined)[] | null {
  const parts = order === undefined ? null : yearLast.exec(trimmed)
  if (parts === null) return null
  const [, first, , second, year, ...time] = parts
  return ['', year, ...(order === 'dmy' ? [second, first] : [first, second]), ...time]
}

/**
 * The instant of a local time in a zone. In an hour that a clock change repeats, it is the first occurrence; in a skipped
 * hour, the time after the change.
 * @param wallUs the local time as if it were UTC, whole seconds.
 */
export function wallClockToUtc(wallUs: number, zone: string): number {
  if (zone === 'UTC') return wallUs
  const wallMs = wallUs / usPerMs
  // Clocks change on quarters of an hour, so all times of a quarter have one offset. The few exceptions, such as
  // Newfoundland at a minute past midnight, are not cached.
  const quarter = Math.floor(wallMs / quarterMs)
  const offsets = offsetsByZone.getOrInsertComputed(zone, () => new Map())
  const offsetMs = getOrCompute(offsets, quarter, () => {
    const firstMs = computeZoneOffsetMs(quarter * quarterMs, zone)
    return computeZoneOffsetMs((quarter + 1) * quarterMs - 1, zone) === firstMs ? firstMs : null
  })
  return wallUs - (offsetMs ?? computeZoneOffsetMs(wallMs, zone)) * usPerMs
}

const quarterMs = 900_000
const offsetsByZone = new Map<string, Map<number, number | null>>()

/** How far the zone is ahead of UTC at a local time. */
function computeZoneOffsetMs(wallMs: number, zone: string): number {
  const iso = new Date(wallMs).toISOString().slice(0, -1)
  return wallMs - Temporal.PlainDateTime.from(iso).toZonedDateTime(zone).epochMilliseconds
}

/** The UTC date of an instant, `YYYY-MM-DD`. */
export function utcDay(timeUs: number): string {
  const day = Math.floor(timeUs / usPerDay)
  return getOrCompute(dayTexts, day, () => new Date((day * usPerDay) / usPerMs).toISOString().slice(0, 10))
}

const dayTexts = new Map<number, string>()

/** A small cache suffices: records come sorted by day, or unsorted from a few years, so few values are needed at a time. */
function getOrCompute<T>(kept: Map<number, T>, key: number, compute: () => T): T {
  let value = kept.get(key)
  if (value === undefined) {
    value = compute()
    if (kept.size >= keptMax) kept.clear()
    kept.set(key, value)
  }
  return value
}

const keptMax = 10_000

/** Formats a time as RFC 3339 in UTC, with three decimals, or with six unless it is a whole number of ms. */
export function formatTime(timeUs: number): string {
  const ms = Math.floor(timeUs / usPerMs)
  const us = timeUs - ms * usPerMs
  const iso = new Date(ms).toISOString()
  return us === 0 ? iso : `${iso.slice(0, -1)}${String(us).padStart(3, '0')}Z`
}

/** Whether the text is an IANA zone name. Fixed offsets are refused, because they ignore daylight saving. */
export function isZoneName(name: string): boolean {
  if (/^[+-]|^(?:etc\/)?gmt[+-]|^[emh]st$/i.test(name)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

/** @returns the unit in which the number is a time between 1971 and some thousand years later. Source: docs/wire/import.md §1.9. */
function inferUnit(value: number): EpochUnit {
  const size = Math.abs(value)
  return size < 1e11 ? 's' : size < 1e14 ? 'ms' : size < 1e17 ? 'us' : 'ns'
}

/** Uses the decimal digits of a fraction, so that a number and the same text give the same time. */
function parseNumericTime(value: number, unit: EpochUnit = inferUnit(value)): number | null {
  return Number.isInteger(value) && unit !== 'ns' ? epochToMicroseconds(value, unit) : parseNumeral(String(value), unit)
}

function epochToMicroseconds(value: number, unit: EpochUnit): number | null {
  return clampMicroseconds(Math.round(value * usPerUnit[unit]))
}

/** Clamps to safe integers, so that a far time is refused as too early or too late and not as invalid. */
function clampMicroseconds(us: number): number | null {
  if (Number.isNaN(us)) return null
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(us, Number.MAX_SAFE_INTEGER))
}

/** Exact also for more digits than a double can represent, as in nanoseconds or in seconds with six decimals. */
function parseNumeral(literal: string, unit: EpochUnit = inferUnit(Number(literal))): number | null {
  const [, sign, whole, fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(literal) ?? []
  if (whole === undefined) return epochToMicroseconds(Number(literal), unit)
  const shift = { s: 6, ms: 3, us: 0, ns: -3 }[unit]
  const digits = shift >= 0 ? whole + fraction.slice(0, shift).padEnd(shift, '0') : whole.slice(0, shift) || '0'
  return clampMicroseconds(Number(`${sign}${digits}`))
}

function toWallClockUs(year: number, month: number, day: number, hour: number, minute: number, second: number) {
  if (month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 60) return null
  const midnightMs = new Date(0).setUTCFullYear(year, month - 1, day)
  // `Date` would silently turn a day that the month does not have into a day of the next month.
  if (new Date(midnightMs).getUTCDate() !== day) return null
  return (midnightMs + ((hour * 60 + minute) * 60 + Math.min(second, 59)) * 1_000) * usPerMs
}

function parseOffset(zone: string): number | null {
  if (/^(?:z|utc|gmt)$/i.test(zone)) return 0
  const hours = Number(zone.slice(1, 3))
  const minutes = Number(zone.slice(3).replace(':', '') || '0')
  if (hours > 23 || minutes > 59) return null
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60 * usPerSecond
}
