// The times of a Matomo visit during which the clocks of its site changed: its actions are shifted by two UTC offsets, and
// in an hour that repeats, a later action may have an earlier local time. Source: docs/wire/import.md §1.6.

import { maxOf, minOf } from '#core/min-max.ts'
import { usPerMs, usPerSecond } from '#importer/records/source-time.ts'

/** An instant at which the clocks of some zones changed. */
interface ClockChange {
  readonly atUs: number
  /** Offset from UTC before and after the change. */
  readonly beforeUs: number
  readonly afterUs: number
}

/** The start and the end of a visit, in microseconds since 1970. */
export interface VisitSpan {
  readonly firstUs: number
  readonly lastUs: number
}

/** How far start and end may be from the first and last action, since Matomo takes them from different clocks. */
const toleranceUs = 60 * usPerSecond
/** The longest visit: bounds the search for clock changes. */
const spanMaxUs = 2 * 86_400 * usPerSecond

/**
 * @param written the local times of the actions, as if they were UTC, in the order in which they happened.
 * @param zone of the site; null tries every zone.
 * @returns the true times in the same order; null if no clock change explains them, as for all but a few visits a year.
 */
export function findTimesAcrossClockChange(
  written: readonly number[],
  span: VisitSpan,
  zone: string | null,
): readonly number[] | null {
  if (span.lastUs <= span.firstUs || span.lastUs - span.firstUs > spanMaxUs) return null
  for (const change of listChangesWithin(span, zone)) {
    const times = findTrueTimes(written, change, span)
    if (times !== null) return times
  }
  return null
}

/**
 * @returns the true times; null unless the first action is at the start of the visit and the last action at its end, and
 * these two actions have different UTC offsets.
 */
function findTrueTimes(
  written: readonly number[],
  { atUs, beforeUs, afterUs }: ClockChange,
  { firstUs, lastUs }: VisitSpan,
): readonly number[] | null {
  const times: number[] = []
  let isAfter = false
  let earlierWritten = Number.NEGATIVE_INFINITY
  for (const writtenUs of written) {
    const [before, after] = [writtenUs - beforeUs, writtenUs - afterUs]
    const mayBeBefore = before < atUs && before >= firstUs - toleranceUs
    const mayBeAfter = after >= atUs && after <= lastUs + toleranceUs
    if (!mayBeBefore && !mayBeAfter) return null
    // In an hour that repeats, a time earlier than the previous time is in the second occurrence.
    isAfter = !mayBeBefore || (mayBeAfter && (isAfter || writtenUs < earlierWritten))
    earlierWritten = writtenUs
    times.push(isAfter ? after : before)
  }
  const [first, last] = [minOf(times), maxOf(times)]
  const isWhole = Math.abs(first - firstUs) <= toleranceUs && Math.abs(last - lastUs) <= toleranceUs
  return isWhole && first < atUs && last >= atUs ? times : null
}

function listChangesWithin({ firstUs, lastUs }: VisitSpan, zone: string | null): readonly ClockChange[] {
  const [firstYear, lastYear] = [firstUs, lastUs].map(us => new Date(us / usPerMs).getUTCFullYear())
  const years = firstYear === lastYear ? [firstYear!] : [firstYear!, lastYear!]
  return years.flatMap(year => listChangesOfYear(year, zone)).filter(({ atUs }) => atUs > firstUs && atUs <= lastUs)
}

const yearsKept = new Map<string, readonly ClockChange[]>()
const yearsKeptMax = 200

/** Lists each distinct change once, no matter how many zones have it. */
function listChangesOfYear(year: number, zone: string | null): readonly ClockChange[] {
  const key = `${year} ${zone}`
  const kept = yearsKept.get(key)
  if (kept !== undefined) return kept
  const changes = new Map<string, ClockChange>()
  for (const name of zone === null ? Intl.supportedValuesOf('timeZone') : [zone])
    for (const change of findZoneChanges(name, year))
      changes.set(`${change.atUs} ${change.beforeUs} ${change.afterUs}`, change)
  if (yearsKept.size >= yearsKeptMax) yearsKept.clear()
  const all = [...changes.values()]
  yearsKept.set(key, all)
  return all
}

function* findZoneChanges(zone: string, year: number): Generator<ClockChange> {
  const endMs = Date.UTC(year + 1, 0, 1)
  let before = Temporal.Instant.fromEpochMilliseconds(Date.UTC(year, 0, 1)).toZonedDateTimeISO(zone)
  for (let next = before.getTimeZoneTransition('next'); next !== null; next = before.getTimeZoneTransition('next')) {
    if (next.epochMilliseconds >= endMs) return
    const [beforeUs, afterUs] = [before, next].map(each => each.offsetNanoseconds / 1_000)
    yield { atUs: next.epochMilliseconds * usPerMs, beforeUs: beforeUs!, afterUs: afterUs! }
    before = next
  }
}
