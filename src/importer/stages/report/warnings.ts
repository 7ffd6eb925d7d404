// Finds what is suspicious in a rehearsal, to warn before anything is sent. Source: docs/wire/import.md §1.1 to §1.9, §2.7.

import { formatCount, truncateList } from '#core/format-count.ts'
import type { Manifest } from '#importer/job/manifest.ts'
import { formatRenameOption } from '#importer/records/define-source.ts'
import type { ImportedEvent } from '#importer/records/imported-event.ts'
import { formatTime } from '#importer/records/source-time.ts'
import type { UnseenName } from '#importer/records/unseen-names.ts'
import { FrequentTexts } from './distinct-count.ts'
import { compareTexts } from './event-counts.ts'
import { formatNumber, formatPercent } from './format-figures.ts'
import type { DayCount, EventCount, Rehearsal, Warning } from './import-report.ts'

const frequentIdShare = 0.05
/** With fewer events than this, no id is reported as frequent: in a small export, nearly every id is. */
const frequentIdEventsMin = 1_000
const frequentTimeShare = 0.01
const frequentTimesMin = 100

/** How many group types are remembered: more than any project can have. */
const groupTypesKeptMax = 1_000

/** Event names that the service treats specially. */
const knownNames = [
  ...['$pageview', '$pageleave', '$screen', '$identify', '$groupidentify', '$create_alias'],
  ...['$autocapture', '$rageclick', '$set', '$feature_flag_called'],
]
const knownBySkeleton = new Map(knownNames.map(name => [extractLetters(name), name]))

/** Properties that the service reads only with a dollar sign. */
const dollarProperties = ['groups', 'current_url', 'session_id', 'set', 'set_once', 'referrer', 'pathname', 'host']

type IdKind = 'email' | 'number' | 'other'

/** Looks at each event, in the order of their times. */
export class WarningCollector {
  readonly #ids = new FrequentTexts(1_000)
  readonly #withoutDollar = new Map<string, number>()
  readonly #groupTypes = new Set<string>()
  readonly #idKinds = new Map<string, Record<IdKind, number>>()
  /** The current run of consecutive events with the same time. */
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
    if (this.#groupTypes.size < groupTypesKeptMax) this.#groupTypes.add(type)
  }

  groupTypes(): readonly string[] {
    return [...this.#groupTypes].toSorted(compareTexts)
  }

  warnings(groupTypesMax: number): readonly Warning[] {
    this.#endRun()
    const types = this.groupTypes()
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
      ...warnIf(
        types.length > groupTypesMax,
        'many_group_types',
        `There are ${types.length} group types, but a project can have only ${groupTypesMax}: ${types.join(', ')}.`,
      ),
    ]
  }

  #frequentIds(): readonly Warning[] {
    const ids = this.#total < frequentIdEventsMin ? [] : this.#ids.above(frequentIdShare)
    const shown = ids.map(({ text, share }) => `${formatPercent(share)} have the id ${JSON.stringify(text)}`)
    return warnIf(
      ids.length > 0,
      'frequent_distinct_id',
      `Of all events, ${truncateList(shown, 5).join(', ')}: often ids that do not stand for a person.`,
    )
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
    // Keep 100 runs: no more times can each have 1 % of all events. The share of an earlier time may have dropped since.
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
    const findFileWithMostly = (kind: IdKind) =>
      this.#idKinds.entries().find(([, kinds]) => kinds[kind] * 2 > kinds.email + kinds.number + kinds.other)?.[0]
    const [email, number] = [findFileWithMostly('email'), findFileWithMostly('number')]
    return warnIf(
      email !== undefined && number !== undefined,
      'mixed_ids',
      `Ids are e-mail addresses in ${email} and numbers in ${number}, so each user in both would become two persons.`,
    )
  }
}

function warnIf(isGiven: boolean, code: string, text: string): readonly Warning[] {
  return isGiven ? [{ code, text }] : []
}

/** What a rehearsal has counted. */
export interface RehearsalTotals
  extends Pick<Rehearsal, 'events' | 'eventsOfOtherNames' | 'days' | 'rejects' | 'skips'> {
  readonly manifest: Pick<Manifest, 'raw' | 'objects'>
  /** How many events have a source id that another event has too. */
  readonly reused: number
  readonly identity: Pick<Rehearsal['identity'], 'sharedDevices' | 'devices'>
}

/** Warnings that result from the final counts. */
export function createCountWarnings(counted: RehearsalTotals): readonly Warning[] {
  const { manifest, events, eventsOfOtherNames: others = 0, days, rejects, skips, reused, identity } = counted
  return [
    ...warnOfFilesWithoutRecords(manifest),
    ...events.flatMap(warnOfSimilarName),
    ...warnOfDayGaps(days),
    ...rejects.flatMap(({ reason, count }) =>
      warnIf(
        reason === 'timestamp_out_of_range',
        'seconds_as_ms',
        `${formatCount(count, 'record is', 'records are')} from before 1971: the unit is probably wrong, so that seconds are read as milliseconds.`,
      ),
    ),
    ...skips.flatMap(({ reason, count, examples: [first] }) =>
      warnIf(
        reason === 'differs_in_source',
        'differs_in_source',
        `${formatCount(count, 'record has', 'records have')} the id, event, time and person of an earlier record, but other fields; only the earlier one is sent. One of them: line ${first?.line} of ${first?.object}.`,
      ),
    ),
    ...warnIf(
      others > 0,
      'many_event_names',
      `${formatCount(others, 'event has another name', 'events have other names')} than the first ${formatNumber(events.length)}; those are counted together here: often names made of ids, or sent from outside of the project.`,
    ),
    ...warnIf(
      reused > 0,
      'source_id_reused',
      `${formatCount(reused, 'event has', 'events have')} a source id that another event has too; both are sent, but of events with the same day, name and person as well, the project keeps only the last one.`,
    ),
    ...warnIf(identity.sharedDevices > 0, 'shared_devices', describeSharedDevices(identity)),
  ]
}

/** A single warning for all files that have bytes but no records, often because they have another format than their names suggest. */
function warnOfFilesWithoutRecords({ raw, objects }: RehearsalTotals['manifest']): readonly Warning[] {
  // A file in an archive stands for the archive too. Blank lines count as records.
  const given = new Set(objects.flatMap(({ object }) => [object, ...listEnclosingFiles(object)]))
  const names = raw.filter(({ object, bytes }) => bytes > 0 && !given.has(object)).map(({ object }) => object)
  const text = `${truncateList(names, 5).join(', ')} ${names.length === 1 ? 'holds' : 'hold'} no records.`
  return warnIf(names.length > 0, 'no_record_in_file', text)
}

function listEnclosingFiles(object: string): readonly string[] {
  return object.split('!').map((_, index, parts) => parts.slice(0, index + 1).join('!'))
}

function warnOfSimilarName({ event, count }: EventCount): readonly Warning[] {
  const known = knownBySkeleton.get(extractLetters(event))
  if (known === undefined || known === event) return []
  const advice = formatRenameOption(event, known)
  const remedy = advice === null ? '' : ` To send them under that name, plan again with ${advice}.`
  const text = `${formatCount(count, 'event is', 'events are')} called ${JSON.stringify(event)}; the service knows ${known}.${remedy}`
  return [{ code: 'similar_event_name', text }]
}

function warnOfDayGaps(days: readonly DayCount[]): readonly Warning[] {
  const gaps = days.slice(1).flatMap(({ day }, index) => {
    const before = days[index]!.day
    const missing = (Date.parse(day) - Date.parse(before)) / 86_400_000 - 1
    return missing > 0 ? [`${missing} after ${before}`] : []
  })
  return warnIf(
    gaps.length > 0,
    'day_gap',
    `Days without events within the range: ${truncateList(gaps, 10).join(', ')}.`,
  )
}

export function describeSharedDevices({
  sharedDevices,
  devices: { all, shared },
}: RehearsalTotals['identity']): string {
  if (sharedDevices === 0) return 'No device was used by more than one user.'
  const of = `${formatNumber(shared)} of ${formatCount(all, 'device')} (${formatPercent(shared / all)})`
  return `${of} ${shared === 1 ? 'was' : 'were'} used by more than one user, with ${formatCount(sharedDevices, 'change')} to a user other than the first; a device is linked only to its first user.`
}

/** Notes of converters that users should know about; `{}` stands for the note's detail. */
const noteTexts: Readonly<Record<string, readonly [unit: 'record' | 'group' | 'action', text: string]>> = {
  amplitude_id_used: ['record', 'neither a user nor a device id, so the amplitude_id is used'],
  zone_shift_differs: ['record', 'received at an hour that does not fit the zone of the source'],
  groups_without_dollar: [
    'record',
    'the property groups but no $groups, so filters by group do not find them; rename it with --promote-groups',
  ],
  type_mismatch: ['record', 'a value in {} without the type given in the mapping; it is kept unchanged'],
  csv_quotes: [
    'record',
    'a row of CSV that can be read in two ways: quotes in its cells were read as {} (by a backslash, or by a second quote), which fits more rows at the beginning of the file. Compare one with the file',
  ],
  spread_no_object: [
    'record',
    'a value other than an object in {}, so spread cannot turn its members into properties; it is kept unchanged',
  ],
  person_data_left_out: [
    'record',
    'changes of person properties ($set, $set_once, $unset) are lost; "Not carried over" lists each property. To keep them, plan with --keep-person-data',
  ],
  group_key_illegal: [
    'record',
    'a value in {} cannot be the key of a group, since it is neither text nor a number; the event belongs to no group of this type',
  ],
  invalid_uuid: ['record', 'an id that is not a UUID; the event gets a UUID derived from it'],
  group_values_dropped: ['group', 'left out of an event, which can have only one group of each type'],
  group_key_too_long: ['group', 'left out, since the key is too long'],
  matomo_goal_left_out: ['action', 'a goal, which gives no separate event: the action that reached a goal says so too'],
  matomo_type_unknown: ['action', 'of the unknown type {}'],
}

/**
 * @param notes how often each note occurred, by `name` or `name:detail`. A record has a note at most once for itself, and
 * once for each group or action concerned.
 * @param records how many records produce events.
 */
export function createNoteWarnings(notes: ReadonlyMap<string, number>, records: number): readonly Warning[] {
  return [...notes]
    .toSorted(([a], [b]) => compareTexts(a, b))
    .flatMap(([note, count]) => {
      const [, code = '', detail = ''] = /^([^:]*):?(.*)$/s.exec(note) ?? []
      if (!Object.hasOwn(noteTexts, code)) return []
      const [unit, text] = noteTexts[code]!
      const share = unit === 'record' ? ` (${formatPercent(count / records)})` : ''
      return [{ code, text: `${formatCount(count, unit)}${share}: ${text.replace('{}', () => detail)}.` }]
    })
}

/** Warns of names in a mapping or configuration that occur in no record, up to a limit: the mapping may be for other files. */
export function warnOfUnseenNames(names: readonly UnseenName[]): readonly Warning[] {
  const more = names.length - unseenMax
  return [
    ...names.slice(0, unseenMax).map(name => ({ code: unseenCodes[name.kind], text: describeUnseenName(name) })),
    ...warnIf(more > 0, unseenCodes.field, `No record has ${formatCount(more, 'more name')} of the mapping.`),
  ]
}

const unseenMax = 50
const unseenCodes = { field: 'field_of_no_record', event: 'event_of_no_record' } as const

function describeUnseenName({ kind, name, key, near, isOwn }: UnseenName): string {
  const meant = near === null ? '' : ` Did you mean ${JSON.stringify(near)}?`
  return kind === 'event'
    ? `${key} names the event ${JSON.stringify(name)}, which no record has.${meant}`
    : `The mapping names the field ${JSON.stringify(name)} under ${key}, but no record has it${isOwn ? ' as a separate field' : ''}.${meant}`
}

/** Keeps only letters, so that `Page View` and `$pageview` are equal. */
function extractLetters(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z]/g, '')
}

function isDigits(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) < 48 || text.charCodeAt(at) > 57) return false
  return text.length > 0
}
