// Reads the range of an insight as PostHog writes it: absolute times, or spans before now such as `-30d`, `mStart`.
// Source: PostHog's DateRange; docs/wire/private-api.md has the table.

import { storableBeforeMs, storableFromMs } from '../events/storable-time.ts'
import { parseDateFilter } from '../flags/match/match-date.ts'
import { err, ok, type Result } from '../result.ts'
import { type BucketCalendar, type BucketInterval, endOfInterval, startOfInterval, type TimeRange } from './buckets.ts'

export interface WrittenDateRange {
  /** Absolute, a span such as `-30d`, or `all`. `-7d` when it is null. */
  readonly from: string | null
  /** Absolute or a span. Now when it is null. */
  readonly to: string | null
  /** True: both are taken to the millisecond, instead of as whole buckets and whole days. */
  readonly isExplicit: boolean
}

/** What a time without a zone, and a span, are read by. */
export interface RangeClock {
  /** IANA name. */
  readonly timezone: string
  readonly nowMs: number
}

export interface DateRangeIssue {
  readonly field: 'from' | 'to'
  readonly message: string
}

/** `fromMs` is null for `all`: the range begins with the first event. */
export type DateRange = Omit<TimeRange, 'fromMs'> & { readonly fromMs: number | null }

/**
 * The range that is meant. A start that is a date, or a span of days or longer, is the start of that day, and a span of
 * hours that of its hour; `makeBuckets` then begins with the whole bucket, except where a span of hours meets buckets of
 * a day, and for weeks, whose first begins with the start's day. The end belongs to the range: the whole day, or with
 * buckets of an hour the whole hour, or the instant when it is an absolute time.
 */
export function readDateRange(
  written: WrittenDateRange,
  interval: BucketInterval,
  clock: RangeClock,
): Result<DateRange, DateRangeIssue> {
  const range = readEnds(written, interval, clock)
  if (!range.ok) return range
  const { fromMs, endMs } = range.value
  if (fromMs !== null && fromMs >= endMs)
    return err({ field: 'from', message: 'Must not be after the end of the range.' })
  // Nothing can be stored beyond these times.
  const storable = {
    endMs: Math.min(endMs, storableBeforeMs),
    ...(fromMs !== null && { fromMs: Math.max(fromMs, storableFromMs) }),
  }
  return ok({ ...range.value, ...storable })
}

function readEnds(
  written: WrittenDateRange,
  interval: BucketInterval,
  clock: RangeClock,
): Result<DateRange, DateRangeIssue> {
  const { isExplicit } = written
  const endMs = readEnd(written.to, interval, clock, isExplicit)
  if (endMs === null) return err({ field: 'to', message: dateForms })
  if (written.from === 'all') return ok({ fromMs: null, endMs })
  const from = readTime(written.from ?? '-7dStart', clock)
  if (from === null) return err({ field: 'from', message: `${dateForms} Or all.` })
  const fromMs = from.time.epochMilliseconds
  if (isExplicit) return ok({ fromMs, endMs, startsExactly: true })
  const startOf = (unit: 'hour' | 'day') => startOfInterval(fromMs, unit, calendarOf(clock))
  if (interval === 'week') return ok({ fromMs: startOf('day'), endMs, startsExactly: true })
  if (from.unit === 'hour' && interval === 'day') return ok({ fromMs: startOf('hour'), endMs, startsExactly: true })
  return ok({ fromMs: from.unit === null ? fromMs : startOf(from.unit), endMs })
}

const dateForms = 'Must be a time such as 2026-01-31T12:00:00Z, a date, or a span such as -7d, -1mStart or yStart.'

function readEnd(text: string | null, interval: BucketInterval, clock: RangeClock, isExplicit: boolean): number | null {
  if (text === null) {
    if (isExplicit) return clock.nowMs + 1
    return endOfInterval(clock.nowMs, interval === 'hour' ? 'hour' : 'day', calendarOf(clock))
  }
  const to = readTime(text, clock)
  if (to === null) return null
  // An instant belongs to the range that ends with it.
  if (isExplicit || (interval === 'hour' && to.unit === null)) return to.time.epochMilliseconds + 1
  const unit = interval === 'hour' && !to.isDay ? 'hour' : 'day'
  return endOfInterval(to.time.epochMilliseconds, unit, calendarOf(clock))
}

function calendarOf({ timezone }: RangeClock): BucketCalendar {
  return { timezone, weekStartDay: 0 } // which is of no matter to hours and days
}

interface ReadTime {
  readonly time: Temporal.ZonedDateTime
  /** What it was written in: `hour` also for shorter units, `day` for longer ones and dates; null for an instant. */
  readonly unit: 'hour' | 'day' | null
  /** A date, or a span with `Start` or `End`: the time of day was not meant. */
  readonly isDay?: boolean
}

function readTime(text: string, clock: RangeClock): ReadTime | null {
  const span = spanForm.exec(text)
  if (span !== null) return readSpan(Number(span[1] ?? 0), span[2] as SpanUnit, span[3], clock)
  const isDate = dateForm.exec(text)
  // PostHog takes dates without zeros, too.
  const padded = isDate === null ? text : `${isDate[1]}-${isDate[2]!.padStart(2, '0')}-${isDate[3]!.padStart(2, '0')}`
  const filter = parseDateFilter(padded, clock.timezone)
  if (filter?.kind !== 'fixed') return null
  const time = new Temporal.ZonedDateTime(filter.instant, clock.timezone)
  return isDate === null ? { time, unit: null } : { time, unit: 'day', isDay: true }
}

const spanForm = /^-?(\d{1,5})?([hdwmqyMs])(Start|End)?$/
const dateForm = /^(\d{4})-(\d{1,2})-(\d{1,2})$/

type SpanUnit = 'h' | 'd' | 'w' | 'm' | 'q' | 'y' | 'M' | 's'
const spanFields = {
  ...{ h: 'hours', d: 'days', w: 'weeks', m: 'months', y: 'years', M: 'minutes', s: 'seconds' },
  q: 'months',
} as const satisfies Record<SpanUnit, string>
const monthsPerQuarter = 3

/** Always the past, with or without a sign: `7d` is `-7d`. Null for a position that the unit does not have. */
function readSpan(count: number, unit: SpanUnit, position: string | undefined, clock: RangeClock): ReadTime | null {
  const steps = unit === 'q' ? count * monthsPerQuarter : count
  const time = zonedNow(clock).subtract({ [spanFields[unit]]: steps })
  if (unit === 'h' || unit === 'M' || unit === 's') {
    if (position === undefined) return { time, unit: 'hour' }
    return unit === 'h' ? { time, unit: 'hour' } : null // buckets begin and end with the hour in any case
  }
  if (position === undefined) return { time, unit: 'day' }
  const first = firstDay(time.toPlainDate(), unit)
  if (first === null) return null
  const last = first.add(unit === 'q' ? { months: monthsPerQuarter } : { [spanFields[unit]]: 1 }).subtract({ days: 1 })
  const day = position === 'Start' ? first : last
  return { time: day.toZonedDateTime(clock.timezone), unit: 'day', isDay: true }
}

/** The first day of the day, month, quarter or year; null for weeks, whose start is for the interval to say. */
function firstDay(date: Temporal.PlainDate, unit: SpanUnit): Temporal.PlainDate | null {
  if (unit === 'd') return date
  if (unit === 'm') return date.with({ day: 1 })
  if (unit === 'q') return date.with({ month: date.month - ((date.month - 1) % monthsPerQuarter), day: 1 })
  return unit === 'y' ? date.with({ month: 1, day: 1 }) : null
}

function zonedNow({ nowMs, timezone }: RangeClock): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(nowMs).toZonedDateTimeISO(timezone)
}
