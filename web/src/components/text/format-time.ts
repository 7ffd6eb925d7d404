// How instants are shown: relative within a day, exact otherwise; in the browser's zone, UTC or the project's.

import { locale as defaultLocale } from './locale.ts'

export const timeZoneChoices = ['browser', 'utc', 'project'] as const
export type TimeZoneChoice = (typeof timeZoneChoices)[number]

export interface TimeZones {
  readonly choice: TimeZoneChoice
  /** IANA names; the browser's zone if absent. */
  readonly browser?: string
  readonly project?: string
}

export interface ShownTime {
  /** `4 min ago` or `30 Nov 2026, 10:04:12`. */
  readonly text: string
  /** The exact time in every zone, one a line. */
  readonly title: string
}

/** `exact` for lists in which times are compared, `zoned` for a time that people pass on. */
export type TimeForm = 'relative' | 'exact' | 'zoned'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

export function formatTime(
  instantMs: number,
  nowMs: number,
  zones: TimeZones,
  form: TimeForm = 'relative',
  locale: string = defaultLocale,
): ShownTime {
  // An event may carry any number. Dates end at 8.64e15 ms.
  if (!Number.isFinite(instantMs) || Math.abs(instantMs) > 8.64e15)
    return { text: 'no valid time', title: String(instantMs) }
  const distanceMs = instantMs - nowMs
  const isNear = form === 'relative' && Math.abs(distanceMs) < dayMs
  const zone = findZone(zones)
  const exact = formatInstant(instantMs, zone, locale)
  const exactText = form === 'zoned' ? `${exact} ${zone ?? findOwnZone()}` : exact
  return {
    text: isNear ? formatDistance(distanceMs) : exactText,
    title: listZones(zones)
      .map(({ name, zone }) => `${formatInstant(instantMs, zone, locale)} ${name}`)
      .join('\n'),
  }
}

/** `30 Nov 2026, 10:04:12`. The zone has to be clear from what is around it. */
export function formatInstant(instantMs: number, zone: string | undefined, locale: string = defaultLocale): string {
  const year = new Date(instantMs).getUTCFullYear()
  return dateTimeFormat(locale, zone, year < 1).format(instantMs)
}

/** The zone in which times are shown; undefined is the browser's. */
export function findZone({ choice, browser, project }: TimeZones): string | undefined {
  if (choice === 'utc') return 'UTC'
  return choice === 'project' ? (project ?? browser) : browser
}

function formatDistance(distanceMs: number): string {
  const size = Math.abs(distanceMs)
  // Clocks differ by a second or two, and "in 1 s" for what has happened reads as a mistake.
  if (size < 5_000) return 'now'
  const amount =
    size < minuteMs
      ? `${Math.floor(size / 1_000)} s`
      : size < hourMs
        ? `${Math.floor(size / minuteMs)} min`
        : `${Math.floor(size / hourMs)} h`
  return distanceMs < 0 ? `${amount} ago` : `in ${amount}`
}

function listZones({ browser, project }: TimeZones): { name: string; zone: string }[] {
  const own = browser ?? findOwnZone()
  const zones = [{ name: own, zone: own }]
  if (project !== undefined && project !== own) zones.push({ name: `${project} (project)`, zone: project })
  if (!zones.some(({ zone }) => zone === 'UTC')) zones.push({ name: 'UTC', zone: 'UTC' })
  return zones
}

function findOwnZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone
}

/** Making a format takes far longer than using it. */
const formats = new Map<string, Intl.DateTimeFormat>()

function dateTimeFormat(locale: string, zone: string | undefined, hasEra: boolean): Intl.DateTimeFormat {
  const key = `${locale} ${zone} ${hasEra}`
  let format = formats.get(key)
  if (format === undefined) {
    format = new Intl.DateTimeFormat(locale, {
      day: 'numeric',
      month: 'short',
      year: 'numeric',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      hourCycle: 'h23',
      timeZone: zone,
      ...(hasEra ? { era: 'short' } : {}),
    })
    formats.set(key, format)
  }
  return format
}
