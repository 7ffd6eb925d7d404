// The page of the final report, as HTML and text. Source: docs/wire/import.md §2.9.

import { formatCount } from '#core/format-count.ts'
import type { RehearsalReport } from '#importer/stages/report/rehearsal-report.ts'
import { renderHtmlSections } from '#importer/stages/report/report-html.ts'
import {
  type BalanceRow,
  choicesTitle,
  createEventTable,
  createOnlyGeneratedRow,
  createReportSections,
  describeJob,
  describeOtherNames,
  formatDuration,
  formatNumber,
  type Section,
  type Table,
} from '#importer/stages/report/report-sections.ts'
import type { JobFolder } from '../job/job-folder.ts'
import type { RetrySums } from '../send/retry-outcomes.ts'
import type { Ending } from '../send/service-job.ts'
import {
  createFinalReport,
  type FinalReport,
  type FinalReportParts,
  finalReportNames,
  isBalancedSoFar,
} from './final-report.ts'
import { formatNote } from './note-messages.ts'
import type { SentSoFar } from './sent-so-far.ts'
import type { Verification } from './verify-stage.ts'

/** Writes the report as JSON and HTML. */
export function writeFinalReport(parts: FinalReportParts): FinalReport {
  const report = createFinalReport(parts)
  storeFinalReport(parts.folder, report)
  return report
}

export function storeFinalReport(folder: JobFolder, report: FinalReport): void {
  folder.writeJson(finalReportNames.json, report)
  writeFinalPages(folder, report, null)
}

/** Writes only the page, after the import was published or discarded; the figures in JSON do not change. */
export function writeFinalPages(folder: JobFolder, report: FinalReport, ending: Ending | null): void {
  const title = `Import from ${report.source}`
  const about = describeJob(report.rehearsal)
  const sections = createFinalSections(report, ending)
  folder.write(finalReportNames.html, renderHtmlSections(title, { about, sections, days: report.days }))
}

/** @returns what happened to the import since it was sent; empty while nothing did. */
export function describeEnding(ending: Ending | null): readonly string[] {
  if (ending === null || !ending.isDone) return []
  const at = ending.at === undefined ? '' : ` at ${ending.at}`
  return ending.how === 'publish'
    ? [`The import was published${at}; it can be undone within 30 days.`]
    : [`The import was discarded${at}, with all of its events. The figures below are from before that.`]
}

/** Precedes the sections of a rehearsal, which speak of events to be sent, with how many of them have been sent. */
export function createSentSoFarSection(
  sent: Pick<SentSoFar, 'events' | 'isAll'> | null,
  { balance: { toSend } }: RehearsalReport,
  ending: Ending | null,
): readonly Section[] {
  if (sent === null) return []
  const rest = sent.isAll || describeEnding(ending).length > 0 ? '' : '; the others are still to be sent'
  const lines = [
    ...describeEnding(ending),
    `${formatNumber(sent.events)} of ${formatCount(toSend, 'event')} were sent so far${rest}. Below is what the rehearsal found.`,
  ]
  return [{ title: 'What happened so far', lines, tables: [] }]
}

export function createFinalSections(report: FinalReport, ending: Ending | null = null): readonly Section[] {
  const rehearsed = new Map(createReportSections(report.rehearsal).map(section => [section.title, section]))
  const kept = ['Rejects and skips', 'Persons and groups', 'Not carried over', choicesTitle, 'How this report was made']
  return [
    createOutcomeSection(report, ending),
    createBalanceSection(report),
    createVerificationSection(report),
    {
      title: 'Events',
      lines: describeOtherNames(report.rehearsal),
      tables: [createEventTable(report.events)],
    },
    {
      title: 'Days',
      lines: [],
      tables: [
        {
          caption: 'Events by day (UTC)',
          columns: [{ title: 'Day' }, { title: 'Events', isNumber: true }],
          rows: report.days.map(({ day, count }) => [day, formatNumber(count)]),
        },
      ],
    },
    ...kept.flatMap(title => rehearsed.get(title) ?? []),
  ]
}

function createOutcomeSection(report: FinalReport, ending: Ending | null): Section {
  const { balance: sums, seconds, eventsPerSecond, retries, recent, duplicates, repaired } = report
  const isGone = ending?.how === 'discard' && ending.isDone
  const job = report.serviceJobId === null ? '' : `, import job ${report.serviceJobId}`
  return {
    title: 'What happened',
    lines: [
      ...describeEnding(ending),
      `${formatCount(sums.sent - (repaired?.sent ?? 0), 'event was', 'events were')} sent to ${report.rehearsal.target?.projectName ?? `project ${report.project}`} on ${report.target}${job}. Charged: 0.`,
      ...(repaired === null ? [] : [describeRepaired(repaired)]),
      describeStored(report, isGone),
      `Sending took ${formatDuration(seconds)}, ${formatNumber(eventsPerSecond)} events a second, with ${formatCount(retries, 'retry', 'retries')}.`,
      `${formatCount(report.links, 'event links', 'events link')} two ids, and ${formatCount(report.groups, 'event describes', 'events describe')} groups.`,
      `${formatCount(recent, 'event was', 'events were')} counted as recent; the service already had ${formatNumber(duplicates)}.`,
    ],
    tables: [],
  }
}

function describeStored({ verification, isVerificationOld }: FinalReport, isGone: boolean): string {
  if (isVerificationOld === true) return 'The stored events have not been compared since then.'
  return verification.ok
    ? `The stored events ${isGone ? 'matched' : 'match'} the sent ones.`
    : 'The stored events do NOT match the sent ones; see below.'
}

export function describeRepaired({ read, sent, rejected }: RetrySums): string {
  const still =
    rejected === 0 ? '' : `; ${formatNumber(rejected)} of them ${rejected === 1 ? 'is' : 'are'} still rejected`
  return `${formatCount(read, 'rejected record was', 'rejected records were')} retried, which sent ${formatCount(sent, 'more event')}${still}.`
}

function createBalanceSection(report: FinalReport): Section {
  const { balance: sums, repaired } = report
  const rows: BalanceRow[] = [
    ['Records read', sums.read],
    ['Records that produce events', sums.givingEvents],
    // Counted for the whole import only.
    ...(report.isAll ? createOnlyGeneratedRow(report.rehearsal.balance) : []),
    ['Skipped', sums.skipped],
    ['Rejected', sums.rejected],
    ['Identical records collapsed', sums.collapsed],
    ['Events sent from records', sums.fromRecords],
    ['Generated events sent', sums.generated],
    ['Events sent', sums.sent],
    ['Events refused by the service', sums.refused],
  ]
  if (repaired !== null)
    rows.push(
      ['Of the records: rejected first, then retried', repaired.read],
      ['Of the events sent: from repaired records', repaired.sent],
      ['Of the rejected: retried', repaired.rejected],
    )
  return {
    title: 'Balance',
    lines: describeBalance(report),
    tables: [
      {
        caption: 'Outcome of every record',
        columns: [{ title: 'What' }, { title: 'Count', isNumber: true }],
        rows: rows.map(([what, count]) => [what, formatNumber(count)]),
      },
    ],
  }
}

function describeBalance(report: FinalReport): readonly string[] {
  const { balance: sums, rehearsal, isAll } = report
  if (sums.isBalanced) return ['Every record and every event is accounted for.']
  if (isAll || !isBalancedSoFar(report))
    return ['The figures do NOT balance, so the import is not done. Please report this as a defect of Pennon.']
  return [
    `${formatNumber(sums.sent)} of ${formatCount(rehearsal.balance.toSend, 'event is', 'events are')} sent so far, of ${formatNumber(sums.read)} of ${formatCount(rehearsal.balance.read, 'record')}. Of these, every record and every event is accounted for; the others are still to be sent.`,
  ]
}

const checkLabels: Record<Verification['checks'][number]['name'], string> = {
  day_event_counts: 'Events by day and name',
  id_buckets: 'Events by 256 buckets of distinct ids',
  random_events: 'Random events, all fields',
  live_data: 'Live events of the same days are still there',
}
const stateLabels = { equal: 'equal', differs: 'DIFFERS', not_checked: 'could not be checked' } as const

function createVerificationSection({ verification, isVerificationOld }: FinalReport): Section {
  const { checks, notes, expected_rows, stored_rows } = verification
  const compared: Table = {
    caption: 'Compared with the stored events',
    columns: [{ title: 'Check' }, { title: 'Result' }, { title: 'Compared', isNumber: true }, { title: 'Differences' }],
    rows: checks.map(each => [
      checkLabels[each.name],
      stateLabels[each.state],
      formatNumber(each.compared),
      each.differences.slice(0, 5).join('; '),
    ]),
  }
  const noted: Table = {
    caption: 'Notes of the service',
    columns: [{ title: 'Reason' }, { title: 'Count', isNumber: true }, { title: 'What it means' }],
    rows: notes.map(note => [note.reason, formatNumber(note.count), formatNote(note)]),
  }
  return {
    title: 'Verification',
    lines: [
      ...(isVerificationOld === true
        ? ['These results are older than the repaired records that were sent since.']
        : []),
      `${formatCount(expected_rows, 'unique event was', 'unique events were')} expected and ${formatCount(stored_rows, 'is', 'are')} stored.`,
    ],
    tables: [compared, noted].filter(({ rows }) => rows.length > 0),
  }
}
