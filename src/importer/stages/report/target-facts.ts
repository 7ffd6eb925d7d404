// What the target's facts mean for an import: the events that it already has for the same days, and the names that are new to
// it. Source: docs/wire/import.md §2.7 ("Ask the target", "Warn").

import { groupEventNames, mergeEventNames } from '#core/events/event-names.ts'
import { formatCount, truncateList } from '#core/format-count.ts'
import { dayMs } from '#core/time.ts'
import type { OverlapDay, TargetAnswer, TargetFacts, Warning } from './import-report.ts'

/** The names and days of a rehearsal to ask the target about. */
export interface TargetFactsQuery {
  /** Event names, most frequent first. */
  readonly names: readonly string[]
  /** UTC days with events, ascending. */
  readonly days: readonly string[]
}

/** The facts of an import that decide what a target's answer means for it. */
export interface ImportFacts {
  /** Events per UTC day. */
  readonly days: readonly { readonly day: string; readonly count: number }[]
  /** Whether the plan accepts events so old that the project would drop them if they were live. */
  readonly acceptsOld: boolean
}

/** The remedy for days that the project already has, as an imperative. */
export const otherDaysOnly =
  'plan another folder with an export of other days only (--from and --to of pennon import fetch, or only the files of those days; --hold-live-window of pennon import plan leaves out the last 48 hours)'

export function createTargetWarnings(answer: TargetAnswer, imported: ImportFacts): readonly Warning[] {
  if ('notAsked' in answer) return []
  const { overlap, pendingJobs, hasEvents } = answer
  const live = describeOverlap(overlap, 'live')
  const earlier = describeOverlap(overlap, 'imported')
  const jobs = [...new Set(overlap.flatMap(day => (day.imported > 0 ? day.jobs : [])))]
  const pending = pendingJobs.map(({ id, name, state }) => `${id} (${name}, ${state})`)
  const names = truncateList(
    listUnfamiliarNames(answer).map(name => JSON.stringify(name)),
    10,
  )
  const warnings: readonly (readonly [code: string, text: string | false | null])[] = [
    ['drops_old_events', explainAgeRefusal(answer, imported)],
    [
      'overlap_live',
      live &&
        `The project already has ${live}. If these are the same events with other ids, they would be stored twice: ${otherDaysOnly}. The import is sent only with --overlap-ok.`,
    ],
    [
      'overlap_import',
      earlier &&
        `The project already has ${earlier}, from the import ${jobs.length === 1 ? 'job' : 'jobs'} ${jobs.join(', ')}. Identical events count once.`,
    ],
    [
      'overlap_pending',
      pending.length > 0 &&
        `Other import jobs that are not yet published cover some of the days: ${pending.join(', ')}.`,
    ],
    [
      'new_event_names',
      names.length > 0 &&
        hasEvents &&
        `The project has no events yet with these names: ${names.join(', ')}. They are new, or have other names there.`,
    ],
  ]
  return warnings.flatMap(([code, text]) => (text === null || text === false ? [] : [{ code, text }]))
}

/** @returns how many events of this kind the target has on the days of the import; null if it has none. */
function describeOverlap(overlap: readonly OverlapDay[], kind: 'live' | 'imported'): string | null {
  const days = overlap.filter(day => day[kind] > 0)
  if (days.length === 0) return null
  const events = days.reduce((sum, day) => sum + day[kind], 0)
  const range = [...new Set([days[0]!.day, days.at(-1)!.day])].join(' to ')
  return `${formatCount(events, `${kind} event`)} on ${formatCount(days.length, 'day')} of this import (${range})`
}

/** @returns why the service would refuse the import as too old; null if it would accept it, or was not asked. */
export function explainAgeRefusal(answer: TargetAnswer, { days: imported, acceptsOld }: ImportFacts): string | null {
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
  const [unit, size] = seconds >= 86_400 ? ['day', 86_400] : ['hour', 3_600]
  return formatCount(Math.round((seconds * 10) / size) / 10, unit)
}

/**
 * Names of events that link or describe persons and groups. They do not count as unfamiliar, since they are fixed, and
 * imports generate such events from rows without a name.
 */
const ownNames: ReadonlySet<string> = new Set([...mergeEventNames, ...groupEventNames, '$set'])

function listUnfamiliarNames({ newNames }: TargetFacts): readonly string[] {
  return newNames.filter(name => !ownNames.has(name))
}

/** Sentences for the report; what needs attention is in the report's warnings instead. */
export function describeTarget(answer: TargetAnswer, hasEvents: boolean): readonly string[] {
  if ('notAsked' in answer) return [`The target was not queried for events that it already has: ${answer.notAsked}`]
  const { askedAt, timezone, overlap } = answer
  const days =
    overlap.length === 0
      ? 'It has no events on the days of this import.'
      : `It already has events on ${overlap.length.toLocaleString('en')} of the days of this import.`
  const isAllKnown = listUnfamiliarNames(answer).length === 0
  return [
    `Queried at ${askedAt}. The project's time zone is ${timezone ?? 'unknown'}; days in this report are in UTC.`,
    ...(answer.hasEvents ? [] : ['The project has no events yet.']),
    ...(hasEvents ? [days, ...(isAllKnown ? ['It has all event names of this import.'] : [])] : []),
  ]
}
