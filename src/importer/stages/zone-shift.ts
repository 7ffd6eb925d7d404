// Detects that a product's times are local times of some zone although they look like UTC: all of them then differ from the
// times of receipt by the same number of hours. Source: docs/wire/import.md §1.2 (zone shift).

import { formatCount } from '#core/format-count.ts'
import { JobStopped } from '../job/job-paused.ts'
import type { Manifest } from '../job/manifest.ts'

interface ZoneShift {
  /** By how many seconds the times are ahead of the times of receipt. */
  readonly seconds: number
  /** Such as `+02:00`. */
  readonly text: string
  /** The share of records with this shift among all records with a time of receipt, 0 to 1. */
  readonly share: number
}

/**
 * With fewer records than this, do not conclude that the configured time zone is wrong: all of them may have been
 * received late.
 */
const evidenceMin = 20
const agreeingShareMin = 0.05

/**
 * @param notes `zone_shift:SECONDS`, `zone_shift_differs` and `zone_unproved`, with the count of each.
 * @param zone given by the user, or null.
 * @throws JobStopped if the zone is missing or wrong.
 */
export function checkConfiguredZone(notes: Manifest['scan']['zoneNotes'], zone: string | null): void {
  const countOf = (name: string) => notes.find(({ note }) => note === name)?.count ?? 0
  const received = notes.filter(({ note }) => note.startsWith('zone_shift:'))
  // Shifts that are not the offset of any zone come from records that were received late, or from a wrong clock.
  const shifts = new Map(
    received
      .map(({ note, count }) => [parseShiftSeconds(note), count] as const)
      .filter(([seconds]) => isOffsetOfZone(seconds)),
  )
  const shift = findMostFrequentShift(shifts)
  if (zone !== null) {
    const all = addUp(shifts.values())
    const agreeing = addUp(received.map(({ count }) => count)) - countOf('zone_shift_differs')
    if (shift !== null && all >= evidenceMin && agreeing < all * agreeingShareMin) throw createZoneStop(shift, zone)
    return
  }
  if (shift !== null && shift.seconds !== 0) throw createShiftStop(shift)
  const unproved = countOf('zone_unproved')
  // Stop only if no record has a time of receipt: a single one is enough to reveal the zone.
  if (unproved > 0 && shifts.size === 0) throw createUnprovedStop(unproved)
}

function parseShiftSeconds(note: string): number {
  return Number(note.slice(note.indexOf(':') + 1))
}

const halfHourSeconds = 1_800
const [offsetSecondsMin, offsetSecondsMax] = [-12 * 3_600, 14 * 3_600]
/** The offsets of Nepal, Eucla and the Chatham Islands (winter, summer). All other offsets are whole or half hours. */
const oddOffsetSeconds: ReadonlySet<number> = new Set([20_700, 31_500, 45_900, 49_500])

function isOffsetOfZone(seconds: number): boolean {
  if (oddOffsetSeconds.has(seconds)) return true
  if (seconds % halfHourSeconds !== 0 || Math.abs(seconds) === halfHourSeconds) return false
  return seconds >= offsetSecondsMin && seconds <= offsetSecondsMax
}

function addUp(counts: Iterable<number>): number {
  let sum = 0
  for (const count of counts) sum += count
  return sum
}

/**
 * Counts two shifts that are an hour apart as one shift, since most zones change their clocks, and returns the more
 * frequent of the two.
 */
function findMostFrequentShift(shifts: ReadonlyMap<number, number>): ZoneShift | null {
  const all = addUp(shifts.values())
  // UTC has no clock changes, so a shift of zero is not combined with others.
  const countOf = (seconds: number) => (seconds === 0 ? 0 : (shifts.get(seconds) ?? 0))
  for (const [seconds, count] of [...shifts].toSorted(([, a], [, b]) => b - a)) {
    const withOtherClock = seconds === 0 ? count : count + Math.max(countOf(seconds - 3_600), countOf(seconds + 3_600))
    if (withOtherClock * 2 > all) return { seconds, text: formatOffset(seconds), share: withOtherClock / all }
  }
  return null
}

function formatOffset(seconds: number): string {
  const minutes = Math.abs(seconds) / 60
  const padToTwo = (value: number) => String(value).padStart(2, '0')
  return `${seconds < 0 ? '-' : '+'}${padToTwo(Math.floor(minutes / 60))}:${padToTwo(minutes % 60)}`
}

/** Example zones by their offset from UTC in hours; a zone is listed at its offsets in winter and in summer. */
const zonesByHours: Readonly<Record<number, readonly string[]>> = {
  [-10]: ['Pacific/Honolulu'],
  [-9]: ['America/Anchorage'],
  [-8]: ['America/Los_Angeles'],
  [-7]: ['America/Los_Angeles', 'America/Denver'],
  [-6]: ['America/Chicago', 'America/Denver'],
  [-5]: ['America/New_York', 'America/Chicago'],
  [-4]: ['America/New_York', 'America/Halifax'],
  [-3]: ['America/Sao_Paulo'],
  0: ['UTC', 'Europe/London'],
  1: ['Europe/Berlin', 'Europe/London'],
  2: ['Europe/Berlin', 'Europe/Helsinki'],
  3: ['Europe/Istanbul', 'Europe/Helsinki'],
  4: ['Asia/Dubai'],
  5: ['Asia/Karachi'],
  5.5: ['Asia/Kolkata'],
  7: ['Asia/Bangkok'],
  8: ['Asia/Singapore', 'Asia/Shanghai'],
  9: ['Asia/Tokyo'],
  10: ['Australia/Sydney', 'Australia/Brisbane'],
  11: ['Australia/Sydney'],
  12: ['Pacific/Auckland'],
  13: ['Pacific/Auckland'],
}

function createShiftStop({ seconds, text, share }: ZoneShift): JobStopped {
  const [example = 'Europe/Berlin'] = zonesByHours[seconds / 3_600] ?? []
  return createStop(
    `the times of ${Math.floor(share * 100)} % of the records are ${text} away from when they were received, so they are wall-clock times, not UTC. ` +
      `Run again with --source-timezone and the zone that was set in the project when they were recorded, such as ` +
      `${example}; the records`,
    `the times are ${text} away from UTC: ZONE is the project's zone when they were recorded, such as ${example}`,
  )
}

function createUnprovedStop(records: number): JobStopped {
  return createStop(
    `${formatCount(records, 'record is', 'records are')} from before 2023, when products stored wall-clock times of the project's zone, and no record has its time of receipt, so nothing shows the zone. ` +
      'Run again with --source-timezone and the zone that was set in the project, or UTC if the times are in UTC: compare an event that you know. The records',
    "nothing shows the zone of the times: ZONE is the project's zone, or UTC if the times are in UTC",
  )
}

function createZoneStop({ seconds, text }: ZoneShift, zone: string): JobStopped {
  const zones = zonesByHours[seconds / 3_600]
  const fitting = zones === undefined ? `a zone that is ${text} away from UTC` : zones.join(' or ')
  return createStop(
    `hardly any record was received at the hour that the zone ${zone} says: the times are ${text} away from UTC. ` +
      `Run again with --source-timezone and a zone that fits, such as ${fitting}; the records`,
    `the times are ${text} away from UTC, which does not fit ${zone}: ZONE is one that fits, such as ${fitting}`,
  )
}

/** @param message the sentence up to "are then staged again". */
function createStop(message: string, why: string): JobStopped {
  return new JobStopped(`${message} are then staged again. Nothing was sent`, {
    command: 'pennon import run FOLDER --source-timezone ZONE',
    why,
  })
}
