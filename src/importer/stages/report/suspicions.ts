// Finds suspicious patterns in the events of a rehearsal, to warn before they are sent. Source: docs/wire/import.md §2.7.

import { formatCount } from '#core/format-count.ts'
import { formatRenameOption } from '#importer/records/event-names.ts'
import type { ImportedEvent } from '#importer/records/imported-event.ts'
import { formatTime } from '#importer/records/source-time.ts'
import { compareTexts } from './event-counts.ts'
import { FrequentTexts } from './frequent-texts.ts'
import type { DayCount, EventCount, ReasonCount, Warning } from './rehearsal-report.ts'

const frequentIdShare = 0.05
const frequentIdsShown = 5
/** In a small export, nearly every id is frequent. */
const frequentIdEventsMin = 1_000
const frequentTimeShare = 0.01
const frequentTimesMin = 100

/** More than any project can have. */
const groupTypesKept = 1_000

/** Event names that the service treats specially. */
const knownNames = [
  '$pageview',
  '$pageleave',
  '$screen',
  '$identify',
  '$groupidentify',
  '$create_alias',
  '$autocapture',
  '$rageclick',
  '$set',
  '$feature_flag_called',
]
const knownBySkeleton = new Map(knownNames.map(name => [keepLetters(name), name]))

/** Properties that the service reads only with a dollar sign. */
const dollarProperties = ['groups', 'current_url', 'session_id', 'set', 'set_once', 'referrer', 'pathname', 'host']

type IdKind = 'email' | 'number' | 'other'

export class Suspicions {
  readonly #ids = new FrequentTexts(1_000)
  readonly #withoutDollar = new Map<string, number>()
  readonly #groupTypes = new Set<string>()
  readonly #idKinds = new Map<string, Record<IdKind, number>>()
  /** Events arrive in time order, so equal times are consecutive. */
  #run = { timeUs: Number.NaN, count: 0 }
  #longestRuns: { timeUs: number; count: number }[] = []
  #total = 0

  add(object: string, { distinctId, isIdFilledIn, timeUs, isTimeFilledIn, properties }: ImportedEvent): void {
    this.#total++
    if (isIdFilledIn !== true) {
      this.#ids.add(distinctId)
      this.#countKind(object, distinctId)
    }
    if (isTimeFilledIn !== true) this.#countTime(timeUs)
    for (const name of dollarProperties)
      if (Object.hasOwn(properties, name) && !Object.hasOwn(properties, `$${name}`))
        this.#withoutDollar.set(name, (this.#withoutDollar.get(name) ?? 0) + 1)
    const { $groups, $group_type } = properties
    if (typeof $groups === 'object' && $groups !== null)
      for (const type of Object.keys($groups)) this.#addGroupType(type)
    if (typeof $group_type === 'string') this.#addGroupType($group_type)
  }

  #addGroupType(type: string): void {
    if (this.#groupTypes.size < groupTypesKept) this.#groupTypes.add(type)
  }

  groupTypes(): readonly string[] {
    return [...this.#groupTypes].toSorted(compareTexts)
  }

  warnings(groupTypesMax: number): readonly Warning[] {
    this.#endRun()
    return [
      ...[...this.#withoutDollar].map(([name, count]) => ({
        code: 'property_without_dollar',
        text: `${formatCount(count, 'event has', 'events have')} the property ${name}; the service reads only $${name}.`,
      })),
      ...this.#frequentIds(),
      ...this.#longestRuns
        .filter(({ count }) => count > frequentTimeShare * this.#total)
        .toSorted((a, b) => b.count - a.count)
        .map(({ timeUs, count }) => ({
          code: 'frequent_timestamp',
          text: `${formatPercent(count / this.#total)} of all events happened at ${formatTime(timeUs)}: often a default value for a missing time.`,
        })),
      ...this.#mixedIds(),
      ...(this.#groupTypes.size > groupTypesMax
        ? [
            {
              code: 'many_group_types',
              text: `There are ${this.#groupTypes.size} group types, but a project can have only ${groupTypesMax}: ${this.groupTypes().join(', ')}.`,
            },
          ]
        : []),
    ]
  }

  /** A single warning for all frequent ids. */
  #frequentIds(): readonly Warning[] {
    if (this.#total < frequentIdEventsMin) return []
    const ids = this.#ids.above(frequentIdShare).toSorted((a, b) => b.share - a.share)
    if (ids.length === 0) return []
    const shown = ids
      .slice(0, frequentIdsShown)
      .map(({ text, share }) => `${formatPercent(share)} have the id ${JSON.stringify(text)}`)
    const more =
      ids.length > shown.length
        ? `, and ${ids.length - shown.length} more ids have more than ${formatPercent(frequentIdShare)}`
        : ''
    const text = `Of all events, ${shown.join(', ')}${more}: often ids that do not stand for a person.`
    return [{ code: 'frequent_distinct_id', text }]
  }

  #countTime(timeUs: number): void {
    if (timeUs === this.#run.timeUs) this.#run.count++
    else {
      this.#endRun()
      this.#run = { timeUs, count: 1 }
    }
  }

  #endRun(): void {
    const { count } = this.#run
    if (count < frequentTimesMin || count < frequentTimeShare * this.#total) return
    // At most a hundred distinct times can each have a hundredth of all events. The share of an earlier time may have
    // dropped since.
    this.#longestRuns = [...this.#longestRuns, this.#run].toSorted((a, b) => b.count - a.count).slice(0, 100)
    this.#run = { timeUs: Number.NaN, count: 0 }
  }

  #countKind(object: string, id: string): void {
    let kinds = this.#idKinds.get(object)
    if (kinds === undefined) {
      if (this.#idKinds.size >= 10_000) return
      kinds = { email: 0, number: 0, other: 0 }
      this.#idKinds.set(object, kinds)
    }
    kinds[id.includes('@') ? 'email' : isDigits(id) ? 'number' : 'other']++
  }

  #mixedIds(): readonly Warning[] {
    const findFilesMostly = (kind: IdKind) =>
      [...this.#idKinds].filter(([, kinds]) => kinds[kind] * 2 > kinds.email + kinds.number + kinds.other)
    const [[email] = [], [number] = []] = [findFilesMostly('email')[0], findFilesMostly('number')[0]]
    if (email === undefined || number === undefined) return []
    const text = `Ids are e-mail addresses in ${email} and numbers in ${number}, so each user in both would become two persons.`
    return [{ code: 'mixed_ids', text }]
  }
}

/** Warnings that result from the final counts. */
export function createCountWarnings(
  events: readonly EventCount[],
  days: readonly DayCount[],
  rejects: readonly ReasonCount[],
  skips: readonly ReasonCount[],
): readonly Warning[] {
  return [
    ...warnOfSimilarNames(events),
    ...warnOfDayGaps(days),
    ...warnOfWrongUnits(rejects),
    ...warnOfDifferingSkips(skips),
  ]
}

/** @param others how many events have names that are not counted separately. */
export function warnOfManyNames(names: number, others: number): readonly Warning[] {
  if (others === 0) return []
  const text = `${formatCount(others, 'event has another name', 'events have other names')} than the first ${names.toLocaleString('en')}; those are counted together here: often names made of ids, or sent from outside of the project.`
  return [{ code: 'many_event_names', text }]
}

function warnOfSimilarNames(events: readonly EventCount[]): readonly Warning[] {
  return events.flatMap(({ event, count }) => {
    const known = knownBySkeleton.get(keepLetters(event))
    if (known === undefined || known === event) return []
    const advice = formatRenameOption(event, known)
    const remedy = advice === null ? '' : ` To send them under that name, plan again with ${advice}.`
    const text = `${formatCount(count, 'event is', 'events are')} called ${JSON.stringify(event)}; the service knows ${known}.${remedy}`
    return [{ code: 'similar_event_name', text }]
  })
}

function warnOfDayGaps(days: readonly DayCount[]): readonly Warning[] {
  const gaps: string[] = []
  for (const [index, { day }] of days.entries()) {
    const before = days[index - 1]
    if (before === undefined) continue
    const missing = (Date.parse(day) - Date.parse(before.day)) / 86_400_000 - 1
    if (missing > 0) gaps.push(`${missing} after ${before.day}`)
  }
  if (gaps.length === 0) return []
  const shown = gaps.slice(0, 10).join(', ') + (gaps.length > 10 ? `, and ${gaps.length - 10} more gaps` : '')
  return [{ code: 'day_gap', text: `Days without events within the range: ${shown}.` }]
}

function warnOfWrongUnits(rejects: readonly ReasonCount[]): readonly Warning[] {
  const old = rejects.find(({ reason }) => reason === 'timestamp_out_of_range')
  if (old === undefined) return []
  const text = `${formatCount(old.count, 'record is', 'records are')} from before 1971: the unit is probably wrong, so that seconds are read as milliseconds.`
  return [{ code: 'seconds_as_ms', text }]
}

function warnOfDifferingSkips(skips: readonly ReasonCount[]): readonly Warning[] {
  const differs = skips.find(({ reason }) => reason === 'differs_in_source')
  if (differs === undefined) return []
  const { object, line } = differs.examples[0]!
  const text = `${formatCount(differs.count, 'record has', 'records have')} the id, event, time and person of an earlier record, but ${differs.count === 1 ? 'differs' : 'differ'} in other fields; only the earlier one is sent. One of them: line ${line} of ${object}.`
  return [{ code: 'differs_in_source', text }]
}

/** Keeps only letters, so that `Page View` and `$pageview` are equal. */
function keepLetters(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z]/g, '')
}

function isDigits(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) < 48 || text.charCodeAt(at) > 57) return false
  return text.length > 0
}

/** Adds digits as needed, so that only 0 is shown as "0.0 %" and only 1 as "100 %". */
export function formatPercent(share: number): string {
  const roundShare = (digits: number) => (share * 100).toFixed(digits)
  let digits = share < 0.1 ? 1 : 0
  while (share > 0 && share < 1 && [0, 100].includes(Number(roundShare(digits)))) digits++
  return `${roundShare(digits)} %`
}
