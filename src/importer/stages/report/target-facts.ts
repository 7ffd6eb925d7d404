// The target's facts for the report of a rehearsal: the events that it already has for the same days, and the names that are
// new to it. Source: docs/wire/import.md §2.7 ("Ask the target", "Warn").

import { groupEventNames, mergeEventNames } from '#core/events/event-names.ts'
import { formatCount } from '#core/format-count.ts'

/** The names and days of a rehearsal to ask the target about. */
export interface AskedOfTarget {
  /** Event names, most frequent first. */
  readonly names: readonly string[]
  /** UTC days with events, ascending. */
  readonly days: readonly string[]
}

export interface TargetFacts {
  /** ISO 8601. */
  readonly askedAt: string
  readonly timezone: string | null
  /**
   * The target drops older live events, and refuses an import of them unless its plan accepts old events.
   * Source: docs/wire/private-api.md (Import jobs).
   */
  readonly dropsLiveOlderThanSeconds: number | null
  /** Whether the project has any event at all. */
  readonly hasEvents: boolean
  /** Days of the import for which the project already has events. */
  readonly overlap: readonly OverlapDay[]
  /** Unpublished import jobs that claim to cover days of this one. */
  readonly pendingJobs: readonly { readonly id: string; readonly name: string; readonly state: string }[]
  /** Names in the import of which the project has no events. */
  readonly newNames: readonly string[]
}

interface Warned {
  readonly code: string
  readonly text: string
}

export interface OverlapDay {
  /** UTC. */
  readonly day: string
  readonly live: number
  readonly imported: number
  /** Ids of the published import jobs, at most ten. */
  readonly jobs: readonly string[]
}

/** The facts, or a sentence on why the target was not asked and what to do about it. */
export type TargetAnswer = TargetFacts | { readonly notAsked: string }

/** The remedy for days that the project already has, as an imperative. */
export const otherDaysOnly =
  'plan another folder with an export of other days only (--from and --to of pennon import fetch, or only the files of those days; --hold-live-window of pennon import plan leaves out the last 48 hours)'

const shownMax = 10
const dayMs = 86_400_000

/** The facts of an import that decide what a target's answer means for it. */
export interface AnsweredImport {
  /** Events per UTC day. */
  readonly days: readonly { readonly day: string; readonly count: number }[]
  /** Whether the plan accepts events so old that the project would drop them if they were live. */
  readonly acceptsOld: boolean
}

export function createTargetWarnings(answer: TargetAnswer, imported: AnsweredImport): readonly Warned[] {
  if ('notAsked' in answer) return []
  const refusal = explainAgeRefusal(answer, imported)
  return [
    ...(refusal === null ? [] : [{ code: 'drops_old_events', text: refusal }]),
    ...warnOfOverlap(answer),
    ...warnOfJobsAndNames(answer),
  ]
}

/** @returns why the service would refuse the import because of its age; null if it would not, or was not asked. */
export function explainAgeRefusal(answer: TargetAnswer, { days: imported, acceptsOld }: AnsweredImport): string | null {
  if ('notAsked' in answer || acceptsOld) return null
  const seconds = answer.dropsLiveOlderThanSeconds ?? 0
  if (seconds <= 0) return null
  const beforeMs = Date.parse(answer.askedAt) - seconds * 1_000
  // Counts are per day, so leave out the day of the limit: its events may be older or newer.
  const older = imported.filter(({ day }) => Date.parse(day) + dayMs <= beforeMs)
  const count = older.reduce((total, each) => total + each.count, 0)
  const which = count === 0 ? '' : ` At least ${formatCount(count, 'event is', 'events are')} older.`
  return `The project drops events that are older than ${formatAge(seconds)} (drop_events_older_than_seconds), and the plan does not accept them, so the service will refuse the import.${which}`
}

/** @param seconds above 0. */
function formatAge(seconds: number): string {
  return seconds >= 86_400
    ? formatCount(Math.round(seconds / 8_640) / 10, 'day')
    : formatCount(Math.round(seconds / 360) / 10, 'hour')
}

function warnOfOverlap({ overlap }: TargetFacts): readonly Warned[] {
  const live = overlap.filter(day => day.live > 0)
  const imported = overlap.filter(day => day.imported > 0)
  const jobs = [...new Set(imported.flatMap(day => day.jobs))]
  return [
    ...(live.length === 0
      ? []
      : [
          {
            code: 'overlap_live',
            text:
              `The project has live events of ${describeOverlapDays(live)} already, ${sumEvents(live, 'live')} in all. ` +
              'If these are the same events with other ids, they would be stored twice: ' +
              `${otherDaysOnly}. The import is sent only with --overlap-ok.`,
          },
        ]),
    ...(imported.length === 0
      ? []
      : [
          {
            code: 'overlap_import',
            text:
              `The project has imported events of ${describeOverlapDays(imported)} already, ${sumEvents(imported, 'imported')} in all (${jobs.length === 1 ? 'import job' : 'import jobs'} ${jobs.join(', ')}). ` +
              'Identical events count once.',
          },
        ]),
  ]
}

/** These events link or describe persons and groups. Their names are fixed, and imports generate them from unnamed rows. */
const ownNames: ReadonlySet<string> = new Set([...mergeEventNames, ...groupEventNames, '$set'])

function listUnfamiliarNames({ newNames }: TargetFacts): readonly string[] {
  return newNames.filter(name => !ownNames.has(name))
}

function warnOfJobsAndNames(facts: TargetFacts): readonly Warned[] {
  const { pendingJobs, hasEvents } = facts
  const names = listUnfamiliarNames(facts)
  return [
    ...(pendingJobs.length === 0
      ? []
      : [
          {
            code: 'overlap_pending',
            text: `Other import jobs that are not yet published cover some of the days: ${pendingJobs.map(({ id, name, state }) => `${id} (${name}, ${state})`).join(', ')}.`,
          },
        ]),
    ...(names.length === 0 || !hasEvents
      ? []
      : [
          {
            code: 'new_event_names',
            text: `The project has no events yet with the ${names.length === 1 ? 'name' : 'names'} ${joinNames(names.map(name => JSON.stringify(name)))}: they are new, or have other names there.`,
          },
        ]),
  ]
}

/** Sentences for the report. */
export function describeTarget(answer: TargetAnswer, imported: AnsweredImport): readonly string[] {
  if ('notAsked' in answer) return [`The target was not queried for events that it already has: ${answer.notAsked}`]
  const { askedAt, timezone, dropsLiveOlderThanSeconds, hasEvents } = answer
  const seconds = dropsLiveOlderThanSeconds ?? 0
  const drops =
    seconds <= 0
      ? 'It keeps events of any age.'
      : (explainAgeRefusal(answer, imported) ??
        `It drops live events that are older than ${formatAge(seconds)}${imported.acceptsOld ? ', but accepts those of this import (--accept-old)' : ''}.`)
  return [
    `Queried at ${askedAt}. The project's time zone is ${timezone ?? 'unknown'}; days in this report are in UTC. ${drops}`,
    ...(hasEvents ? [] : ['The project has no events yet.']),
    ...(imported.days.length > 0 ? describeFacts(answer) : []),
  ]
}

function describeFacts(facts: TargetFacts): readonly string[] {
  const { overlap } = facts
  return [
    overlap.length === 0
      ? 'It has no events on the days of this import.'
      : `It already has events on ${overlap.length.toLocaleString('en')} of the days of this import.`,
    ...(listUnfamiliarNames(facts).length === 0 ? ['It has all event names of this import.'] : []),
  ]
}

/** @param days of the rehearsal. @returns rows of day, events to send, live events, imported events, jobs. */
export function createOverlapRows(
  { overlap }: TargetFacts,
  days: readonly { readonly day: string; readonly count: number }[],
): readonly (readonly string[])[] {
  const toSend = new Map(days.map(({ day, count }) => [day, count]))
  const formatNumber = (value: number) => value.toLocaleString('en')
  return overlap.map(({ day, live, imported, jobs }) => [
    day,
    formatNumber(toSend.get(day) ?? 0),
    formatNumber(live),
    formatNumber(imported),
    jobs.join(', '),
  ])
}

function describeOverlapDays(overlap: readonly OverlapDay[]): string {
  return `${overlap.length.toLocaleString('en')} ${overlap.length === 1 ? 'day' : 'days'} of this import (${joinNames(joinAdjacentDays(overlap.map(({ day }) => day)))})`
}

/** Joins adjacent days into ranges. @param days ascending. */
function joinAdjacentDays(days: readonly string[]): readonly string[] {
  const found: { first: string; last: string }[] = []
  for (const day of days) {
    const span = found.at(-1)
    if (span !== undefined && Date.parse(day) - Date.parse(span.last) === dayMs) span.last = day
    else found.push({ first: day, last: day })
  }
  return found.map(({ first, last }) => (first === last ? first : `${first} to ${last}`))
}

function joinNames(names: readonly string[]): string {
  const shown = names.slice(0, shownMax).join(', ')
  return names.length <= shownMax ? shown : `${shown}, and ${(names.length - shownMax).toLocaleString('en')} more`
}

function sumEvents(overlap: readonly OverlapDay[], key: 'live' | 'imported'): string {
  return overlap.reduce((total, day) => total + day[key], 0).toLocaleString('en')
}
