// Windows of days and hours with inclusive ends, so that every hour is requested exactly once, however the source defines
// its range. Source: docs/wire/import.md §1.1, §1.2, §5 complaint 1.

import { ImportConfigError } from '../records/import-source.ts'

const dayMs = 86_400_000
/** UTC−12, the zone in which a day ends last. */
const lastZoneMs = 12 * 3_600_000

/** Whole days, both ends inclusive. */
export interface DayWindow {
  /** `YYYY-MM-DD`. */
  readonly from: string
  readonly to: string
}

/** Whole hours of UTC, both ends inclusive. */
export interface HourWindow {
  /** `YYYYMMDDTHH`, as Amplitude writes it. */
  readonly from: string
  readonly to: string
}

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
  const [first, last] = [Date.parse(from), Date.parse(to)]
  if (first === last) return null
  const middle = first + Math.floor((last - first) / dayMs / 2) * dayMs
  return [
    { from, to: formatDay(middle) },
    { from: formatDay(middle + dayMs), to },
  ]
}

export function toHourWindow({ from, to }: DayWindow): HourWindow {
  return { from: `${from.replaceAll('-', '')}T00`, to: `${to.replaceAll('-', '')}T23` }
}

/** The two halves of a window; null for a single hour. */
export function splitHours({ from, to }: HourWindow): [HourWindow, HourWindow] | null {
  const [first, last] = [parseHour(from), parseHour(to)]
  if (first === last) return null
  const middle = first + Math.floor((last - first) / 3_600_000 / 2) * 3_600_000
  return [
    { from, to: formatHour(middle) },
    { from: formatHour(middle + 3_600_000), to },
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
  const complete = lastCompleteDay(nowMs, readyMs, zone)
  if (to > complete)
    throw new ImportConfigError(
      `The source may still add to ${to}. Fetch up to ${complete} now, and the later days with another job when they have ended.`,
    )
}

export function lastCompleteDay(nowMs: number, readyMs: number, zone: 'utc' | 'any'): string {
  return formatDay(nowMs - readyMs - (zone === 'any' ? lastZoneMs : 0) - dayMs)
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
