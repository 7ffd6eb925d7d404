// Cuts a range of time into the buckets of an insight: hours, days, weeks or months of the project's zone. Stores never
// compute with zones: they get these edges and put each row between two of them.
// Source: PostHog's TrendsQuery; docs/wire/private-api.md.

export const bucketIntervals = ['hour', 'day', 'week', 'month'] as const
export type BucketInterval = (typeof bucketIntervals)[number]

/** The calendar of a project. */
export interface BucketCalendar {
  /** IANA name. */
  readonly timezone: string
  /** The first day of a week: 0 is Sunday, 1 Monday. */
  readonly weekStartDay: 0 | 1
}

/** A range of time in epoch ms. */
export interface TimeRange {
  readonly fromMs: number
  /** The first instant that does not belong to the range. */
  readonly endMs: number
  /** The first bucket begins at `fromMs`, even within an interval. Otherwise it begins where its interval does. */
  readonly startsExactly?: boolean
}

export interface Buckets {
  readonly interval: BucketInterval
  /**
   * Ascending epoch ms, one more than there are buckets: bucket `i` holds the instants from `edges[i]`, and before
   * `edges[i + 1]`.
   */
  readonly edges: readonly number[]
  /**
   * The name of each bucket: the day on which its interval begins, `2026-03-29`, for hours with the wall time,
   * `2026-03-29 03:00:00`. An hour that the clock repeats has two buckets with one name.
   */
  readonly days: readonly string[]
}

/**
 * The last bucket ends with the range, and each other one where the next begins. Days of 23 and 25 hours are one bucket.
 * A day that the zone skipped has none.
 * @param countMax the most buckets that the caller can use.
 * @returns null when there would be more. A range that is empty has no bucket.
 */
export function makeBuckets(
  range: TimeRange,
  interval: BucketInterval,
  calendar: BucketCalendar,
  countMax: number,
): Buckets | null {
  const edges: number[] = []
  const days: string[] = []
  if (range.endMs <= range.fromMs) return { interval, edges, days }
  if ((range.endMs - range.fromMs) / longestMs[interval] > countMax + 1) return null
  for (const { startMs, day } of intervalsFrom(range.fromMs, interval, calendar)) {
    if (startMs >= range.endMs) break
    if (edges.length === countMax) return null
    edges.push(edges.length === 0 && range.startsExactly ? range.fromMs : startMs)
    days.push(day)
  }
  edges.push(range.endMs)
  return { interval, edges, days }
}

/** The start of the interval that holds an instant, epoch ms. */
export function startOfInterval(timeMs: number, interval: BucketInterval, calendar: BucketCalendar): number {
  return startOf(timeMs, interval, calendar).epochMilliseconds
}

/** The first instant after the interval that holds an instant, epoch ms. */
export function endOfInterval(timeMs: number, interval: BucketInterval, calendar: BucketCalendar): number {
  return nextStart(startOf(timeMs, interval, calendar), interval).epochMilliseconds
}

/**
 * The same number of buckets, for a comparison, from an earlier start. Its last bucket is cut short like the last of
 * `current`: a month that is half over is compared with half a month.
 * @param shift how far back the start lies.
 */
export function earlierBuckets(current: Buckets, shift: Temporal.DurationLike, calendar: BucketCalendar): Buckets {
  const { interval, edges: currentEdges } = current
  const count = current.days.length
  if (count === 0) return current
  const edges: number[] = []
  const days: string[] = []
  const firstMs = currentEdges[0]!
  const currentStart = startOf(firstMs, interval, calendar)
  const cutMs = firstMs - currentStart.epochMilliseconds
  for (const { startMs, day } of intervalsFrom(currentStart.subtract(shift).epochMilliseconds, interval, calendar)) {
    edges.push(edges.length === 0 ? startMs + cutMs : startMs)
    days.push(day)
    if (edges.length < count) continue
    edges.push(earlierEnd(current, zoned(startMs, calendar), calendar))
    break
  }
  return { interval, edges, days }
}

/** How far back the period before begins when nothing else is asked for: directly before the current one. */
export function previousPeriod({ interval, days }: Buckets): Temporal.DurationLike {
  const count = days.length
  switch (interval) {
    case 'hour':
      // Whole days, if there is one, so that each hour is compared with the same hour of the day.
      return count < 24 ? { hours: count } : { days: Math.floor(count / 24) }
    case 'day':
      return { days: count }
    case 'week':
      return { weeks: count }
    case 'month':
      return { months: count }
  }
}

/** The end of the last bucket of an earlier period, which starts at `lastStart`. */
function earlierEnd(current: Buckets, lastStart: Temporal.ZonedDateTime, calendar: BucketCalendar): number {
  const { interval, edges } = current
  const endMs = edges.at(-1)!
  const currentStart = startOf(endMs - 1, interval, calendar)
  const wholeMs = nextStart(lastStart, interval).epochMilliseconds
  if (endMs >= nextStart(currentStart, interval).epochMilliseconds) return wholeMs
  const elapsed = currentStart.until(zoned(endMs, calendar), { largestUnit: interval === 'hour' ? 'hours' : 'days' })
  return Math.min(lastStart.add(elapsed).epochMilliseconds, wholeMs)
}

/** An interval is never longer; bounds the work for a range of thousands of years. */
const longestMs: Readonly<Record<BucketInterval, number>> = {
  hour: 2 * 3_600_000,
  day: 49 * 3_600_000,
  week: 9 * 86_400_000,
  month: 33 * 86_400_000,
}

interface StartingInterval {
  readonly startMs: number
  readonly day: string
}

/** The interval that holds an instant, and all that follow. */
function* intervalsFrom(
  timeMs: number,
  interval: BucketInterval,
  calendar: BucketCalendar,
): Generator<StartingInterval, never> {
  for (let start = startOf(timeMs, interval, calendar); ; start = nextStart(start, interval)) {
    yield { startMs: start.epochMilliseconds, day: nameOf(start, interval) }
    if (interval === 'hour') start = yield* steadyHours(start)
  }
}

const hourMs = 3_600_000

/**
 * The hours that follow until shortly before the clock changes, by arithmetic: a year of hours takes a tenth of the time.
 * @returns the last hour that it yielded, or `start`.
 */
function* steadyHours(start: Temporal.ZonedDateTime): Generator<StartingInterval, Temporal.ZonedDateTime> {
  const change = start.getTimeZoneTransition('next')
  const endMs = (change?.epochMilliseconds ?? Number.POSITIVE_INFINITY) - 2 * hourMs
  const offsetMs = start.offsetNanoseconds / 1e6
  const firstMs = start.epochMilliseconds
  if ((firstMs + offsetMs) % hourMs !== 0) return start
  for (let startMs = firstMs + hourMs; ; startMs += hourMs) {
    if (startMs >= endMs || startMs - firstMs >= steadyHoursMax * hourMs) {
      return Temporal.Instant.fromEpochMilliseconds(startMs - hourMs).toZonedDateTimeISO(start.timeZoneId)
    }
    const wall = new Date(startMs + offsetMs).toISOString()
    yield { startMs, day: `${wall.slice(0, 10)} ${wall.slice(11, 19)}` }
  }
}

/** Far from the limit of what a date can be. */
const steadyHoursMax = 100_000

function zoned(timeMs: number, { timezone }: BucketCalendar): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(timeMs).toZonedDateTimeISO(timezone)
}

function startOf(timeMs: number, interval: BucketInterval, calendar: BucketCalendar): Temporal.ZonedDateTime {
  const time = zoned(timeMs, calendar)
  if (interval === 'hour') return startOfHour(time)
  const date = time.toPlainDate()
  if (interval === 'day') return date.toZonedDateTime(calendar.timezone)
  if (interval === 'month') return date.with({ day: 1 }).toZonedDateTime(calendar.timezone)
  const daysBack = (date.dayOfWeek - calendar.weekStartDay) % 7
  return date.subtract({ days: daysBack }).toZonedDateTime(calendar.timezone)
}

/** The latest full hour on the wall. Where the clock jumped over it, the instant of the jump. */
function startOfHour(time: Temporal.ZonedDateTime): Temporal.ZonedDateTime {
  const rounded = time.round({ smallestUnit: 'hour', roundingMode: 'floor' })
  return rounded.epochMilliseconds <= time.epochMilliseconds ? rounded : time
}

function nextStart(start: Temporal.ZonedDateTime, interval: BucketInterval): Temporal.ZonedDateTime {
  if (interval === 'hour') return nextHour(start)
  const date = start.toPlainDate()
  const step = { [`${interval}s`]: 1 } as Temporal.DurationLike
  let next = date.add(step)
  // The start of a day that the zone skipped is that of the day after.
  for (;;) {
    const begins = next.toZonedDateTime(start.timeZoneId)
    if (begins.toPlainDate().equals(next) || interval !== 'day') return begins
    next = next.add(step)
  }
}

function nextHour(start: Temporal.ZonedDateTime): Temporal.ZonedDateTime {
  const after = startOfHour(start.add({ hours: 1 }))
  if (after.epochMilliseconds > start.epochMilliseconds) return after
  // A clock that is put back by half an hour repeats half of this hour, which is one bucket of an hour and a half.
  return start.add({ hours: 1 }).round({ smallestUnit: 'hour', roundingMode: 'ceil' })
}

function nameOf(start: Temporal.ZonedDateTime, interval: BucketInterval): string {
  const date = start.toPlainDate().toString()
  return interval === 'hour' ? `${date} ${start.toPlainTime().toString({ smallestUnit: 'second' })}` : date
}
