// Which days of a project's history import jobs cover, with gaps and overlaps. Pure.

import { dayMs, parseDayNumber } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'

export interface JobDays {
  readonly id: number
  /** The first and the last covered day, in UTC, such as `2024-05-01`. */
  readonly first: string
  readonly last: string
}

/** Consecutive days that the same jobs cover. */
export interface DaySpan {
  readonly first: string
  readonly last: string
  readonly days: number
  /** The ids of the jobs, ascending: none for a gap between two jobs or inside a job, several for an overlap. */
  readonly ids: readonly number[]
}

/**
 * @param first what a job reported as its first day, usually a text that begins with a day. @returns null for anything
 * else.
 */
export function readDaySpan(first: unknown, last: unknown): Pick<JobDays, 'first' | 'last'> | null {
  const [from, to] = [parseDay(first), parseDay(last)]
  return from === null || to === null || to < from ? null : { first: from, last: to }
}

function parseDay(text: unknown): string | null {
  if (typeof text !== 'string' || !/^\d{4}-\d\d-\d\d/.test(text)) return null
  const day = text.slice(0, 10)
  const number = parseDayNumber(day)
  return Number.isNaN(number) || formatDay(number) !== day ? null : day
}

/** The most gaps reported: more would exceed what the service stores of a job. The longest gaps are kept. */
const gapsMax = 500

/** @param days with events, ascending. @returns consecutive days of a job without any event, as it reports them. */
export function findDayGaps(days: readonly string[]): [first: string, last: string][] {
  const numbers = days.map(parseDayNumber)
  const gaps = numbers.flatMap((number, index) => {
    const before = numbers[index - 1] ?? number
    return number - before > 1 ? [{ first: before + 1, last: number - 1 }] : []
  })
  return gaps
    .toSorted((a, b) => b.last - b.first - (a.last - a.first))
    .slice(0, gapsMax)
    .toSorted((a, b) => a.first - b.first)
    .map(({ first, last }) => [formatDay(first), formatDay(last)])
}

/** @param gaps the gaps that the job reported, unchecked. @returns the job's days outside the gaps. */
export function removeDayGaps({ id, first, last }: JobDays, gaps: unknown): readonly JobDays[] {
  const known = (Array.isArray(gaps) ? gaps : [])
    .flatMap(gap => (Array.isArray(gap) ? (readDaySpan(gap[0], gap[1]) ?? []) : []))
    .toSorted((a, b) => parseDayNumber(a.first) - parseDayNumber(b.first))
  const spans: JobDays[] = []
  let from = parseDayNumber(first)
  const end = parseDayNumber(last)
  for (const gap of known) {
    const to = Math.min(end, parseDayNumber(gap.first) - 1)
    if (from <= to) spans.push({ id, first: formatDay(from), last: formatDay(to) })
    from = Math.max(from, parseDayNumber(gap.last) + 1)
  }
  return from <= end ? [...spans, { id, first: formatDay(from), last }] : spans
}

/** @returns spans without a break from the first covered day to the last. */
export function mergeCoveredDays(jobs: readonly JobDays[]): readonly DaySpan[] {
  // Where jobs begin or end, as days since 1970; an end is the first day after a job.
  const edges = new Set(jobs.flatMap(({ first, last }) => [parseDayNumber(first), parseDayNumber(last) + 1]))
  const sorted = [...edges].toSorted((a, b) => a - b)
  return sorted.slice(0, -1).map((from, index) => {
    const to = sorted[index + 1]! - 1
    const ids = jobs
      .filter(({ first, last }) => parseDayNumber(first) <= from && to <= parseDayNumber(last))
      .map(({ id }) => id)
    return { first: formatDay(from), last: formatDay(to), days: to - from + 1, ids: ids.toSorted((a, b) => a - b) }
  })
}

function formatDay(number: number): string {
  return utcDay(number * dayMs)
}
