// Windows of days and hours with inclusive ends, so that every hour is requested exactly once, however the source defines
// its range. Source: docs/wire/import.md §1.1, §1.2, §5 complaint 1.

import { ImportConfigError } from '../records/import-source.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** UTC−12, the zone in which a day ends last. */
const lastZoneMs = 12 * hourMs

/** Whole days as `YYYY-MM-DD`, both ends inclusive. */
export interface DayWindow {
  readonly from: string
  readonly to: string
}

/** Whole hours of UTC, as Amplitude writes them: `YYYYMMDDTHH`. */
export type HourWindow = DayWindow

/** @returns the start of the day in UTC, in milliseconds. @throws ImportConfigError for a text that is no calendar day. */
export function parseDay(text: string, key: string): number {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  if (Number.isNaN(ms) || formatDay(ms) !== text)
    throw new ImportConfigError(`${key} must be a day such as 2024-05-01, and is ${JSON.stringify(text)}.`)
  return ms
}

/** Consecutive windows of at most `days` days that cover the range, oldest first. */
export function divideIntoWindows({ from, to }: DayWindow, days: number): DayWindow[] {
  const [first, last] = [Date.parse(from), Date.parse(to)]
  const windows: DayWindow[] = []
  for (let at = first; at <= last; at += days * dayMs)
    windows.push({ from: formatDay(at), to: formatDay(Math.min(last, at + (days - 1) * dayMs)) })
  return windows
}

/** The two halves of a window; null for a single day. */
export function splitDays({ from, to }: DayWindow): [DayWindow, DayWindow] | null {
  return halve(Date.parse(from), Date.parse(to), dayMs, formatDay)
}

export function toHourWindow({ from, to }: DayWindow): HourWindow {
  return { from: `${from.replaceAll('-', '')}T00`, to: `${to.replaceAll('-', '')}T23` }
}

/** The two halves of a window; null for a single hour. */
export function splitHours({ from, to }: HourWindow): [HourWindow, HourWindow] | null {
  return halve(parseHour(from), parseHour(to), hourMs, formatHour)
}

/** @param first in milliseconds, as `last`, which is included. */
function halve(
  first: number,
  last: number,
  unitMs: number,
  format: (ms: number) => string,
): [DayWindow, DayWindow] | null {
  if (first === last) return null
  const middle = first + Math.floor((last - first) / unitMs / 2) * unitMs
  return [
    { from: format(first), to: format(middle) },
    { from: format(middle + unitMs), to: format(last) },
  ]
}

/**
 * Refuses a range whose last day can still grow, since a part is fetched only once.
 * @param readyMs how long after the end of a day the source has all its data.
 * @param zone `utc` if the source counts days in UTC; `any` if it counts them in the zone of its project, which is
 * unknown here.
 */
export function checkRange({ from, to }: DayWindow, nowMs: number, readyMs: number, zone: 'utc' | 'any'): void {
  const [first, last] = [parseDay(from, 'from'), parseDay(to, 'to')]
  if (first > last) throw new ImportConfigError(`from (${from}) is later than to (${to}).`)
  const complete = formatDay(nowMs - readyMs - (zone === 'any' ? lastZoneMs : 0) - dayMs)
  if (to > complete)
    throw new ImportConfigError(
      `The source may still add to ${to}. Fetch up to ${complete} now, and the later days with another job when they have ended.`,
    )
}

export function formatDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

function parseHour(text: string): number {
  return Date.parse(`${text.slice(0, 4)}-${text.slice(4, 6)}-${text.slice(6, 8)}T${text.slice(9)}:00:00Z`)
}

function formatHour(ms: number): string {
  return new Date(ms).toISOString().slice(0, 13).replaceAll('-', '')
}
