// Reads the range of an insight as PostHog writes it: absolute times, or spans before now such as `-30d`, `mStart`.
// Source: PostHog's DateRange; docs/wire/private-api.md has the table.

import { storableBeforeMs, storableFromMs } from '../events/storable-time.ts'
import { parseDateFilter } from '../flags/match/match-date.ts'
import { err, ok, type Result } from '../result.ts'
import {
  type BucketCalendar,
  type BucketInterval,
  findIntervalEnd,
  findIntervalStart,
  type TimeRange,
} from './buckets.ts'

export interface WrittenDateRange {
  /** Absolute, a span such as `-30d`, or `all`; null means `-7d`. */
  readonly from: string | null
  /** Absolute or a span; null means now. */
  readonly to: string | null
  /** If true, both ends are exact to the millisecond, instead of being extended to whole buckets and whole days. */
  readonly isExplicit: boolean
}

/** The calendar and the current time that are used to read spans and times without a zone. */
export interface RangeClock extends BucketCalendar {
  readonly nowMs: number
}

export interface DateRangeIssue {
  readonly field: 'from' | 'to'
  readonly message: string
}

/** `fromMs` is null for `all`: the range begins with the first event. */
export type DateRange = Omit<TimeRange, 'fromMs'> & { readonly fromMs: number | null }

/**
 * The range in epoch ms. A start written as a date, or as a span of days or longer, becomes the start of its day; a span of
 * hours, the start of its hour. `createBuckets` then extends the first bucket to a whole interval, with two exceptions:
 * daily buckets after a span of hours; and weeks, the first of which begins on the start's day. The end belongs to the
 * range: its whole day, its whole hour with buckets of an hour, or just the instant for an absolute time.
 */
export function readDateRange(
  written: WrittenDateRange,
  interval: BucketInterval,
  clock: RangeClock,
): Result<DateRange, DateRangeIssue> {
  const range = readEnds(written, interval, clock)
  if (!range.ok) return range
  const { fromMs, endMs, firstDay, lastDay } = range.value
  const isSkippedDay = firstDay !== undefined && firstDay === lastDay
  if (fromMs !== null && fromMs >= endMs && !isSkippedDay)
    return err({ field: 'from', message: 'Must not be after the end of the range.' })
  // No event can be stored before `storableFromMs`, or from `storableBeforeMs` on.
  if (fromMs !== null && fromMs < storableFromMs)
    return ok({ fromMs: storableFromMs, endMs, ...(range.value.startsExactly && { startsExactly: true }) })
  return ok({ ...range.value, endMs: Math.min(endMs, storableBeforeMs) })
}

/**
 * How many weeks the comparison period lies before the current one, for ranges in days from `-7d`, `-14d` … until now:
 * such a range has one more day than it says, and weekdays are compared with the same weekdays. Null for other ranges.
 * Source: PostHog's comparison of periods.
 */
export function countComparisonShiftWeeks({ from, to }: WrittenDateRange, interval: BucketInterval): number | null {
  const days = interval === 'day' && to === null ? Number(/^-?(\d{1,5})d(?:Start)?$/.exec(from ?? '-7d')?.[1] ?? 0) : 0
  return days > 0 && days % 7 === 0 ? days / 7 : null
}

function readEnds(
  written: WrittenDateRange,
  interval: BucketInterval,
  clock: RangeClock,
): Result<DateRange, DateRangeIssue> {
  const { isExplicit } = written
  const end = readEnd(written.to, interval, clock, isExplicit)
  if (end === null) return err({ field: 'to', message: `${dateForms}.` })
  if (written.from === 'all') return ok({ fromMs: null, ...end })
  const from = readTime(written.from ?? '-7dStart', clock)
  if (from === null) return err({ field: 'from', message: `${dateForms}; or all, for everything.` })
  const fromMs = from.time.epochMilliseconds
  const firstDay = from.skippedDay === undefined ? {} : { firstDay: from.skippedDay }
  if (isExplicit) return ok({ fromMs, ...firstDay, ...end, startsExactly: true })
  const startOf = (unit: 'hour' | 'day') => findIntervalStart(fromMs, unit, clock)
  if (interval === 'week') return ok({ fromMs: startOf('day'), ...firstDay, ...end, startsExactly: true })
  if (from.unit === 'hour' && interval === 'day') return ok({ fromMs: startOf('hour'), ...end, startsExactly: true })
  return ok({ fromMs: from.unit === null ? fromMs : startOf(from.unit), ...firstDay, ...end })
}

const dateForms = 'Must be a time such as 2026-01-31T12:00:00Z, a date, or a span such as -7d, -1mStart or yStart'

function readEnd(
  text: string | null,
  interval: BucketInterval,
  clock: RangeClock,
  isExplicit: boolean,
): Pick<DateRange, 'endMs' | 'lastDay'> | null {
  if (text === null) {
    if (isExplicit) return { endMs: clock.nowMs + 1 }
    return { endMs: findIntervalEnd(clock.nowMs, interval === 'hour' ? 'hour' : 'day', clock) }
  }
  const to = readTime(text, clock)
  if (to === null) return null
  const timeMs = to.time.epochMilliseconds
  if (to.skippedDay !== undefined) return { endMs: timeMs, lastDay: to.skippedDay }
  // The range includes its last instant, while `endMs` is exclusive.
  if (isExplicit || (interval === 'hour' && to.unit === null)) return { endMs: timeMs + 1 }
  const unit = interval === 'hour' && !to.isDay ? 'hour' : 'day'
  return { endMs: findIntervalEnd(timeMs, unit, clock) }
}

interface ReadTime {
  /** For a span with `End`, its last millisecond. */
  readonly time: Temporal.ZonedDateTime
  /**
   * The unit that the time was written in: `hour` also for shorter units, `day` also for longer units and dates; null for
   * an instant.
   */
  readonly unit: 'hour' | 'day' | null
  /** A date, or a span with `Start` or `End`: the time of day was not specified. */
  readonly isDay?: boolean
  /** The specified day, if the zone skipped it; `time` is then the start of the following day. */
  readonly skippedDay?: string
}

function readTime(written: string, clock: RangeClock): ReadTime | null {
  const text = written.trim()
  const span = spanForm.exec(text)
  if (span !== null) return readSpan(Number(span[1] ?? 0), span[2] as SpanUnit, span[3] as Position | undefined, clock)
  const date = dateForm.exec(text)
  if (date !== null) return readDate(Number(date[1]), Number(date[2]), Number(date[3]), clock)
  const filter = parseDateFilter(text, clock.timezone)
  if (filter?.kind !== 'fixed') return null
  return { time: new Temporal.ZonedDateTime(filter.instant, clock.timezone), unit: null }
}

const spanForm = /^-?(\d{1,5})?([hdwmqyMs])(Start|End)?$/
/** PostHog also accepts dates without leading zeros. */
const dateForm = /^(\d{4})-(\d{1,2})-(\d{1,2})$/

/** Null for a date that the calendar does not have. Where the clock skips midnight, the day begins later. */
function readDate(year: number, month: number, day: number, { timezone }: RangeClock): ReadTime | null {
  if (month < 1 || day < 1) return null
  const date = Temporal.PlainDate.from({ year, month, day })
  if (date.month !== month || date.day !== day) return null
  const time = date.toZonedDateTime(timezone)
  const isSkipped = !time.toPlainDate().equals(date)
  return { time, unit: 'day', isDay: true, ...(isSkipped && { skippedDay: date.toString() }) }
}

type SpanUnit = 'h' | 'd' | 'w' | 'm' | 'q' | 'y' | 'M' | 's'
type Position = 'Start' | 'End'
const spanFields = {
  ...{ h: 'hours', d: 'days', w: 'weeks', m: 'months', y: 'years', M: 'minutes', s: 'seconds' },
  q: 'months',
} as const satisfies Record<SpanUnit, string>
const monthsPerQuarter = 3

/** Always the past, with or without a sign: `7d` is `-7d`. Null for a position that the unit does not have. */
function readSpan(count: number, unit: SpanUnit, position: Position | undefined, clock: RangeClock): ReadTime | null {
  const steps = unit === 'q' ? count * monthsPerQuarter : count
  const time = toZonedNow(clock).subtract({ [spanFields[unit]]: steps })
  const isShort = unit === 'h' || unit === 'M' || unit === 's'
  if (position === undefined) return { time, unit: isShort ? 'hour' : 'day' }
  if (unit === 'M' || unit === 's') return null
  const [startMs, endMs] = findPeriod(time, unit, clock)
  const edge = Temporal.Instant.fromEpochMilliseconds(position === 'Start' ? startMs : endMs - 1)
  const edgeTime = edge.toZonedDateTimeISO(clock.timezone)
  return unit === 'h' ? { time: edgeTime, unit: 'hour' } : { time: edgeTime, unit: 'day', isDay: true }
}

/** The hour, day, week, month, quarter or year that holds a time: epoch ms of its start, and of its end. */
function findPeriod(
  time: Temporal.ZonedDateTime,
  unit: Exclude<SpanUnit, 'M' | 's'>,
  clock: RangeClock,
): readonly [startMs: number, endMs: number] {
  if (unit === 'q' || unit === 'y') {
    const months = unit === 'q' ? monthsPerQuarter : 12
    const date = time.toPlainDate()
    const first = date.with({ month: date.month - ((date.month - 1) % months), day: 1 })
    const startMs = (day: Temporal.PlainDate) => day.toZonedDateTime(clock.timezone).epochMilliseconds
    return [startMs(first), startMs(first.add({ months }))]
  }
  const interval = ({ h: 'hour', d: 'day', w: 'week', m: 'month' } as const)[unit]
  const timeMs = time.epochMilliseconds
  return [findIntervalStart(timeMs, interval, clock), findIntervalEnd(timeMs, interval, clock)]
}

function toZonedNow({ nowMs, timezone }: RangeClock): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(nowMs).toZonedDateTimeISO(timezone)
}
