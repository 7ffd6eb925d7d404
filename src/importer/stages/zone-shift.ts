// Detects that a product's times are wall-clock times of some zone although they look like UTC: then all differ from the
// times of receipt by the same number of hours. Source: docs/wire/import.md §1.2 (zone shift).

import { formatCount } from '#core/format-count.ts'
import { JobStopped, type Remedy } from '../job/job-paused.ts'
import type { ScanStats, ZoneShift } from '../job/manifest.ts'

/** How often each note `zone_shift:SECONDS` occurred. */
type ShiftCounts = Readonly<Record<string, number>>

/** @returns null unless most records have the same non-zero shift. */
export function findZoneShift(counts: ShiftCounts): ZoneShift | null {
  const shift = findMostFrequentShift(selectZoneShifts(counts))
  return shift?.seconds === 0 ? null : shift
}

/** Fewer records than this do not refute a given zone: all of them may have been received late. */
const evidenceMin = 20
const agreeingShareMin = 0.05

/**
 * Finds the actual shift of the times, by their receipt, if hardly any record agrees with the given zone.
 * @param differing how many of the notes differ from the zone.
 * @returns null if enough records agree, or too few have a time of receipt.
 */
export function findWrongZone(counts: ShiftCounts, differing: number): ZoneShift | null {
  const shifts = selectZoneShifts(counts)
  const all = addUp(shifts.values())
  const agreeing = addUp(Object.values(counts)) - differing
  return all < evidenceMin || agreeing >= all * agreeingShareMin ? null : findMostFrequentShift(shifts)
}

/** Whether the time of receipt of any record reveals the zone. */
export function revealsZone(counts: ShiftCounts): boolean {
  return selectZoneShifts(counts).size > 0
}

/** Leaves out shifts that no zone has: such records were received late, or their clock was wrong. */
function selectZoneShifts(counts: ShiftCounts): ReadonlyMap<number, number> {
  const shifts = new Map<number, number>()
  for (const [note, count] of Object.entries(counts)) {
    const seconds = Number(note.slice(note.indexOf(':') + 1))
    if (isOffsetOfZone(seconds)) shifts.set(seconds, count)
  }
  return shifts
}

const halfHourSeconds = 1_800
const [offsetSecondsMin, offsetSecondsMax] = [-12 * 3_600, 14 * 3_600]
/** Nepal, Eucla, and the Chatham Islands in winter and summer. All other zones are whole or half hours from UTC. */
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

/** Counts two shifts an hour apart as one, since most zones change their clocks, and returns the more frequent of the two. */
function findMostFrequentShift(shifts: ReadonlyMap<number, number>): ZoneShift | null {
  const all = addUp(shifts.values())
  // UTC has no clock changes, so a shift of zero is not combined with others.
  const countOf = (seconds: number) => (seconds === 0 ? 0 : (shifts.get(seconds) ?? 0))
  for (const [seconds, count] of [...shifts].toSorted(([, a], [, b]) => b - a)) {
    const withOtherClock = seconds === 0 ? count : count + Math.max(countOf(seconds - 3_600), countOf(seconds + 3_600))
    if (withOtherClock * 2 > all)
      return { seconds, text: formatOffset(seconds), share: withOtherClock / all, example: findExampleZone(seconds) }
  }
  return null
}

function formatOffset(seconds: number): string {
  const minutes = Math.abs(seconds) / 60
  const padToTwo = (value: number) => String(value).padStart(2, '0')
  return `${seconds < 0 ? '-' : '+'}${padToTwo(Math.floor(minutes / 60))}:${padToTwo(minutes % 60)}`
}

/** By hours from UTC, both in winter and in summer. */
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

function findExampleZone(seconds: number): string {
  return zonesByHours[seconds / 3_600]?.[0] ?? 'Europe/Berlin'
}

/** @param zone given by the user, or null. @throws JobStopped if the zone is missing or wrong. */
export function checkZone(
  { zoneShift, zoneUnproved, wrongZone }: Pick<ScanStats, 'zoneShift' | 'zoneUnproved' | 'wrongZone'>,
  zone: string | null,
): void {
  if (zone !== null) {
    if (wrongZone !== null) throw createZoneStop(wrongZone, zone)
    return
  }
  if (zoneShift !== null)
    throw new JobStopped(
      `the times of ${Math.floor(zoneShift.share * 100)} % of the records are ${zoneShift.text} away from when they were received, so they are wall-clock times, not UTC. ` +
        `Run again with --source-timezone and the zone that was set in the project when they were recorded, such as ` +
        `${zoneShift.example}; the records are then staged again. Nothing was sent`,
      createZoneRemedy(
        `the times are ${zoneShift.text} away from UTC: ZONE is the project's zone when they were recorded, such as ${zoneShift.example}`,
      ),
    )
  if (zoneUnproved > 0)
    throw new JobStopped(
      `${formatCount(zoneUnproved, 'record is', 'records are')} from before 2023, when products stored wall-clock times of the project's zone, and no record has its time of receipt, so nothing shows the zone. ` +
        'Run again with --source-timezone and the zone that was set in the project, or UTC if the times are in UTC: compare an event that you know. The records are then staged again. Nothing was sent',
      createZoneRemedy(
        "nothing shows the zone of the times: ZONE is the project's zone, or UTC if the times are in UTC",
      ),
    )
}

function createZoneStop({ seconds, text }: ZoneShift, zone: string): JobStopped {
  const zones = zonesByHours[seconds / 3_600]
  const fitting = zones === undefined ? `a zone that is ${text} away from UTC` : zones.join(' or ')
  return new JobStopped(
    `hardly any record was received at the hour that the zone ${zone} says: the times are ${text} away from UTC. ` +
      `Run again with --source-timezone and a zone that fits, such as ${fitting}; the records are then staged again. Nothing was sent`,
    createZoneRemedy(
      `the times are ${text} away from UTC, which does not fit ${zone}: ZONE is one that fits, such as ${fitting}`,
    ),
  )
}

function createZoneRemedy(reason: string): Remedy {
  return { command: 'pennon import run FOLDER --source-timezone ZONE', why: reason }
}
