// What a report says, as headings, sentences and tables, whatever it is written as.

import { formatCount } from '#core/format-count.ts'
import type { JsonObject } from '#core/json.ts'
import { describeZone } from './describe-zone.ts'
import { acceptOldOption, choiceText } from './plan-choices.ts'
import type { Balance, DayCount, EventCount, RehearsalReport } from './rehearsal-report.ts'
import { shareOfRejects } from './reject-share.ts'
import { formatPercent } from './suspicions.ts'
import { overlapRows, targetLines } from './target-facts.ts'

export interface Table {
  readonly caption: string
  readonly columns: readonly { readonly title: string; readonly isNumber?: true }[]
  readonly rows: readonly (readonly string[])[]
  /** Its cells are sentences, which a narrow page shows below each other. */
  readonly isProse?: true
}

export interface Section {
  readonly title: string
  readonly lines: readonly string[]
  readonly tables: readonly Table[]
}

const rowsMax = 500

export function reportSections(report: RehearsalReport): readonly Section[] {
  return [
    summary(report),
    ...choicesSection(report),
    ...damagedFilesSection(report),
    balance(report),
    warnings(report),
    ...inTarget(report),
    { title: 'Events', lines: eventLines(report), tables: withRows(eventTable(report.events)) },
    { title: 'Days', lines: gapLine(report.days), tables: withRows(dayTable(report)) },
    rejects(report),
    personsSection(report),
    notCarriedOver(report),
    methodSection(report),
  ]
}

/** What was chosen when it was planned, beyond what is usual. */
export const choicesTitle = 'Options of the plan'

/** Which job it is, for a page or a text that was handed on. */
export function aboutLines({ folder, plannedAt, rehearsedAt }: RehearsalReport): readonly string[] {
  const name = folder.slice(folder.lastIndexOf('/') + 1)
  const rehearsed = rehearsedAt === undefined ? '' : `, rehearsed ${minuteText(rehearsedAt)}`
  return [`Job ${name} in ${folder}, planned ${minuteText(plannedAt)}${rehearsed}.`]
}

/** @param time ISO 8601 in UTC. */
function minuteText(time: string): string {
  return `${time.slice(0, 16).replace('T', ' ')} UTC`
}

export function formatNumber(value: number): string {
  return value.toLocaleString('en')
}

function summary({
  predicted,
  range,
  heldByRejects,
  rejectShare,
  maxRejectShare,
  looksLike,
  target,
}: RehearsalReport): Section {
  const where = target === null ? 'No target is planned yet.' : `Target: ${targetName(target)}.`
  const lines = [
    where,
    ...(range === null ? ['No record gives an event, so there is nothing to send.'] : whatIsSent(predicted, range)),
    shareOfRejects(rejectShare, maxRejectShare, heldByRejects),
    ...(looksLike === null ? [] : [looksLikeText(looksLike)]),
  ]
  return { title: 'What would happen', lines, tables: [] }
}

function whatIsSent(
  { events, persons, groups, merges, bytes, seconds, recent }: RehearsalReport['predicted'],
  range: NonNullable<RehearsalReport['range']>,
): readonly string[] {
  return [
    `The events are from ${range.first} to ${range.last}.`,
    `${formatCount(events, 'event')} would be sent, of about ${formatCount(persons, 'person')} and ${formatCount(groups, 'group')}, with ${formatCount(merges, 'merge')} of two ids into one person: ${formatNumber(Math.ceil(bytes / 1_048_576))} MiB, about ${duration(seconds)} at 1,000 events a second.`,
    'Events that would be charged: 0. Imported events are free, whatever their age.',
    recent.events === 0
      ? 'No event is from the last 48 hours.'
      : `${formatCount(recent.events, 'event is', 'events are')} from the last 48 hours (${recent.days.join(', ')}), and sent and counted as recent.`,
  ]
}

function choicesSection({ choices }: RehearsalReport): readonly Section[] {
  const usual = 'The usual ones hold: no value that a live event wrote is replaced.'
  if (choices.length === 0) return [{ title: choicesTitle, lines: [usual], tables: [] }]
  const replacing = choices.filter(({ replacesLiveValues }) => replacesLiveValues).map(({ option }) => option)
  const marked = `ATTENTION: values that live events wrote are replaced once it is published (${replacing.join(', ')}).`
  const table: Table = {
    caption: 'Options that are not as usual',
    columns: [{ title: 'Option' }, { title: 'What it does' }],
    rows: choices.map(choice => [choice.option, choiceText(choice)]),
    isProse: true,
  }
  return [{ title: choicesTitle, lines: replacing.length === 0 ? [] : [marked], tables: [table] }]
}

export function looksLikeText(source: string): string {
  return `Rejected records look like those of another source: --source ${source}.`
}

function damagedFilesSection({ damagedFiles }: RehearsalReport): readonly Section[] {
  if (damagedFiles.length === 0) return []
  const table: Table = {
    caption: 'Files that cannot be read to their end',
    columns: [
      { title: 'File' },
      { title: 'Records read', isNumber: true },
      { title: 'Line', isNumber: true },
      { title: 'Why' },
    ],
    rows: damagedFiles.map(({ object, records, line, why }) => [
      object,
      formatNumber(records),
      formatNumber(line),
      why,
    ]),
    isProse: true,
  }
  const line = 'What follows the damage is missing from the import. Download these files again and plan it anew.'
  return [{ title: 'Damaged files', lines: [line], tables: [limitTable(table)] }]
}

function balance({ balance: sums }: RehearsalReport): Section {
  const rows: readonly BalanceRow[] = [
    ['Records read', sums.read],
    ['Records giving events', sums.givingEvents],
    ...onlyGeneratedRow(sums),
    ['Skipped', sums.skipped],
    ['Rejected', sums.rejected],
    ['Identical records collapsed', sums.collapsed],
    ['Events from records', sums.fromRecords],
    ['Events generated', sums.generated],
    ['Events to send', sums.toSend],
  ]
  const line = sums.isBalanced
    ? 'Every record is accounted for: read = giving events + skipped + rejected + collapsed, and to send = from records + generated.'
    : 'The figures do NOT balance, so this report cannot be approved. Please report this as a defect of Pennon.'
  return {
    title: 'Balance',
    lines: [line],
    tables: [
      {
        caption: 'What became of every record',
        columns: [{ title: 'What' }, { title: 'Count', isNumber: true }],
        rows: rows.map(([what, count]) => [what, formatNumber(count)]),
      },
    ],
  }
}

export type BalanceRow = readonly [what: string, count: number]

/** Why there are more records giving events than events of records; no row where there is no such record. */
export function onlyGeneratedRow({ givingOnlyGenerated = 0 }: Balance): readonly BalanceRow[] {
  return givingOnlyGenerated === 0
    ? []
    : [['Of these only links or groups, whose events are generated', givingOnlyGenerated]]
}

function warnings({ warnings: all, predicted }: RehearsalReport): Section {
  const none = predicted.events === 0 ? 'There is no event to be warned of.' : 'None.'
  if (all.length === 0) return { title: 'Warnings', lines: [none], tables: [] }
  return {
    title: 'Warnings',
    lines: [],
    tables: [
      {
        caption: 'What looks odd',
        columns: [{ title: 'Warning' }, { title: 'What was found' }],
        rows: all.map(({ code, text }) => [code, text]),
        isProse: true,
      },
    ],
  }
}

function inTarget({ targetAnswer, days, choices }: RehearsalReport): readonly Section[] {
  const acceptsOld = choices.some(({ option }) => option === acceptOldOption)
  const rows = 'notAsked' in targetAnswer ? [] : overlapRows(targetAnswer, days)
  const table: Table = {
    caption: 'Days of this import that the project has events of',
    columns: [
      { title: 'Day' },
      { title: 'To send', isNumber: true },
      { title: 'Live', isNumber: true },
      { title: 'Imported', isNumber: true },
      { title: 'Import jobs' },
    ],
    rows,
  }
  return [
    {
      title: 'In the project already',
      lines: targetLines(targetAnswer, { days, acceptsOld }),
      tables: rows.length === 0 ? [] : [limitTable(table)],
    },
  ]
}

/** Says how many events have names beyond those that are counted one by one. */
export function eventLines({ events, eventsOfOtherNames = 0 }: RehearsalReport): readonly string[] {
  if (events.length === 0) return ['None.']
  return eventsOfOtherNames === 0
    ? []
    : [`${formatCount(eventsOfOtherNames, 'event')} of further names are not listed.`]
}

/** Under both of their names: what the source calls them, and what they are called here. */
export function eventTable(events: readonly EventCount[]): Table {
  return limitTable({
    caption: 'Events by name',
    columns: [
      { title: 'Event' },
      { title: 'In the source' },
      { title: 'Count', isNumber: true },
      { title: 'First' },
      { title: 'Last' },
    ],
    rows: events.map(({ event, sources = [], count, first, last }) => [
      event,
      `${sources.slice(0, sourcesShown).join(', ')}${sources.length > sourcesShown ? ', …' : ''}`,
      formatNumber(count),
      first,
      last,
    ]),
  })
}

const sourcesShown = 3

function dayTable({ days }: RehearsalReport): Table {
  return {
    caption: 'Events by day (UTC)',
    columns: [{ title: 'Day' }, { title: 'Events', isNumber: true }, { title: 'Most frequent' }],
    rows: days.map(({ day, count, events }) => [day, formatNumber(count), mostFrequent(events)]),
  }
}

function rejects({ rejects: refused, skips }: RehearsalReport): Section {
  const reasonColumns = (last: string) => [
    { title: 'Reason' },
    { title: 'Count', isNumber: true } as const,
    { title: 'For example' },
    { title: last },
  ]
  const reasonRows = (reasons: RehearsalReport['rejects']) =>
    reasons.map(({ reason, count, examples: [first], fix }) => [
      reason,
      formatNumber(count),
      first === undefined ? '' : `${first.object}, line ${first.line}${first.field === null ? '' : `, ${first.field}`}`,
      fix,
    ])
  const tables = [
    {
      caption: 'Rejected records by reason',
      columns: reasonColumns('What to do'),
      rows: reasonRows(refused),
      isProse: true as const,
    },
    {
      caption: 'Skipped records by reason',
      columns: reasonColumns('What it is'),
      rows: reasonRows(skips),
      isProse: true as const,
    },
  ].filter(table => table.rows.length > 0)
  const lines = refused.length === 0 ? ['No record is rejected.'] : ['Every one is in the folder rejects.']
  return { title: 'Rejects and skips', lines, tables }
}

function personsSection({ distinctIds, identity, groups }: RehearsalReport): Section {
  const { count, error } = distinctIds
  const lines = [
    `${formatCount(count, 'distinct id')}${error === 0 ? '' : ` (estimated, ± ${formatPercent(error)})`}.`,
    `${formatCount(identity.links, 'id, such as that of a device, is', 'ids, such as those of devices, are')} joined with the person of another.`,
    sharedLine(identity),
    groups.types.length === 0
      ? 'No groups.'
      : `Groups of the ${groups.types.length === 1 ? 'type' : 'types'} ${groups.types.join(', ')}: ${formatCount(groups.events, 'event tells', 'events tell')} of them.`,
  ]
  return { title: 'Persons and groups', lines, tables: [] }
}

function sharedLine({ sharedDevices, devices }: RehearsalReport['identity']): string {
  if (sharedDevices === 0) return 'No device was used by more than one user.'
  const of = `${formatNumber(devices.shared)} of ${formatCount(devices.all, 'device')}`
  const was = devices.shared === 1 ? 'was' : 'were'
  return `${of} ${was} used by more than one user, with ${formatCount(sharedDevices, 'change')} of user; only the first user of a device is joined with it.`
}

function notCarriedOver({ dropped, balance: { givingEvents } }: RehearsalReport): Section {
  const all =
    givingEvents === 0 ? 'No record gives an event.' : 'Nothing: every field of the records that give events is.'
  if (dropped.length === 0) return { title: 'Not carried over', lines: [all], tables: [] }
  return {
    title: 'Not carried over',
    lines: [],
    tables: [
      limitTable({
        caption: 'Fields of the source that no event carries',
        columns: [{ title: 'Field' }, { title: 'Records', isNumber: true }],
        rows: dropped.map(({ field, count }) => [field, formatNumber(count)]),
      }),
    ],
  }
}

function methodSection({ source, config, jobId, hashes, seconds, recordsPerSecond }: RehearsalReport): Section {
  return {
    title: 'How it was made',
    lines: [
      `Source: ${source}, with the configuration ${JSON.stringify(config)}; zone of times without one: ${describeZone(config as JsonObject)}.`,
      `Job ${jobId}; staged bytes ${hashes.manifest}; mapping ${hashes.mapping}.`,
      `The rehearsal took ${duration(seconds)}, ${formatNumber(recordsPerSecond)} records a second.`,
    ],
    tables: [],
  }
}

function gapLine(days: readonly DayCount[]): readonly string[] {
  return days.length === 0 ? ['None.'] : [`${formatCount(days.length, 'day')} with events.`]
}

function mostFrequent(events: DayCount['events']): string {
  const names = Object.entries(events).toSorted(([, a], [, b]) => b - a)
  return names
    .slice(0, 3)
    .map(([event, count]) => `${event} (${formatNumber(count)})`)
    .join(', ')
}

function withRows(table: Table): readonly Table[] {
  return table.rows.length === 0 ? [] : [table]
}

/** Names that are made of ids are as many as there are events: a page of all of them could not be opened, or not be made. */
export function limitTable(table: Table): Table {
  if (table.rows.length <= rowsMax) return table
  const left = `${formatNumber(table.rows.length - rowsMax)} more are in report.json`
  return { ...table, caption: `${table.caption} (${left})`, rows: table.rows.slice(0, rowsMax) }
}

function targetName({ address, projectName, projectId }: NonNullable<RehearsalReport['target']>): string {
  return `${projectName ?? (projectId === null ? 'the project of the key' : `project ${projectId}`)} on ${address}`
}

export function duration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`
  const minutes = Math.ceil(seconds / 60)
  return minutes < 90 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
