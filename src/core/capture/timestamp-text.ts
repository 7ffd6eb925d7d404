// Reads the time texts that clients send; `event-time.ts` decides what a readable or unreadable time means. Nearly every
// event has an RFC 3339 time, so that form is tried first; the lenient forms follow.

import { ascii } from '../ascii.ts'
import { dayMs } from '../time.ts'

const { blank, plus, minus, dot, zero, colon, upperT, upperZ, lowerT, lowerZ, caseBit } = ascii

/** Longer texts count as unreadable, which bounds the work of every pattern below. */
const textLengthMax = 64

/**
 * Epoch ms (UTC) of a time text. A fraction of any length is truncated to ms; a text without a zone is UTC.
 *
 * Tries in this order: RFC 3339 (`+03` is `+03:00`), also without a zone or with a blank for the `T`; a date alone, an
 * ISO week (`2021-W43-5`) and an ordinal date (`2021-302`), each at 00:00; slashed dates (year first, or
 * month/day/year); RFC 2822; Unix seconds or milliseconds as digits.
 * @returns null for anything else, including a day that the month does not have.
 * Source: docs/wire/ingestion.md 3; vectors.
 */
export function parseTimestampText(text: string): number | null {
  const iso = parseIsoDateTime(text)
  if (iso !== null) return iso.epochMs
  return text.length > textLengthMax ? null : parseLenientTimestamp(text.trim())
}

/** Epoch ms of an ISO 8601 text that names its zone, as `sent_at` must; null for anything else. */
export function parseZonedTimestampText(text: string): number | null {
  const iso = parseIsoDateTime(text)
  return iso === null || !iso.hasZone ? null : iso.epochMs
}

/**
 * Epoch ms of an RFC 3339 text, whose zone is `Z` or `±HH:MM` and nothing shorter; null for anything else.
 * Source: docs/wire/ingestion.md 4.1.
 */
export function parseStrictTimestampText(text: string): number | null {
  const last = text.length - 1
  const isUtc = (text.charCodeAt(last) | caseBit) === lowerZ
  return isUtc || text.charCodeAt(last - 2) === colon ? parseZonedTimestampText(text) : null
}

/** `YYYY-MM-DDTHH:MM:SS[.fraction][Z|±HH[[:]MM]]`; T and Z in either case, T may be a blank. */
function parseIsoDateTime(text: string): { epochMs: number; hasZone: boolean } | null {
  const length = text.length
  if (length < 19 || length > textLengthMax) return null
  if (text.charCodeAt(4) !== minus || text.charCodeAt(7) !== minus) return null
  if (text.charCodeAt(13) !== colon || text.charCodeAt(16) !== colon) return null
  const separator = text.charCodeAt(10)
  if (separator !== upperT && separator !== lowerT && separator !== blank) return null
  const dayMs = dateMs(twoDigits(text, 0) * 100 + twoDigits(text, 2), twoDigits(text, 5), twoDigits(text, 8))
  const clockMs = timeOfDayMs(twoDigits(text, 11), twoDigits(text, 14), twoDigits(text, 17))
  if (Number.isNaN(dayMs) || Number.isNaN(clockMs)) return null
  let epochMs = dayMs + clockMs
  let at = 19
  if (text.charCodeAt(at) === dot) {
    const fractionStart = ++at
    for (let scale = 100; isDigit(text.charCodeAt(at)); at++, scale = Math.floor(scale / 10)) {
      epochMs += scale * (text.charCodeAt(at) - zero)
    }
    if (at === fractionStart) return null
  }
  if (at === length) return { epochMs, hasZone: false }
  const offsetMs = parseZoneOffsetMs(text, at)
  return Number.isNaN(offsetMs) ? null : { epochMs: epochMs - offsetMs, hasZone: true }
}

/** The offset written from `at` to the end: `Z`, `±HH`, `±HHMM` or `±HH:MM`; NaN for anything else. */
function parseZoneOffsetMs(text: string, at: number): number {
  const sign = text.charCodeAt(at)
  const rest = text.length - at
  if (sign === upperZ || sign === lowerZ) return rest === 1 ? 0 : Number.NaN
  if (sign !== plus && sign !== minus) return Number.NaN
  const hours = twoDigits(text, at + 1)
  let minutes = 0
  if (rest === 5) minutes = twoDigits(text, at + 3)
  else if (rest === 6 && text.charCodeAt(at + 3) === colon) minutes = twoDigits(text, at + 4)
  else if (rest !== 3) return Number.NaN
  if (!(hours < 24 && minutes < 60)) return Number.NaN
  const offsetMs = (hours * 60 + minutes) * minuteMs
  return sign === minus ? -offsetMs : offsetMs
}

function parseLenientTimestamp(text: string): number | null {
  const dateTime = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text)
  if (dateTime !== null) return nullIfNaN(dateMs(Number(dateTime[1]), Number(dateTime[2]), Number(dateTime[3])))
  const shortTime = /^(\d{4})-(\d{2})-(\d{2})[ T](.+)$/i.exec(text)
  if (shortTime !== null) return parseDateAndTime(shortTime[1]!, shortTime[2]!, shortTime[3]!, shortTime[4])
  const week = /^(\d{4})-W(\d{2})(?:-(\d))?$/.exec(text)
  if (week !== null) return isoWeekMs(Number(week[1]), Number(week[2]), Number(week[3] ?? 1))
  const ordinal = /^(\d{4})-(\d{3})$/.exec(text)
  if (ordinal !== null) return ordinalDateMs(Number(ordinal[1]), Number(ordinal[2]))
  const yearFirst = /^(\d{4})\/(\d{1,2})\/(\d{1,2})(?:[ T](.+))?$/.exec(text)
  if (yearFirst !== null) return parseDateAndTime(yearFirst[1]!, yearFirst[2]!, yearFirst[3]!, yearFirst[4])
  const monthFirst = /^(\d{1,2})\/(\d{1,2})\/(\d{4})(?:[ T](.+))?$/.exec(text)
  if (monthFirst !== null) return parseDateAndTime(monthFirst[3]!, monthFirst[1]!, monthFirst[2]!, monthFirst[4])
  return parseMailTimestamp(text) ?? parseUnixTimestamp(text)
}

function parseDateAndTime(year: string, month: string, day: string, time: string | undefined): number | null {
  const dayMs = dateMs(Number(year), Number(month), Number(day))
  if (time === undefined) return nullIfNaN(dayMs)
  const parts =
    /^(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d+))?)?(?: ?([AP]M))?(?: ?(Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?))?$/i.exec(time)
  if (parts === null) return null
  const hours = to24HourClock(Number(parts[1]), parts[5]?.toUpperCase())
  const fractionMs = Number((parts[4] ?? '').slice(0, 3).padEnd(3, '0'))
  const zone = parts[6] ?? 'Z'
  const offsetMs = /^[A-Z]/i.test(zone) ? 0 : parseZoneOffsetMs(zone, 0)
  return nullIfNaN(dayMs + timeOfDayMs(hours, Number(parts[2]), Number(parts[3] ?? 0)) + fractionMs - offsetMs)
}

function to24HourClock(hours: number, half: string | undefined): number {
  if (half === undefined) return hours
  if (hours < 1 || hours > 12) return Number.NaN
  return (hours % 12) + (half === 'PM' ? 12 : 0)
}

/** ISO week date: week 1 holds 4 January, weeks begin on Monday. */
function isoWeekMs(year: number, week: number, weekday: number): number | null {
  if (week < 1 || week > 53 || weekday < 1 || weekday > 7) return null
  const fourthOfJanuary = daysFromCivil(year, 1, 4)
  const mondayOfWeekOne = fourthOfJanuary - ((((fourthOfJanuary + 3) % 7) + 7) % 7)
  const days = mondayOfWeekOne + (week - 1) * 7 + (weekday - 1)
  // Week 53 exists only if the next year's week 1 does not begin in its place.
  return week === 53 && mondayOfWeekOne + 364 > daysFromCivil(year, 12, 31) - 3 ? null : days * dayMs
}

function ordinalDateMs(year: number, dayOfYear: number): number | null {
  const days = daysFromCivil(year, 1, 1) + dayOfYear - 1
  return dayOfYear < 1 || days > daysFromCivil(year, 12, 31) ? null : days * dayMs
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const mailZoneHours = new Map(
  Object.entries({
    UT: 0,
    UTC: 0,
    GMT: 0,
    Z: 0,
    EST: -5,
    EDT: -4,
    CST: -6,
    CDT: -5,
    MST: -7,
    MDT: -6,
    PST: -8,
    PDT: -7,
  }),
)

/** RFC 2822: `Tue, 01 Jul 2025 10:00:00 +0000`. */
function parseMailTimestamp(text: string): number | null {
  const parts =
    /^(?:[a-z]{3},? +)?(\d{1,2}) +([a-z]{3}) +(\d{4}) +(\d{2}):(\d{2})(?::(\d{2}))? +([a-z]{1,3}|[+-]\d{4})$/i.exec(
      text,
    )
  if (parts === null) return null
  const zone = parts[7]!.toUpperCase()
  const offsetMs = /^[+-]/.test(zone)
    ? parseZoneOffsetMs(zone, 0)
    : (mailZoneHours.get(zone) ?? Number.NaN) * 60 * minuteMs
  const dayMs = dateMs(Number(parts[3]), months.indexOf(parts[2]!.toLowerCase()) + 1, Number(parts[1]))
  return nullIfNaN(dayMs + timeOfDayMs(Number(parts[4]), Number(parts[5]), Number(parts[6] ?? 0)) - offsetMs)
}

/** Nine or ten digits are seconds (from 1973 on), with or without a fraction; eleven to fourteen are milliseconds. */
function parseUnixTimestamp(text: string): number | null {
  if (/^\d{9,10}(?:\.\d+)?$/.test(text)) return Math.floor(Number(text) * 1000)
  return /^\d{11,14}$/.test(text) ? Number(text) : null
}

/** Midnight UTC of a day of the proleptic Gregorian calendar; NaN for a day that does not exist. */
function dateMs(year: number, month: number, day: number): number {
  if (!(year >= 0 && month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month))) return Number.NaN
  return daysFromCivil(year, month, day) * dayMs
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/** Days since 1970-01-01, by counting from March so that the leap day comes last. */
function daysFromCivil(year: number, month: number, day: number): number {
  const marchYear = month <= 2 ? year - 1 : year
  const era = Math.floor(marchYear / 400)
  const yearOfEra = marchYear - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}

/** A leap second (60) counts as the first instant of the next minute. */
function timeOfDayMs(hours: number, minutes: number, seconds: number): number {
  if (!(hours < 24 && minutes < 60 && seconds <= 60)) return Number.NaN
  return ((hours * 60 + minutes) * 60 + seconds) * 1000
}

function twoDigits(text: string, at: number): number {
  const tens = text.charCodeAt(at) - zero
  const ones = text.charCodeAt(at + 1) - zero
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN
}

function isDigit(code: number): boolean {
  return code >= zero && code <= zero + 9
}

function nullIfNaN(epochMs: number): number | null {
  return Number.isNaN(epochMs) ? null : epochMs
}

const minuteMs = 60_000
