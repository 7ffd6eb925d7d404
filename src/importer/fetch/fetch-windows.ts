// Windows of days and hours with inclusive ends, so that every hour is requested exactly once, however the source defines
// its range. Source: docs/wire/import.md §1.1, §1.2, §5 complaint 1.

import { dayMs } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'
import { ImportConfigError } from '../records/import-source.ts'

const hourMs = 3_600_000
/** UTC−12, the zone in which a day ends last. */
const lastZoneMs = 12 * hourMs

/** Whole days as `YYYY-MM-DD`, both ends inclusive; or whole units where a `WindowUnit` is given. */
export interface DayWindow {
  readonly from: string
  readonly to: string
}

/** The unit of the two ends of a window, and how they are written. */
export interface WindowUnit {
  readonly ms: number
  parse(text: string): number
  format(ms: number): string
}

export const days: WindowUnit = { ms: dayMs, parse: Date.parse, format: utcDay }

/** Hours of UTC, as Amplitude writes them: `YYYYMMDDTHH`. */
export const hours: WindowUnit = {
  ms: hourMs,
  parse: text => Date.parse(text.replace(/(..)(..)T(..)$/, '-$1-$2T$3:00Z')),
  format: ms => new Date(ms).toISOString().slice(0, 13).replaceAll('-', ''),
}

/**
 * @returns the start of the day in UTC, in milliseconds. @throws ImportConfigError for a text that is not a calendar day.
 */
export function parseDay(text: string, key: string): number {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  if (Number.isNaN(ms) || utcDay(ms) !== text)
    throw new ImportConfigError(`${key} must be a day such as 2024-05-01, and is ${JSON.stringify(text)}.`)
  return ms
}

/** Consecutive windows of at most `dayCount` days that cover the range of days, oldest first. */
export function divideIntoWindows({ from, to }: DayWindow, dayCount: number, { ms, format } = days): DayWindow[] {
  const [first, last] = [Date.parse(from), Date.parse(to)]
  const windows: DayWindow[] = []
  for (let at = first; at <= last; at += dayCount * dayMs)
    windows.push({ from: format(at), to: format(Math.min(last + dayMs, at + dayCount * dayMs) - ms) })
  return windows
}

/** The two halves of a window; null for a single unit. */
export function splitWindow({ from, to }: DayWindow, { ms, parse, format }: WindowUnit): [DayWindow, DayWindow] | null {
  if (from === to) return null
  const middle = parse(from) + Math.floor((parse(to) - parse(from)) / ms / 2) * ms
  return [
    { from, to: format(middle) },
    { from: format(middle + ms), to },
  ]
}

/**
 * Refuses a range whose last day can still grow, since a part is fetched only once.
 * @param readyMs how long after the end of a day the source has all its data.
 * @param zone `utc` if the source counts days in UTC; `any` if it counts them in the zone of its project, which is
 * unknown here.
 */
export function checkFetchRange({ from, to }: DayWindow, nowMs: number, readyMs: number, zone: 'utc' | 'any'): void {
  if (from > to) throw new ImportConfigError(`from (${from}) is later than to (${to}).`)
  const complete = utcDay(nowMs - readyMs - (zone === 'any' ? lastZoneMs : 0) - dayMs)
  if (to > complete)
    throw new ImportConfigError(
      `The source may still add to ${to}. Fetch up to ${complete} now, and the later days with another job when they have ended.`,
    )
}
