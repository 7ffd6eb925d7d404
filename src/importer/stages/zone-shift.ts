// Tells when a product's times are wall-clock times of some zone although they look like UTC: they all differ from the
// times of receipt by the same hours. Source: docs/wire/import.md §1.2 (zone shift).

import { counted } from '#core/counted.ts'
import { JobStopped, type WayOut } from '../job/job-paused.ts'

export interface ZoneShift {
  /** Seconds that the times are ahead of the receipt. */
  readonly seconds: number
  /** Such as `+02:00`. */
  readonly text: string
  /** The share of the records that tell when they were received, 0 to 1. */
  readonly share: number
  /** A zone with such an offset, for people to see what one looks like. */
  readonly example: string
}

/**
 * @param counts how often each note `zone_shift:SECONDS` came.
 * @returns null unless one shift other than zero is that of most records. Two that are an hour apart count as one, since
 *   most zones change their clocks; the more frequent one is named.
 */
export function findZoneShift(counts: Readonly<Record<string, number>>): ZoneShift | null {
  const shifts = new Map(
    Object.entries(counts).map(([note, count]) => [Number(note.slice(note.indexOf(':') + 1)), count]),
  )
  const all = [...shifts.values()].reduce((sum, count) => sum + count, 0)
  const countOf = (seconds: number) => (seconds === 0 ? 0 : (shifts.get(seconds) ?? 0))
  for (const [seconds, count] of [...shifts].toSorted(([, a], [, b]) => b - a)) {
    const withOtherClock = count + Math.max(countOf(seconds - 3_600), countOf(seconds + 3_600))
    if (seconds === 0 || withOtherClock * 2 <= all) continue
    return { seconds, text: offsetText(seconds), share: withOtherClock / all, example: exampleZone(seconds) }
  }
  return null
}

function offsetText(seconds: number): string {
  const minutes = Math.abs(seconds) / 60
  const two = (value: number) => String(value).padStart(2, '0')
  return `${seconds < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`
}

const examples: Readonly<Record<number, string>> = {
  [-10]: 'Pacific/Honolulu',
  [-8]: 'America/Los_Angeles',
  [-7]: 'America/Los_Angeles',
  [-6]: 'America/Chicago',
  [-5]: 'America/New_York',
  [-4]: 'America/New_York',
  [-3]: 'America/Sao_Paulo',
  1: 'Europe/Berlin',
  2: 'Europe/Berlin',
  3: 'Europe/Istanbul',
  5.5: 'Asia/Kolkata',
  8: 'Asia/Singapore',
  9: 'Asia/Tokyo',
  10: 'Australia/Sydney',
  11: 'Australia/Sydney',
}

function exampleZone(seconds: number): string {
  return examples[seconds / 3_600] ?? 'Europe/Berlin'
}

/** @throws JobStopped */
export function stopForZone({
  zoneShift,
  zoneUnproved = 0,
}: {
  readonly zoneShift: ZoneShift | null
  readonly zoneUnproved?: number
}): void {
  if (zoneShift !== null)
    throw new JobStopped(
      `the times of ${Math.floor(zoneShift.share * 100)} % of the records are ${zoneShift.text} away from when they were received, so they are no UTC but wall-clock times. ` +
        `Run again with --source-timezone and the zone that the project was set to when they were recorded, such as ` +
        `${zoneShift.example}; the records are staged anew. Nothing was sent`,
      zoneWayOut(
        `the times are ${zoneShift.text} away from UTC: ZONE is that of the project when they were recorded, such as ${zoneShift.example}`,
      ),
    )
  if (zoneUnproved > 0)
    throw new JobStopped(
      `${counted(zoneUnproved, 'record is', 'records are')} from before 2023, when products kept wall-clock times of the project's zone, and no record says when it was received, so nothing shows the zone. ` +
        'Run again with --source-timezone and the zone that the project was set to, or UTC where the times are that: compare an event that you know. The records are staged anew. Nothing was sent',
      zoneWayOut('nothing shows the zone of the times: ZONE is that of the project, or UTC where the times are that'),
    )
}

function zoneWayOut(why: string): WayOut {
  return { command: 'pennon import run FOLDER --source-timezone ZONE', why }
}
