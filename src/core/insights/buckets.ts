// Divides a range of time into the buckets of an insight: hours, days, weeks or months of the project's zone. Stores never
// compute with zones: they get the edges of the buckets and put each row between two edges. Source: PostHog's TrendsQuery;
// docs/wire/private-api.md.

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
  /** If true, the first bucket begins at `fromMs`, even within an interval; otherwise it begins where its interval does. */
  readonly startsExactly?: boolean
  /** A day that the zone skipped, at the beginning of the range: `fromMs` is then the start of the following day. */
  readonly firstDay?: string
  /** A day that the zone skipped, at the end of the range: `endMs` is then the end of the preceding day. */
  readonly lastDay?: string
}

export interface Buckets {
  readonly interval: BucketInterval
  /**
   * Ascending epoch ms, one more than there are buckets: bucket `i` holds the instants from `edges[i]` until just before
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
 * Divides a range into buckets. The last bucket ends with the range; every other bucket ends where the next one begins. A
 * day of 23 or 25 hours is one bucket. A day that the zone skipped is an empty bucket at the start of the following day.
 * @param countMax the most buckets that the caller can use.
 * @returns null when there would be more. A range that is empty has no bucket, unless it begins with a skipped day.
 */
export function createBuckets(
  range: TimeRange,
  interval: BucketInterval,
  calendar: BucketCalendar,
  countMax: number,
): Buckets | null {
  const edges: number[] = []
  const days: string[] = []
  if (range.endMs <= range.fromMs && range.firstDay === undefined) return { interval, edges, days }
  if ((range.endMs - range.fromMs) / longestMs[interval] > countMax + 1) return null
  const lastDay =
    range.lastDay ??
    toZonedTime(range.endMs - 1, calendar)
      .toPlainDate()
      .toString()
  for (const { startMs, day } of iterateIntervals(findFirstStart(range, interval, calendar), interval, calendar)) {
    if (edges.length > 0 && startMs >= range.endMs && day > lastDay) break
    if (edges.length === countMax) return null
    edges.push(edges.length === 0 && range.startsExactly ? range.fromMs : startMs)
    days.push(day)
  }
  edges.push(range.endMs)
  return { interval, edges, days }
}

/** The start of the interval that holds an instant, epoch ms. */
export function findIntervalStart(timeMs: number, interval: BucketInterval, calendar: BucketCalendar): number {
  return toStartMs(startAt(timeMs, interval, calendar), calendar)
}

/** The first instant after the interval that holds an instant, epoch ms. */
export function findIntervalEnd(timeMs: number, interval: BucketInterval, calendar: BucketCalendar): number {
  return toStartMs(nextStart(startAt(timeMs, interval, calendar), interval), calendar)
}

/**
 * `fromMs`, or the last instant of the range when that is earlier: the first event may come after the range. Unchanged
 * for a range that begins with a skipped day.
 */
export function clampToRange({ endMs, firstDay }: Pick<TimeRange, 'endMs' | 'firstDay'>, fromMs: number): number {
  return firstDay === undefined ? Math.min(fromMs, endMs - 1) : fromMs
}

/**
 * As many buckets as `current` has, beginning earlier, to compare with. The last one ends early if the last bucket of
 * `current` does: half of a month is compared with half a month.
 * @param shift the distance from the current start back to the earlier one.
 */
export function createEarlierBuckets(
  current: Buckets,
  shift: Temporal.DurationLike,
  calendar: BucketCalendar,
): Buckets {
  const { interval, edges: currentEdges } = current
  const count = current.days.length
  if (count === 0) return current
  const edges: number[] = []
  const days: string[] = []
  const first = startOfBucket({ startMs: currentEdges[0]!, day: current.days[0]! }, interval, calendar)
  const cutMs = currentEdges[0]! - toStartMs(first, calendar)
  for (const bucket of iterateIntervals(findEarlierStart(first, shift, interval, calendar), interval, calendar)) {
    edges.push(edges.length === 0 ? bucket.startMs + cutMs : bucket.startMs)
    days.push(bucket.day)
    if (edges.length < count) continue
    edges.push(findEarlierEnd(current, startOfBucket(bucket, interval, calendar), calendar))
    break
  }
  return { interval, edges, days }
}

/** The default distance back to the previous period, which lies directly before the current one. */
export function findPreviousPeriod({ interval, days }: Buckets): Temporal.DurationLike {
  const count = days.length
  switch (interval) {
    case 'hour':
      // Whole days if there is at least one, so that each hour is compared with the same hour of the day.
      return count < 24 ? { hours: count } : { days: Math.floor(count / 24) }
    case 'day':
      return { days: count }
    case 'week':
      return { weeks: count }
    case 'month':
      return { months: count }
  }
}

function findEarlierStart(
  start: IntervalStart,
  shift: Temporal.DurationLike,
  interval: BucketInterval,
  calendar: BucketCalendar,
): IntervalStart {
  if (start instanceof Temporal.PlainDate && Temporal.Duration.from(shift).hours === 0)
    return firstDayOfInterval(start.subtract(shift), interval, calendar)
  return startAt(toZonedStart(start, calendar).subtract(shift).epochMilliseconds, interval, calendar)
}

/** The end of an earlier period, whose last bucket begins with `last`. */
function findEarlierEnd(current: Buckets, last: IntervalStart, calendar: BucketCalendar): number {
  const { interval, edges, days } = current
  const endMs = edges.at(-1)!
  const currentLast = startOfBucket({ startMs: endMs - 1, day: days.at(-1)! }, interval, calendar)
  const wholeMs = toStartMs(nextStart(last, interval), calendar)
  if (endMs >= toStartMs(nextStart(currentLast, interval), calendar)) return wholeMs
  const largestUnit = interval === 'hour' ? 'hours' : 'days'
  const elapsed = toZonedStart(currentLast, calendar).until(toZonedTime(endMs, calendar), { largestUnit })
  return Math.min(toZonedStart(last, calendar).add(elapsed).epochMilliseconds, wholeMs)
}

/** No interval is longer than this, which bounds the work for a range of thousands of years. */
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

/** Where an interval begins: an instant for an hour, otherwise a date, since a day that the zone skipped has no instant. */
type IntervalStart = Temporal.ZonedDateTime | Temporal.PlainDate

/** Yields the interval that begins at `first` and all intervals after it. */
function* iterateIntervals(
  first: IntervalStart,
  interval: BucketInterval,
  calendar: BucketCalendar,
): Generator<StartingInterval, never> {
  for (let start = first; ; start = nextStart(start, interval)) {
    yield { startMs: toStartMs(start, calendar), day: formatStart(start) }
    if (start instanceof Temporal.ZonedDateTime) start = yield* iterateSteadyHours(start)
  }
}

const hourMs = 3_600_000

/**
 * Yields the hours after `start` until shortly before the clock changes. Uses arithmetic, which takes a tenth of the time.
 * @returns the last hour that it yielded, or `start`.
 */
function* iterateSteadyHours(start: Temporal.ZonedDateTime): Generator<StartingInterval, Temporal.ZonedDateTime> {
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

/** Limits a run of hours, so that it stays far from the last possible date. */
const steadyHoursMax = 100_000

function toZonedTime(timeMs: number, { timezone }: BucketCalendar): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(timeMs).toZonedDateTimeISO(timezone)
}

function toZonedStart(start: IntervalStart, { timezone }: BucketCalendar): Temporal.ZonedDateTime {
  return start instanceof Temporal.ZonedDateTime ? start : start.toZonedDateTime(timezone)
}

function toStartMs(start: IntervalStart, calendar: BucketCalendar): number {
  return toZonedStart(start, calendar).epochMilliseconds
}

function findFirstStart(
  { fromMs, firstDay }: TimeRange,
  interval: BucketInterval,
  calendar: BucketCalendar,
): IntervalStart {
  if (firstDay === undefined || interval === 'hour') return startAt(fromMs, interval, calendar)
  return firstDayOfInterval(Temporal.PlainDate.from(firstDay), interval, calendar)
}

/** The start of a bucket's whole interval; the bucket itself may begin within it. */
function startOfBucket(
  { startMs, day }: StartingInterval,
  interval: BucketInterval,
  calendar: BucketCalendar,
): IntervalStart {
  return interval === 'hour' ? startOfHour(toZonedTime(startMs, calendar)) : Temporal.PlainDate.from(day)
}

function startAt(timeMs: number, interval: BucketInterval, calendar: BucketCalendar): IntervalStart {
  const time = toZonedTime(timeMs, calendar)
  return interval === 'hour' ? startOfHour(time) : firstDayOfInterval(time.toPlainDate(), interval, calendar)
}

/** The first day of the interval that holds a day. */
function firstDayOfInterval(
  date: Temporal.PlainDate,
  interval: BucketInterval,
  { weekStartDay }: Pick<BucketCalendar, 'weekStartDay'>,
): Temporal.PlainDate {
  if (interval === 'week') return date.subtract({ days: (date.dayOfWeek - weekStartDay) % 7 })
  return interval === 'month' ? date.with({ day: 1 }) : date
}

/** The latest full hour on the wall clock; if the clock jumped over it, the instant of the jump. */
function startOfHour(time: Temporal.ZonedDateTime): Temporal.ZonedDateTime {
  const rounded = time.round({ smallestUnit: 'hour', roundingMode: 'floor' })
  return rounded.epochMilliseconds <= time.epochMilliseconds ? rounded : time
}

function nextStart(start: IntervalStart, interval: BucketInterval): IntervalStart {
  return start instanceof Temporal.ZonedDateTime ? nextHour(start) : start.add({ [`${interval}s`]: 1 })
}

function nextHour(start: Temporal.ZonedDateTime): Temporal.ZonedDateTime {
  const after = startOfHour(start.add({ hours: 1 }))
  if (after.epochMilliseconds > start.epochMilliseconds) return after
  // A clock that is put back by half an hour repeats half of this hour; the bucket is then an hour and a half long.
  return start.add({ hours: 1 }).round({ smallestUnit: 'hour', roundingMode: 'ceil' })
}

function formatStart(start: IntervalStart): string {
  if (start instanceof Temporal.PlainDate) return start.toString()
  return `${start.toPlainDate()} ${start.toPlainTime().toString({ smallestUnit: 'second' })}`
}
