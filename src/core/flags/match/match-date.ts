// Reads the instants that people write into date filters and properties: RFC 3339 and its looser forms, dates and wall
// times in the project's zone, epoch seconds, and `-7d`. Instants are in nanoseconds, because `is_date_exact` compares all
// digits. Source: docs/wire/evaluation.md 5.9.2.

import { isRawNumber, type JsonValue } from '../../json.ts'
import { parseFloatText } from './float-text.ts'

/** Epoch nanoseconds. */
type Instant = bigint

export type DateFilter =
  | { readonly kind: 'fixed'; readonly instant: Instant }
  /** Relative to now; computed once per evaluation. */
  | { readonly kind: 'relative'; readonly at: (nowMs: number) => Instant | null }

const relativeForm = /^-?0*(\d{1,4})([hdwmy])$/
/** Zones have the same forms as in event times: `core/capture/timestamp-text.ts`. */
const zonedForm =
  /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)? ?(?:Z|UTC|GMT|([+-])(\d\d)(?::?(\d\d))?)$/i
const wallForm = /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?$/

/** Null when the value is not a date in any readable form. */
export function parseDateFilter(value: JsonValue, timezone: string): DateFilter | null {
  if (typeof value !== 'string') return null
  const relative = relativeForm.exec(value)
  if (relative !== null) return createRelativeFilter(Number(relative[1]), relative[2] as Unit, timezone)
  const instant = parseInstant(value, timezone)
  return instant === null ? null : { kind: 'fixed', instant }
}

/** The instant that a property's value means, or null. Numbers and numeric texts are epoch seconds. */
export function dateOfProperty(value: JsonValue, timezone: string): Instant | null {
  if (typeof value === 'string') {
    const seconds = parseFloatText(value)
    return seconds === null ? parseInstant(value, timezone) : secondsToInstant(seconds, value)
  }
  if (typeof value === 'number') return secondsToInstant(value, String(value))
  return isRawNumber(value) ? secondsToInstant(Number(value.rawJSON), value.rawJSON) : null
}

type Unit = 'h' | 'd' | 'w' | 'm' | 'y'

function createRelativeFilter(count: number, unit: Unit, timezone: string): DateFilter {
  let lastNowMs = Number.NaN
  let lastInstant: Instant | null = null
  return {
    kind: 'relative',
    at: nowMs => {
      if (nowMs !== lastNowMs) {
        lastNowMs = nowMs
        lastInstant = stepBack(nowMs, count, unit, timezone)
      }
      return lastInstant
    },
  }
}

/** Steps back on the zone's wall clock; months and years one by one, each limiting the day to the month's length. */
function stepBack(nowMs: number, count: number, unit: Unit, timezone: string): Instant | null {
  let wall = Temporal.Instant.fromEpochMilliseconds(nowMs).toZonedDateTimeISO(timezone).toPlainDateTime()
  if (unit === 'h') wall = wall.subtract({ hours: count })
  else if (unit === 'd') wall = wall.subtract({ days: count })
  else if (unit === 'w') wall = wall.subtract({ weeks: count })
  else {
    for (let left = count; left > 0; ) {
      // Every month has at least 28 days, so from day 28 or earlier, all remaining units can be taken in one step.
      const taken = wall.day <= 28 ? left : 1
      wall = wall.subtract(unit === 'm' ? { months: taken } : { years: taken })
      left -= taken
    }
  }
  return wallToInstant(wall, timezone)
}

/** @param written surrounding blanks are ignored. */
function parseInstant(written: string, timezone: string): Instant | null {
  const text = written.trim()
  const zoned = zonedForm.exec(text)
  if (zoned !== null) {
    const atUtc = parseUtcMs(zoned[1]!, zoned[2]!, zoned[3]!, zoned[4]!, zoned[5]!, zoned[6] ?? '0')
    const offsetMinutes = zoned[8] === undefined ? 0 : Number(zoned[9]) * 60 + Number(zoned[10] ?? 0)
    if (atUtc === null || Number(zoned[9] ?? 0) > 23 || Number(zoned[10] ?? 0) > 59) return null
    const epochMs = atUtc - (zoned[8] === '-' ? -offsetMinutes : offsetMinutes) * 60_000
    return BigInt(epochMs) * 1_000_000n + parseFractionNs(zoned[7])
  }
  const wall = wallForm.exec(text)
  if (wall === null) return null
  const atUtc = parseUtcMs(wall[1]!, wall[2]!, wall[3]!, wall[4] ?? '0', wall[5] ?? '0', wall[6] ?? '0')
  if (atUtc === null) return null
  if (timezone === 'UTC') return BigInt(atUtc) * 1_000_000n + parseFractionNs(wall[7])
  const plain = Temporal.Instant.fromEpochMilliseconds(atUtc).toZonedDateTimeISO('UTC').toPlainDateTime()
  const instant = wallToInstant(plain, timezone)
  return instant === null ? null : instant + parseFractionNs(wall[7])
}

/** Null for a wall time that a clock change skips; the earlier instant for a wall time that occurs twice. */
function wallToInstant(wall: Temporal.PlainDateTime, timezone: string): Instant | null {
  const zoned = wall.toZonedDateTime(timezone, { disambiguation: 'earlier' })
  return zoned.toPlainDateTime().equals(wall) ? zoned.epochNanoseconds : null
}

/** Epoch ms of the parts of a date and time, read as UTC; null for a 30 February, a 25th hour or a second 60. */
function parseUtcMs(
  year: string,
  month: string,
  day: string,
  hour: string,
  minute: string,
  second: string,
): number | null {
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return null
  const date = new Date(0)
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day))
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return null
  return date.setUTCHours(Number(hour), Number(minute), Number(second), 0)
}

function parseFractionNs(digits: string | undefined): bigint {
  return digits === undefined ? 0n : BigInt(digits.slice(0, 9).padEnd(9, '0'))
}

/** The largest number of seconds, of either sign, that counts as a date (the year 262143). */
const secondsMax = 8.21e12

/**
 * Exact to the nanosecond. A negative number is floored to the second, `nan` is 1970, infinite or too large numbers give
 * null.
 */
function secondsToInstant(seconds: number, literal: string): Instant | null {
  if (Number.isNaN(seconds)) return 0n
  if (Math.abs(seconds) > secondsMax) return null
  if (seconds < 0) return BigInt(Math.floor(seconds)) * 1_000_000_000n
  const plain = /^\+?(\d+)(?:\.(\d*))?$/.exec(literal)
  if (plain !== null) return BigInt(plain[1]!) * 1_000_000_000n + parseFractionNs(plain[2])
  const whole = Math.floor(seconds)
  return BigInt(whole) * 1_000_000_000n + BigInt(Math.round((seconds - whole) * 1e9))
}
