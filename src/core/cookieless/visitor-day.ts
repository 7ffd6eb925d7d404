// The calendar day for which a visitor without cookies is recognised: a day of the visitor's time zone. The day is open
// from the moment it may have begun somewhere until its late events have arrived. Source: docs/wire/ingestion.md 13.

import { detachSubstring } from '../detach-substring.ts'
import { dayMs } from '../time.ts'
import { utcDay } from '../usage.ts'

const hourMs = 3_600_000
/** PostHog's bound: in zones of UTC+13 and UTC+14 a day begins up to two hours before it is open. */
const openBeforeMs = 12 * hourMs
/** A day ends at most 14 hours later than in UTC, and its events may arrive 72 hours late. */
const openAfterMs = 86 * hourMs

export interface VisitorDay {
  /** `2026-11-28`. */
  readonly day: string
  /** When the day begins and ends in its time zone, epoch ms. */
  readonly startMs: number
  readonly endMs: number
}

const knownMax = 1_000
/** The day last found in each zone, since times arrive roughly in order. */
const knownDays = new Map<string, VisitorDay>()

/**
 * @param timeMs when the event happened, epoch ms.
 * @param zones IANA names; the first one that exists counts, and UTC if none exists.
 */
export function findVisitorDay(timeMs: number, ...zones: readonly (string | null)[]): VisitorDay {
  for (const zone of zones) {
    if (zone === null) continue
    const known = knownDays.get(zone)
    if (known !== undefined && known.startMs <= timeMs && timeMs < known.endMs) return known
    if (!mayBeZone(zone)) continue
    try {
      return rememberDay(zone, computeVisitorDay(timeMs, zone))
    } catch (cause) {
      if (!(cause instanceof RangeError)) throw cause
    }
  }
  return rememberDay('UTC', computeVisitorDay(timeMs, 'UTC'))
}

/** Whether something may still be hashed with the day's salt. @param day `2026-11-28`. */
export function isDayOpen(day: string, nowMs: number): boolean {
  return nowMs >= parseUtcMidnightMs(day) - openBeforeMs && nowMs < computeDayCloseMs(day)
}

/** When everything that makes a day's visitors recognisable is deleted, epoch ms. */
export function computeDayCloseMs(day: string): number {
  return parseUtcMidnightMs(day) + openAfterMs
}

/** The most recently requested day; nearly all calls ask for the same day. */
let lastDay = ''
let lastMidnightMs = 0

function parseUtcMidnightMs(day: string): number {
  if (day !== lastDay) {
    lastMidnightMs = Date.parse(`${day}T00:00:00Z`)
    lastDay = day
  }
  return lastMidnightMs
}

export interface DayRange {
  readonly first: string
  readonly last: string
}

/**
 * The days whose data, above all salts, are kept: from the first that is not closed to the last that has begun anywhere. A
 * clock that was ahead leaves data of later days, which is deleted too, since it would be kept for too long.
 */
export function findDaysToKeep(nowMs: number): DayRange {
  return { first: utcDay(nowMs - openAfterMs + dayMs), last: utcDay(nowMs + dayMs) }
}

export function isDayInRange({ first, last }: DayRange, day: string): boolean {
  return first <= day && day <= last
}

/**
 * The session of a visitor for a whole day, when nothing about the visitor is stored: a UUIDv7 of the day's start and
 * the hash.
 * @param hash the base hash.
 */
export function deriveStatelessSessionId(startMs: number, hash: Uint8Array): string {
  const bytes = Buffer.alloc(16)
  bytes.writeUIntBE(Math.max(startMs, 0), 0, 6)
  bytes.set(hash.subarray(0, 10), 6)
  bytes[6] = (bytes[6]! & 0x0f) | 0x70
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Offsets such as `+02:00` are not zones, though `Temporal` accepts them. */
function mayBeZone(name: string): boolean {
  return name.length <= 100 && /^[A-Za-z]/.test(name)
}

/** @throws RangeError for a zone that does not exist. */
function computeVisitorDay(timeMs: number, zone: string): VisitorDay {
  const start = Temporal.Instant.fromEpochMilliseconds(timeMs).toZonedDateTimeISO(zone).startOfDay()
  const day = start.toPlainDate().toString()
  return { day, startMs: start.epochMilliseconds, endMs: start.add({ days: 1 }).startOfDay().epochMilliseconds }
}

function rememberDay(zone: string, day: VisitorDay): VisitorDay {
  if (knownDays.size >= knownMax) knownDays.clear()
  knownDays.set(detachSubstring(zone), day)
  return day
}
