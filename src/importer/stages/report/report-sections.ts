// The content of a report as headings, sentences and tables, independent of the output format.

import { formatCount, truncateList } from '#core/format-count.ts'
import type { JsonObject } from '#core/json.ts'
import { formatDuration, formatNumber, formatPercent } from './format-figures.ts'
import type { DayCount, EventCount, ImportReport, ReasonCount, Rehearsal, SentSummary } from './import-report.ts'
import { formatNote } from './note-messages.ts'
import { describeZone, formatChoice } from './plan-choices.ts'
import { describeDamage, describeLikelySource, describeRejectShare } from './rejects.ts'
import { describeTarget } from './target-facts.ts'
import { describeSharedDevices } from './warnings.ts'

export interface Table {
  readonly caption: string
  readonly columns: readonly { readonly title: string; readonly isNumber?: true }[]
  readonly rows: readonly (readonly string[])[]
  /** Set if the cells are sentences, which are stacked on a narrow page. */
  readonly isProse?: true
}

export interface Section {
  readonly title: string
  readonly lines: readonly string[]
  readonly tables: readonly Table[]
}

const rowsMax = 500

export function createReportSections(report: ImportReport): readonly Section[] {
  const { sent } = report
  return [
    ...(sent === null ? [] : [createSection('What was sent', describeSentEvents(report, sent))]),
    ...(sent?.isAll === true ? [createVerificationSection(sent)] : []),
    createSection('What the rehearsal found', describeRehearsal(report)),
    createChoicesSection(report),
    ...createDamagedFilesSection(report),
    createBalanceSection(report),
    createWarningsSection(report),
    createTargetSection(report),
    createEventsSection(report),
    createDaysSection(report),
    createRejectsSection(report),
    createPersonsSection(report),
    createDroppedFieldsSection(report),
    createMethodSection(report),
  ]
}

/** @param titles of the columns; titles of number columns begin with `#`. */
function createTable(caption: string, titles: readonly string[], rows: Table['rows'], isProse = false): Table {
  const columns = titles.map(each =>
    each.startsWith('#') ? ({ title: each.slice(1), isNumber: true } as const) : { title: each },
  )
  return { caption, columns, rows, ...(isProse && { isProse }) }
}

/** @param tables tables without rows are left out. */
function createSection(title: string, lines: string | null | readonly string[], ...tables: Table[]): Section {
  return { title, lines: [lines ?? []].flat(), tables: tables.filter(({ rows }) => rows.length > 0) }
}

/**
 * Limits the rows, since there may be as many names as events if names are made of ids. A page with all of them could not
 * be created or opened.
 */
function limitTable(table: Table): Table {
  if (table.rows.length <= rowsMax) return table
  const left = `${formatNumber(table.rows.length - rowsMax)} more are in report.json`
  return { ...table, caption: `${table.caption} (${left})`, rows: table.rows.slice(0, rowsMax) }
}

/** Lines that identify the job, for readers who see the report outside of the job's folder. */
export function describeJob({ folder, plannedAt, rehearsedAt }: Rehearsal): readonly string[] {
  const name = folder.slice(folder.lastIndexOf('/') + 1)
  const rehearsed = rehearsedAt === undefined ? '' : `, rehearsed ${formatMinute(rehearsedAt)}`
  return [`Job ${name} in ${folder}, planned ${formatMinute(plannedAt)}${rehearsed}.`]
}

/** @param time ISO 8601 in UTC. */
function formatMinute(time: string): string {
  return `${time.slice(0, 16).replace('T', ' ')} UTC`
}

export function describeSentEvents({ target, balance: { toSend } }: Rehearsal, sent: SentSummary): readonly string[] {
  const { isAll, balance, repaired, serviceJobId, seconds, retries, recent, duplicates, ending } = sent
  const first = balance.sent - (repaired?.sent ?? 0)
  const where = target === null ? '' : ` to ${formatTarget(target)}`
  const job = serviceJobId === null ? '' : `, import job ${serviceJobId}`
  const rest = isAll || ending?.isDone === true ? '' : ' The others are still to be sent.'
  return [
    ...describeEnding(sent),
    `Sent${where}${job}: ${formatNumber(first)} of ${formatCount(toSend, 'event')}, ${formatNumber(balance.refused)} refused, 0 charged.${rest}`,
    ...(repaired === null ? [] : [describeRepaired(repaired)]),
    ...(isAll ? [describeStored(sent)] : []),
    `Sending took ${formatDuration(seconds)}, ${formatNumber(Math.round(first / (seconds || 1)))} events a second, with ${formatCount(retries, 'retry', 'retries')}.`,
    `${formatCount(recent, 'event was', 'events were')} counted as recent; the service already had ${formatNumber(duplicates)}.`,
  ]
}

/** @returns lines on what happened to the import after it was sent; empty if nothing has happened yet. */
function describeEnding({ ending }: SentSummary): readonly string[] {
  if (ending === null || !ending.isDone) return []
  const at = ending.at === undefined ? '' : ` at ${ending.at}`
  return ending.how === 'publish'
    ? [`The import was published${at}; it can be undone within 30 days.`]
    : [`The import was discarded${at}, with all of its events. The figures below are from before that.`]
}

function describeRepaired({ read, sent, rejected }: NonNullable<SentSummary['repaired']>): string {
  const still = rejected === 0 ? '' : `; ${formatCount(rejected, 'of them is', 'of them are')} still rejected`
  return `${formatCount(read, 'rejected record was', 'rejected records were')} retried, which sent ${formatCount(sent, 'more event')}${still}.`
}

function describeStored({ verification }: SentSummary): string {
  if (verification === null) return 'The stored events have not been compared with the sent ones since.'
  return verification.ok
    ? `The stored events match the sent ones: ${formatCount(verification.stored_rows, 'unique event')}.`
    : 'The stored events do NOT match the sent ones.'
}

const checkLabels = {
  day_event_counts: 'Events by day and name',
  id_buckets: 'Events by 256 buckets of distinct ids',
  random_events: 'Random events, all fields',
  live_data: 'Live events of the same days are still there',
  persons: 'Random persons, properties and ids',
} as const
const stateLabels = { equal: 'equal', differs: 'DIFFERS', not_checked: 'could not be checked' } as const

function createVerificationSection({ verification, persons }: SentSummary): Section {
  const { expected_rows = 0, stored_rows = 0, checks = [], notes = [] } = verification ?? {}
  const isEqual = persons?.differences.length === 0
  const ofPersons = persons && {
    ...persons,
    name: 'persons' as const,
    state: isEqual ? ('equal' as const) : ('differs' as const),
  }
  return createSection(
    'Verification',
    verification === null
      ? 'Not done since the last event was sent.'
      : `${formatCount(expected_rows, 'unique event was', 'unique events were')} expected and ${formatCount(stored_rows, 'is', 'are')} stored.`,
    createTable(
      'Compared with what is stored',
      ['Check', 'Result', '#Compared', 'Differences'],
      [...checks, ...(ofPersons === null ? [] : [ofPersons])].map(({ name, state, compared, differences }) => [
        ...[checkLabels[name], stateLabels[state], formatNumber(compared), differences.slice(0, 5).join('; ')],
      ]),
    ),
    createTable(
      'Notes of the service',
      ['Reason', '#Count', 'What it means'],
      notes.map(note => [note.reason, formatNumber(note.count), formatNote(note)]),
    ),
  )
}

function describeRehearsal(report: Rehearsal): readonly string[] {
  const { heldByRejects, rejectShare, maxRejectShare, looksLike, target } = report
  return [
    target === null ? 'No target has been planned yet.' : `Target: ${formatTarget(target)}.`,
    ...describePredicted(report),
    describeRejectShare(rejectShare, maxRejectShare, heldByRejects),
    ...(looksLike === null ? [] : [describeLikelySource(looksLike)]),
  ]
}

function formatTarget({ address, projectName, projectId }: NonNullable<Rehearsal['target']>): string {
  return `${projectName ?? (projectId === null ? 'the project of the key' : `project ${projectId}`)} on ${address}`
}

function describePredicted({ predicted, range }: Rehearsal): readonly string[] {
  if (range === null) return ['No record produces an event, so there is nothing to send.']
  const { events, persons, groups, merges, bytes, seconds, recent } = predicted
  return [
    `The events date from ${range.first} to ${range.last}.`,
    `${formatCount(events, 'event')} would be sent, of about ${formatCount(persons, 'person')} and ${formatCount(groups, 'group')}, with ${formatCount(merges, 'merge')} of two ids into one person: ${formatNumber(Math.ceil(bytes / 1_048_576))} MiB, about ${formatDuration(seconds)} at 1,000 events a second.`,
    'Events that would be charged: 0. Imported events are free, whatever their age.',
    recent.events === 0
      ? 'No event is from the last 48 hours.'
      : `${formatCount(recent.events, 'event is', 'events are')} from the last 48 hours (${recent.days.join(', ')}); they are sent and counted as recent.`,
  ]
}

function createChoicesSection({ choices }: Rehearsal): Section {
  const replacing = choices.filter(({ replacesLiveValues }) => replacesLiveValues).map(({ option }) => option)
  const line =
    choices.length === 0
      ? 'All have their defaults: no value of a live event is replaced.'
      : `ATTENTION: publishing replaces values of live events (${replacing.join(', ')}).`
  const rows = choices.map(choice => [choice.option, formatChoice(choice)])
  const table = createTable('Options that differ from the defaults', ['Option', 'What it does'], rows, true)
  return createSection('Options of the plan', choices.length > 0 && replacing.length === 0 ? null : line, table)
}

function createDamagedFilesSection({ damagedFiles }: Rehearsal): readonly Section[] {
  if (damagedFiles.length === 0) return []
  const line = 'Download these files again, and plan the import again.'
  return [createSection('Damaged files', [...truncateList(damagedFiles.map(describeDamage)), line])]
}

/** Once sending has begun, its figures are shown next to the figures of the rehearsal. */
function createBalanceSection({ balance: sums, sent }: ImportReport): Section {
  const now = sent?.balance
  const columns = now === undefined ? ['#Rehearsed'] : ['#Rehearsed', '#Sent']
  const rows: readonly (readonly [what: string, ...(number | undefined)[]])[] = [
    ['Records read', sums.read, now?.read],
    ['Records that produce events', sums.givingEvents, now?.givingEvents],
    // This explains why more records produce events than there are events from records.
    ['Of these, only links or groups, whose events are generated', sums.givingOnlyGenerated],
    ['Skipped', sums.skipped, now?.skipped],
    ['Rejected', sums.rejected, now?.rejected],
    ['Identical records collapsed', sums.collapsed, now?.collapsed],
    ['Events from records', sums.fromRecords, now?.fromRecords],
    ['Generated events', sums.generated, now?.generated],
    ['Events to send', sums.toSend, now?.sent],
    ['Events refused by the service', undefined, now?.refused],
  ]
  const isBalanced = sums.isBalanced && (sent === null || !sent.isAll || sent.balance.isBalanced)
  return createSection(
    'Balance',
    isBalanced
      ? 'Every record is accounted for: records read = producing events + skipped + rejected + collapsed, and events to send = from records + generated.'
      : 'The figures do NOT balance, so this import cannot be approved or published. Please report this as a defect of Pennon.',
    createTable(
      'Outcome of every record',
      ['What', ...columns],
      rows
        .filter(([, ...counts]) => counts.some(each => each !== undefined))
        .map(([what, ...counts]) => [what, ...columns.map((_, index) => formatOrEmpty(counts[index]))]),
    ),
  )
}

function formatOrEmpty(count: number | undefined): string {
  return count === undefined ? '' : formatNumber(count)
}

function createWarningsSection({ warnings, predicted }: Rehearsal): Section {
  const none = predicted.events === 0 ? 'There are no events to warn about.' : 'None.'
  const rows = warnings.map(({ code, text }) => [code, text])
  const table = createTable('Suspicious findings', ['Warning', 'Finding'], rows, true)
  return createSection('Warnings', warnings.length === 0 ? none : null, table)
}

function createTargetSection({ targetAnswer, days }: Rehearsal): Section {
  const toSend = new Map(days.map(({ day, count }) => [day, count]))
  const rows = ('notAsked' in targetAnswer ? [] : targetAnswer.overlap).map(({ day, live, imported, jobs }) => [
    ...[day, formatNumber(toSend.get(day) ?? 0), formatNumber(live), formatNumber(imported), jobs.join(', ')],
  ])
  const table = createTable(
    'Days of this import for which the project already has events',
    ['Day', '#To send', '#Live', '#Imported', 'Import jobs'],
    rows,
  )
  return createSection('Already in the project', describeTarget(targetAnswer, days.length > 0), limitTable(table))
}

function createEventsSection({ events, eventsOfOtherNames: others = 0 }: Rehearsal): Section {
  const unlisted = others === 0 ? null : `${formatCount(others, 'event')} with further names are not listed.`
  return createSection('Events', events.length === 0 ? 'None.' : unlisted, createEventTable(events))
}

/** Lists event names, each with some of the names that these events have in the source. */
export function createEventTable(events: readonly EventCount[]): Table {
  const rows = events.map(({ event, sources = [], count, first, last }) => [
    ...[event, `${sources.slice(0, 3).join(', ')}${sources.length > 3 ? ', …' : ''}`, formatNumber(count), first, last],
  ])
  return limitTable(createTable('Events by name', ['Event', 'In the source', '#Count', 'First', 'Last'], rows))
}

/** The table lists every day, since the chart must not show anything that the table lacks. */
function createDaysSection({ days }: Rehearsal): Section {
  const line = days.length === 0 ? 'None.' : `${formatCount(days.length, 'day')} with events.`
  const rows = days.map(({ day, count, events }) => [day, formatNumber(count), formatMostFrequent(events)])
  return createSection('Days', line, createTable('Events by day (UTC)', ['Day', '#Events', 'Most frequent'], rows))
}

function formatMostFrequent(events: DayCount['events']): string {
  const names = Object.entries(events).toSorted(([, a], [, b]) => b - a)
  return names
    .slice(0, 3)
    .map(([event, count]) => `${event} (${formatNumber(count)})`)
    .join(', ')
}

function createRejectsSection({ rejects, skips }: Rehearsal): Section {
  const line = rejects.length === 0 ? 'No records are rejected.' : 'All rejects are in the folder rejects.'
  return createSection(
    'Rejects and skips',
    line,
    createReasonTable('Rejected records by reason', rejects, 'What to do'),
    createReasonTable('Skipped records by reason', skips, 'What it is'),
  )
}

function createReasonTable(caption: string, reasons: readonly ReasonCount[], last: string): Table {
  const rows = reasons.map(({ reason, count, examples: [first], fix }) => {
    const field = first?.field == null ? '' : `, ${first.field}`
    return [reason, formatNumber(count), first === undefined ? '' : `${first.object}, line ${first.line}${field}`, fix]
  })
  return createTable(caption, ['Reason', '#Count', 'For example', last], rows, true)
}

function createPersonsSection({ distinctIds: { count, error }, identity, groups }: Rehearsal): Section {
  return createSection('Persons and groups', [
    `${formatCount(count, 'distinct id')}${error === 0 ? '' : ` (estimated, ± ${formatPercent(error)})`}.`,
    `${formatCount(identity.links, 'id, such as a device id, is', 'ids, such as device ids, are')} linked to the person of another id.`,
    describeSharedDevices(identity),
    groups.types.length === 0
      ? 'No groups.'
      : `Group types: ${groups.types.join(', ')}. ${formatCount(groups.events, 'event describes', 'events describe')} groups.`,
  ])
}

function createDroppedFieldsSection({ dropped, balance: { givingEvents } }: Rehearsal): Section {
  const all =
    givingEvents === 0 ? 'No record produces an event.' : 'Nothing: the events contain every field of their records.'
  const rows = dropped.map(({ field, count }) => [field, formatNumber(count)])
  const table = createTable('Fields of the source that are in no event', ['Field', '#Records'], rows)
  return createSection('Not carried over', dropped.length === 0 ? all : null, limitTable(table))
}

function createMethodSection({ source, config, jobId, hashes, seconds, recordsPerSecond }: Rehearsal): Section {
  return createSection('How this report was made', [
    `Source: ${source}, with the configuration ${JSON.stringify(config)}; zone for times without one: ${describeZone(config as JsonObject)}.`,
    `Job ${jobId}; staged bytes ${hashes.manifest}; mapping ${hashes.mapping}.`,
    `The rehearsal took ${formatDuration(seconds)}, ${formatNumber(recordsPerSecond)} records a second.`,
  ])
}
