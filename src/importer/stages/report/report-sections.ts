// The content of a report as headings, sentences and tables, independent of the output format.

import { formatCount } from '#core/format-count.ts'
import type { JsonObject } from '#core/json.ts'
import { describeZone } from './describe-zone.ts'
import { acceptOldOption, formatChoice } from './plan-choices.ts'
import type { Balance, DayCount, EventCount, RehearsalReport } from './rehearsal-report.ts'
import { describeRejectShare } from './reject-share.ts'
import { formatPercent } from './suspicions.ts'
import { createOverlapRows, describeTarget } from './target-facts.ts'

export interface Table {
  readonly caption: string
  readonly columns: readonly { readonly title: string; readonly isNumber?: true }[]
  readonly rows: readonly (readonly string[])[]
  /** Its cells are sentences, which a narrow page stacks. */
  readonly isProse?: true
}

export interface Section {
  readonly title: string
  readonly lines: readonly string[]
  readonly tables: readonly Table[]
}

const rowsMax = 500

export function createReportSections(report: RehearsalReport): readonly Section[] {
  return [
    createSummarySection(report),
    ...createChoicesSection(report),
    ...createDamagedFilesSection(report),
    createBalanceSection(report),
    createWarningsSection(report),
    ...createTargetSection(report),
    { title: 'Events', lines: describeOtherNames(report), tables: omitEmptyTable(createEventTable(report.events)) },
    { title: 'Days', lines: describeDayGaps(report.days), tables: omitEmptyTable(createDayTable(report)) },
    createRejectsSection(report),
    createPersonsSection(report),
    createDroppedFieldsSection(report),
    createMethodSection(report),
  ]
}

export const choicesTitle = 'Options of the plan'

/** Lines that identify the job, for readers outside of its folder. */
export function describeJob({ folder, plannedAt, rehearsedAt }: RehearsalReport): readonly string[] {
  const name = folder.slice(folder.lastIndexOf('/') + 1)
  const rehearsed = rehearsedAt === undefined ? '' : `, rehearsed ${formatMinute(rehearsedAt)}`
  return [`Job ${name} in ${folder}, planned ${formatMinute(plannedAt)}${rehearsed}.`]
}

/** @param time ISO 8601 in UTC. */
function formatMinute(time: string): string {
  return `${time.slice(0, 16).replace('T', ' ')} UTC`
}

export function formatNumber(value: number): string {
  return value.toLocaleString('en')
}

function createSummarySection({
  predicted,
  range,
  heldByRejects,
  rejectShare,
  maxRejectShare,
  looksLike,
  target,
}: RehearsalReport): Section {
  const where = target === null ? 'No target has been planned yet.' : `Target: ${formatTarget(target)}.`
  const lines = [
    where,
    ...(range === null
      ? ['No record produces an event, so there is nothing to send.']
      : describePredicted(predicted, range)),
    describeRejectShare(rejectShare, maxRejectShare, heldByRejects),
    ...(looksLike === null ? [] : [describeLikelySource(looksLike)]),
  ]
  return { title: 'What would happen', lines, tables: [] }
}

function describePredicted(
  { events, persons, groups, merges, bytes, seconds, recent }: RehearsalReport['predicted'],
  range: NonNullable<RehearsalReport['range']>,
): readonly string[] {
  return [
    `The events date from ${range.first} to ${range.last}.`,
    `${formatCount(events, 'event')} would be sent, of about ${formatCount(persons, 'person')} and ${formatCount(groups, 'group')}, with ${formatCount(merges, 'merge')} of two ids into one person: ${formatNumber(Math.ceil(bytes / 1_048_576))} MiB, about ${formatDuration(seconds)} at 1,000 events a second.`,
    'Events that would be charged: 0. Imported events are free, whatever their age.',
    recent.events === 0
      ? 'No event is from the last 48 hours.'
      : `${formatCount(recent.events, 'event is', 'events are')} from the last 48 hours (${recent.days.join(', ')}); they are sent and counted as recent.`,
  ]
}

function createChoicesSection({ choices }: RehearsalReport): readonly Section[] {
  const usual = 'All have their defaults: no value of a live event is replaced.'
  if (choices.length === 0) return [{ title: choicesTitle, lines: [usual], tables: [] }]
  const replacing = choices.filter(({ replacesLiveValues }) => replacesLiveValues).map(({ option }) => option)
  const marked = `ATTENTION: publishing replaces values of live events (${replacing.join(', ')}).`
  const table: Table = {
    caption: 'Options that differ from the defaults',
    columns: [{ title: 'Option' }, { title: 'What it does' }],
    rows: choices.map(choice => [choice.option, formatChoice(choice)]),
    isProse: true,
  }
  return [{ title: choicesTitle, lines: replacing.length === 0 ? [] : [marked], tables: [table] }]
}

export function describeLikelySource(source: string): string {
  return `The rejected records look like records of another source: --source ${source}.`
}

function createDamagedFilesSection({ damagedFiles }: RehearsalReport): readonly Section[] {
  if (damagedFiles.length === 0) return []
  const table: Table = {
    caption: 'Files that cannot be read to the end',
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
  const line =
    'The records after the damage are missing from the import. Download these files again, and plan the import again.'
  return [{ title: 'Damaged files', lines: [line], tables: [limitTable(table)] }]
}

function createBalanceSection({ balance: sums }: RehearsalReport): Section {
  const rows: readonly BalanceRow[] = [
    ['Records read', sums.read],
    ['Records that produce events', sums.givingEvents],
    ...createOnlyGeneratedRow(sums),
    ['Skipped', sums.skipped],
    ['Rejected', sums.rejected],
    ['Identical records collapsed', sums.collapsed],
    ['Events from records', sums.fromRecords],
    ['Generated events', sums.generated],
    ['Events to send', sums.toSend],
  ]
  const line = sums.isBalanced
    ? 'Every record is accounted for: records read = producing events + skipped + rejected + collapsed, and events to send = from records + generated.'
    : 'The figures do NOT balance, so this report cannot be approved. Please report this as a defect of Pennon.'
  return {
    title: 'Balance',
    lines: [line],
    tables: [
      {
        caption: 'Outcome of every record',
        columns: [{ title: 'What' }, { title: 'Count', isNumber: true }],
        rows: rows.map(([what, count]) => [what, formatNumber(count)]),
      },
    ],
  }
}

export type BalanceRow = readonly [what: string, count: number]

/** Explains why more records produce events than there are events from records; no row if there is no such record. */
export function createOnlyGeneratedRow({ givingOnlyGenerated = 0 }: Balance): readonly BalanceRow[] {
  return givingOnlyGenerated === 0
    ? []
    : [['Of these, only links or groups, whose events are generated', givingOnlyGenerated]]
}

function createWarningsSection({ warnings: all, predicted }: RehearsalReport): Section {
  const none = predicted.events === 0 ? 'There are no events to warn about.' : 'None.'
  if (all.length === 0) return { title: 'Warnings', lines: [none], tables: [] }
  return {
    title: 'Warnings',
    lines: [],
    tables: [
      {
        caption: 'Suspicious findings',
        columns: [{ title: 'Warning' }, { title: 'Finding' }],
        rows: all.map(({ code, text }) => [code, text]),
        isProse: true,
      },
    ],
  }
}

function createTargetSection({ targetAnswer, days, choices }: RehearsalReport): readonly Section[] {
  const acceptsOld = choices.some(({ option }) => option === acceptOldOption)
  const rows = 'notAsked' in targetAnswer ? [] : createOverlapRows(targetAnswer, days)
  const table: Table = {
    caption: 'Days of this import for which the project already has events',
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
      title: 'Already in the project',
      lines: describeTarget(targetAnswer, { days, acceptsOld }),
      tables: rows.length === 0 ? [] : [limitTable(table)],
    },
  ]
}

/** States how many events have names that are not counted separately. */
export function describeOtherNames({ events, eventsOfOtherNames = 0 }: RehearsalReport): readonly string[] {
  if (events.length === 0) return ['None.']
  return eventsOfOtherNames === 0
    ? []
    : [`${formatCount(eventsOfOtherNames, 'event')} with further names are not listed.`]
}

/** Lists events with their name here and their names in the source. */
export function createEventTable(events: readonly EventCount[]): Table {
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

function createDayTable({ days }: RehearsalReport): Table {
  return {
    caption: 'Events by day (UTC)',
    columns: [{ title: 'Day' }, { title: 'Events', isNumber: true }, { title: 'Most frequent' }],
    rows: days.map(({ day, count, events }) => [day, formatNumber(count), formatMostFrequent(events)]),
  }
}

function createRejectsSection({ rejects: refused, skips }: RehearsalReport): Section {
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
  const lines = refused.length === 0 ? ['No records are rejected.'] : ['All rejects are in the folder rejects.']
  return { title: 'Rejects and skips', lines, tables }
}

function createPersonsSection({ distinctIds, identity, groups }: RehearsalReport): Section {
  const { count, error } = distinctIds
  const lines = [
    `${formatCount(count, 'distinct id')}${error === 0 ? '' : ` (estimated, ± ${formatPercent(error)})`}.`,
    `${formatCount(identity.links, 'id, such as a device id, is', 'ids, such as device ids, are')} linked to the person of another id.`,
    describeSharedDevices(identity),
    groups.types.length === 0
      ? 'No groups.'
      : `Groups of the ${groups.types.length === 1 ? 'type' : 'types'} ${groups.types.join(', ')}: ${formatCount(groups.events, 'event describes', 'events describe')} them.`,
  ]
  return { title: 'Persons and groups', lines, tables: [] }
}

function describeSharedDevices({ sharedDevices, devices }: RehearsalReport['identity']): string {
  if (sharedDevices === 0) return 'No device was used by more than one user.'
  const of = `${formatNumber(devices.shared)} of ${formatCount(devices.all, 'device')}`
  const was = devices.shared === 1 ? 'was' : 'were'
  return `${of} ${was} used by more than one user, with ${formatCount(sharedDevices, 'change')} of user; a device is linked only to its first user.`
}

function createDroppedFieldsSection({ dropped, balance: { givingEvents } }: RehearsalReport): Section {
  const all =
    givingEvents === 0 ? 'No record produces an event.' : 'Nothing: the events contain every field of their records.'
  if (dropped.length === 0) return { title: 'Not carried over', lines: [all], tables: [] }
  return {
    title: 'Not carried over',
    lines: [],
    tables: [
      limitTable({
        caption: 'Fields of the source that are in no event',
        columns: [{ title: 'Field' }, { title: 'Records', isNumber: true }],
        rows: dropped.map(({ field, count }) => [field, formatNumber(count)]),
      }),
    ],
  }
}

function createMethodSection({ source, config, jobId, hashes, seconds, recordsPerSecond }: RehearsalReport): Section {
  return {
    title: 'How this report was made',
    lines: [
      `Source: ${source}, with the configuration ${JSON.stringify(config)}; zone for times without one: ${describeZone(config as JsonObject)}.`,
      `Job ${jobId}; staged bytes ${hashes.manifest}; mapping ${hashes.mapping}.`,
      `The rehearsal took ${formatDuration(seconds)}, ${formatNumber(recordsPerSecond)} records a second.`,
    ],
    tables: [],
  }
}

function describeDayGaps(days: readonly DayCount[]): readonly string[] {
  return days.length === 0 ? ['None.'] : [`${formatCount(days.length, 'day')} with events.`]
}

function formatMostFrequent(events: DayCount['events']): string {
  const names = Object.entries(events).toSorted(([, a], [, b]) => b - a)
  return names
    .slice(0, 3)
    .map(([event, count]) => `${event} (${formatNumber(count)})`)
    .join(', ')
}

function omitEmptyTable(table: Table): readonly Table[] {
  return table.rows.length === 0 ? [] : [table]
}

/** Limits the rows, since names made of ids may be as many as events: a page of all of them could not be created or opened. */
export function limitTable(table: Table): Table {
  if (table.rows.length <= rowsMax) return table
  const left = `${formatNumber(table.rows.length - rowsMax)} more are in report.json`
  return { ...table, caption: `${table.caption} (${left})`, rows: table.rows.slice(0, rowsMax) }
}

function formatTarget({ address, projectName, projectId }: NonNullable<RehearsalReport['target']>): string {
  return `${projectName ?? (projectId === null ? 'the project of the key' : `project ${projectId}`)} on ${address}`
}

export function formatDuration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`
  const minutes = Math.ceil(seconds / 60)
  return minutes < 90 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
