// The pages of a final report, as Markdown, HTML and text: what a person signs off. Source: docs/wire/import.md §2.9.

import { formatCount } from '#core/format-count.ts'
import type { RehearsalReport } from '#importer/stages/report/rehearsal-report.ts'
import { sectionsHtml } from '#importer/stages/report/report-html.ts'
import { sectionsMarkdown } from '#importer/stages/report/report-markdown.ts'
import {
  aboutLines,
  type BalanceRow,
  choicesTitle,
  duration,
  eventLines,
  eventTable,
  formatNumber,
  onlyGeneratedRow,
  reportSections,
  type Section,
  type Table,
} from '#importer/stages/report/report-sections.ts'
import type { JobFolder } from '../job/job-folder.ts'
import type { RetrySums } from '../send/retry-outcomes.ts'
import type { Ending } from '../send/service-job.ts'
import {
  type FinalReport,
  type FinalReportParts,
  finalReport,
  finalReportNames,
  isBalancedSoFar,
} from './final-report.ts'
import { noteSentence } from './note-messages.ts'
import type { SentSoFar } from './sent-so-far.ts'
import type { Verification } from './verify-stage.ts'

/** Writes the report in its three forms. */
export function writeFinalReport(parts: FinalReportParts): FinalReport {
  const report = finalReport(parts)
  keepFinalReport(parts.folder, report)
  return report
}

export function keepFinalReport(folder: JobFolder, report: FinalReport): void {
  folder.writeJson(finalReportNames.json, report)
  writeFinalPages(folder, report, null)
}

/** The pages alone, once it is published or taken back; the figures stay what they were. */
export function writeFinalPages(folder: JobFolder, report: FinalReport, ending: Ending | null): void {
  const title = `Import from ${report.source}`
  const about = aboutLines(report.rehearsal)
  const sections = finalSections(report, ending)
  folder.write(finalReportNames.md, sectionsMarkdown(title, about, sections))
  folder.write(finalReportNames.html, sectionsHtml(title, { about, sections, days: report.days }))
}

/** What became of all of it since; no line while nothing did. */
export function endingLines(ending: Ending | null): readonly string[] {
  if (ending === null || !ending.isDone) return []
  const at = ending.at === undefined ? '' : ` at ${ending.at}`
  return ending.how === 'publish'
    ? [`The import was published${at}; within 30 days of that it can be taken back.`]
    : [`The import was taken back${at}: its events are taken back, and what follows is what was sent before.`]
}

/** Before the sections of a rehearsal, whose words are about what would be sent: how far that has come. */
export function sentSoFarSection(
  sent: Pick<SentSoFar, 'events' | 'isAll'> | null,
  { balance: { toSend } }: RehearsalReport,
  ending: Ending | null,
): readonly Section[] {
  if (sent === null) return []
  const rest = sent.isAll || endingLines(ending).length > 0 ? '' : '; the others are still to be sent'
  const lines = [
    ...endingLines(ending),
    `${formatNumber(sent.events)} of ${formatCount(toSend, 'event')} were sent so far${rest}. Below is what the rehearsal found.`,
  ]
  return [{ title: 'What happened so far', lines, tables: [] }]
}

export function finalSections(report: FinalReport, ending: Ending | null = null): readonly Section[] {
  const rehearsed = new Map(reportSections(report.rehearsal).map(section => [section.title, section]))
  const kept = ['Rejects and skips', 'Persons and groups', 'Not carried over', choicesTitle, 'How it was made']
  return [
    outcome(report, ending),
    balance(report),
    verificationSection(report),
    {
      title: 'Events',
      lines: eventLines(report.rehearsal),
      tables: [eventTable(report.events)],
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

function outcome(report: FinalReport, ending: Ending | null): Section {
  const { balance: sums, seconds, eventsPerSecond, retries, recent, duplicates, repaired } = report
  const isGone = ending?.how === 'discard' && ending.isDone
  const job = report.serviceJobId === null ? '' : `, import job ${report.serviceJobId}`
  return {
    title: 'What happened',
    lines: [
      ...endingLines(ending),
      `${formatCount(sums.sent - (repaired?.sent ?? 0), 'event was', 'events were')} sent to ${report.rehearsal.target?.projectName ?? `project ${report.project}`} on ${report.target}${job}. Charged: 0.`,
      ...(repaired === null ? [] : [describeRepaired(repaired)]),
      describeStored(report, isGone),
      `Sending took ${duration(seconds)}, ${formatNumber(eventsPerSecond)} events a second, with ${formatCount(retries, 'retry', 'retries')}.`,
      `${formatCount(report.links, 'event links', 'events link')} two ids, ${formatCount(report.groups, 'tells', 'tell')} of groups.`,
      `${formatCount(recent, 'event was', 'events were')} counted as recent; the service said of ${formatNumber(duplicates)} that it had them already.`,
    ],
    tables: [],
  }
}

function describeStored({ verification, isVerificationOld }: FinalReport, isGone: boolean): string {
  if (isVerificationOld === true) return 'What is stored was not compared since then.'
  const verb = isGone ? 'was' : 'is'
  return verification.ok
    ? `What ${verb} stored ${verb} what was sent.`
    : 'What is stored is NOT what was sent; see below.'
}

/** What came after the rest, as part of the same import. */
export function describeRepaired({ read, sent, rejected }: RetrySums): string {
  const still =
    rejected === 0 ? '' : `; ${formatNumber(rejected)} of them ${rejected === 1 ? 'is' : 'are'} still rejected`
  return `${formatCount(read, 'rejected record was', 'rejected records were')} tried again, which sent ${formatCount(sent, 'event')} more${still}.`
}

function balance(report: FinalReport): Section {
  const { balance: sums, repaired } = report
  const rows: BalanceRow[] = [
    ['Records read', sums.read],
    ['Records giving events', sums.givingEvents],
    // Known of the whole only, for which it was counted.
    ...(report.isAll ? onlyGeneratedRow(report.rehearsal.balance) : []),
    ['Skipped', sums.skipped],
    ['Rejected', sums.rejected],
    ['Identical records collapsed', sums.collapsed],
    ['Events sent from records', sums.fromRecords],
    ['Events sent that were generated', sums.generated],
    ['Events sent', sums.sent],
    ['Events refused by the service', sums.refused],
  ]
  if (repaired !== null)
    rows.push(
      ['Of the records: rejected once, and tried again', repaired.read],
      ['Of the events: sent from repaired records', repaired.sent],
      ['Of the rejected: tried again', repaired.rejected],
    )
  return {
    title: 'Balance',
    lines: balanceLines(report),
    tables: [
      {
        caption: 'What became of every record',
        columns: [{ title: 'What' }, { title: 'Count', isNumber: true }],
        rows: rows.map(([what, count]) => [what, formatNumber(count)]),
      },
    ],
  }
}

function balanceLines(report: FinalReport): readonly string[] {
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
  id_buckets: 'Events by 256 parts of the distinct ids',
  random_events: 'Events at random, all fields',
  live_data: 'Live events of the same days are still there',
}
const stateLabels = { equal: 'equal', differs: 'DIFFERS', not_checked: 'could not be asked' } as const

function verificationSection({ verification, isVerificationOld }: FinalReport): Section {
  const { checks, notes, expected_rows, stored_rows } = verification
  const compared: Table = {
    caption: 'Compared with what is stored',
    columns: [{ title: 'Check' }, { title: 'Result' }, { title: 'Compared', isNumber: true }, { title: 'Differences' }],
    rows: checks.map(each => [
      checkLabels[each.name],
      stateLabels[each.state],
      formatNumber(each.compared),
      each.differences.slice(0, 5).join('; '),
    ]),
  }
  const noted: Table = {
    caption: 'What the service noted',
    columns: [{ title: 'Reason' }, { title: 'Count', isNumber: true }, { title: 'What it means' }],
    rows: notes.map(note => [note.reason, formatNumber(note.count), noteSentence(note)]),
  }
  return {
    title: 'Verification',
    lines: [
      ...(isVerificationOld === true ? ['As it was before records were repaired and sent.'] : []),
      `${formatCount(expected_rows, 'unique event was', 'unique events were')} expected and ${formatCount(stored_rows, 'is', 'are')} stored.`,
    ],
    tables: [compared, noted].filter(({ rows }) => rows.length > 0),
  }
}
