// The final report of an import: what was read, what was sent, what is stored, and what was left out. As JSON, Markdown
// and a page that a person can sign off. Unless it balances, the job is not done. Source: docs/wire/import.md §2.9.

import Type from 'typebox'
import { counted } from '#core/counted.ts'
import {
  type DayCount,
  dayCountsSchema,
  type EventCount,
  eventCountsSchema,
  type RehearsalReport,
  rehearsalReportSchema,
} from '#importer/stages/report/rehearsal-report.ts'
import { sectionsHtml } from '#importer/stages/report/report-html.ts'
import { sectionsMarkdown } from '#importer/stages/report/report-markdown.ts'
import {
  aboutLines,
  duration,
  eventLines,
  eventTable,
  number,
  reportSections,
  type Section,
  type Table,
} from '#importer/stages/report/report-sections.ts'
import { orNull } from '../job/file-schema.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { type Checkpoint, type SendCounts, sumCounts } from '../send/checkpoint.ts'
import { type RetryOutcomes, type RetrySums, sumOutcomes } from '../send/retry-outcomes.ts'
import type { ExpectedEvents } from './expected-events.ts'
import { noteSentence } from './note-words.ts'
import { verificationSchema } from './verification-file.ts'
import type { Verification } from './verify-stage.ts'

export const finalReportNames = {
  json: 'final/report.json',
  md: 'final/report.md',
  html: 'final/report.html',
} as const

export interface FinalReport {
  readonly v: 1
  readonly kind: 'final'
  readonly jobId: string
  readonly serviceJobId: string | null
  readonly source: string
  readonly target: string
  readonly project: string
  readonly hashes: { readonly mapping: string; readonly approval: string }
  readonly balance: FinalBalance
  /** By the name that was sent; of very many, the first ones. */
  readonly events: readonly EventCount[]
  readonly days: readonly DayCount[]
  readonly links: number
  readonly groups: number
  readonly duplicates: number
  readonly recent: number
  readonly charged: 0
  readonly seconds: number
  readonly eventsPerSecond: number
  readonly retries: number
  /** Records that were repaired and sent later; null when there are none. They are no part of the balance. */
  readonly repaired: RetrySums | null
  readonly verification: Verification
  /** What was found before sending: rejects and skips by reason, ids, what is not carried over, the mapping in words. */
  readonly rehearsal: RehearsalReport
}

/**
 * `read = givingEvents + skipped + rejected + collapsed`, `sent = fromRecords + generated`, and what was sent or refused
 * is what the rehearsal promised.
 */
export interface FinalBalance {
  readonly read: number
  readonly givingEvents: number
  readonly skipped: number
  readonly rejected: number
  readonly collapsed: number
  readonly sent: number
  readonly fromRecords: number
  readonly generated: number
  /** Events that the service refused. */
  readonly refused: number
  readonly isBalanced: boolean
}

export interface FinalReportParts {
  readonly folder: JobFolder
  readonly checkpoint: Checkpoint
  readonly rehearsal: RehearsalReport
  readonly verification: Verification
  readonly expected: ExpectedEvents
  readonly retried?: RetryOutcomes
}

const count = Type.Number()

const finalReportSchema = Type.Object({
  v: Type.Literal(1),
  kind: Type.Literal('final'),
  jobId: Type.String(),
  serviceJobId: orNull(Type.String()),
  source: Type.String(),
  target: Type.String(),
  project: Type.String(),
  hashes: Type.Object({ mapping: Type.String(), approval: Type.String() }),
  balance: Type.Object({
    read: count,
    givingEvents: count,
    skipped: count,
    rejected: count,
    collapsed: count,
    sent: count,
    fromRecords: count,
    generated: count,
    refused: count,
    isBalanced: Type.Boolean(),
  }),
  events: eventCountsSchema,
  days: dayCountsSchema,
  links: count,
  groups: count,
  duplicates: count,
  recent: count,
  charged: Type.Literal(0),
  seconds: count,
  eventsPerSecond: count,
  retries: count,
  repaired: orNull(Type.Object({ read: count, sent: count, refused: count, rejected: count, skipped: count })),
  verification: verificationSchema,
  rehearsal: rehearsalReportSchema,
})

/** @returns null before everything is sent. */
export function readFinalReport(folder: JobFolder): FinalReport | null {
  return folder.readJson(finalReportNames.json, finalReportSchema)
}

/** Writes the report in its three forms. */
export function writeFinalReport(parts: FinalReportParts): FinalReport {
  const { folder } = parts
  const report = finalReport(parts)
  const title = `Import from ${report.source}`
  const about = aboutLines(report.rehearsal)
  const sections = finalSections(report)
  folder.writeJson(finalReportNames.json, report)
  folder.write(finalReportNames.md, sectionsMarkdown(title, about, sections))
  folder.write(finalReportNames.html, sectionsHtml(title, { about, sections, days: report.days }))
  return report
}

export function finalReport({
  checkpoint,
  rehearsal,
  verification,
  expected,
  retried = new Map(),
}: FinalReportParts): FinalReport {
  const fromParts = sumCounts(checkpoint.parts.map(({ counts }) => counts))
  const generated = checkpoint.identity.progress.counts
  const seconds = checkpoint.spent_ms / 1_000
  const sent = fromParts.sent + generated.sent
  const sources = new Map(rehearsal.events.map(each => [each.event, each.sources]))
  return {
    v: 1,
    kind: 'final',
    jobId: checkpoint.job_id,
    serviceJobId: checkpoint.service_job_id,
    source: rehearsal.source,
    target: checkpoint.target,
    project: checkpoint.project,
    hashes: { mapping: checkpoint.mapping_sha256, approval: checkpoint.approval_sha256 },
    balance: finalBalance(fromParts, generated, rehearsal),
    events: [...expected.names]
      .map(([event, span]) => ({ event, sources: sources.get(event) ?? [], ...span }))
      .toSorted((a, b) => b.count - a.count || (a.event < b.event ? -1 : 1)),
    days: [...expected.counts]
      .map(([day, events]) => ({
        day,
        count: sumOf(events.values()) + sumOf(expected.otherCounts.get(day) ?? []),
        events: Object.fromEntries(events),
      }))
      .toSorted((a, b) => (a.day < b.day ? -1 : 1)),
    links: expected.links,
    groups: expected.groups,
    duplicates: fromParts.duplicates + generated.duplicates,
    recent: fromParts.recent + generated.recent,
    charged: 0,
    seconds,
    eventsPerSecond: seconds === 0 ? 0 : Math.round(sent / seconds),
    retries: checkpoint.retries,
    repaired: retried.size === 0 ? null : sumOutcomes(retried),
    verification,
    rehearsal,
  }
}

function finalBalance(parts: SendCounts, generated: SendCounts, { balance }: RehearsalReport): FinalBalance {
  const { records: givingEvents, rejected, collapsed, sent: fromRecords } = parts
  // Blank lines are counted while staging and are in no part.
  const blankLines = balance.blankLines
  const read = parts.read + blankLines
  const skipped = parts.skipped + blankLines
  const refused = parts.refused + generated.refused
  const sent = fromRecords + generated.sent
  const isWhole = read === balance.read && sent + refused === balance.toSend
  const isBalanced = isWhole && read === givingEvents + skipped + rejected + collapsed
  return {
    ...{ read, givingEvents, skipped, rejected, collapsed },
    ...{ sent, fromRecords, generated: generated.sent, refused, isBalanced },
  }
}

export function finalSections(report: FinalReport): readonly Section[] {
  const rehearsed = new Map(reportSections(report.rehearsal).map(section => [section.title, section]))
  const kept = ['Rejects and skips', 'Persons and groups', 'Not carried over', 'How it was made']
  return [
    outcome(report),
    balance(report),
    verified(report),
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
          rows: report.days.map(({ day, count }) => [day, number(count)]),
        },
      ],
    },
    ...kept.flatMap(title => rehearsed.get(title) ?? []),
  ]
}

function outcome(report: FinalReport): Section {
  const { balance: sums, verification, seconds, eventsPerSecond, retries, recent, duplicates, repaired } = report
  const job = report.serviceJobId === null ? '' : `, import job ${report.serviceJobId}`
  return {
    title: 'What happened',
    lines: [
      `${counted(sums.sent, 'event was', 'events were')} sent to project ${report.project} on ${report.target}${job}. Charged: 0.`,
      ...(repaired === null ? [] : [repairedWords(repaired)]),
      verification.ok ? 'What is stored is what was sent.' : 'What is stored is NOT what was sent; see below.',
      `Sending took ${duration(seconds)}, ${number(eventsPerSecond)} events a second, with ${counted(retries, 'retry', 'retries')}.`,
      `${counted(report.links, 'event links', 'events link')} two ids, ${counted(report.groups, 'tells', 'tell')} of groups.`,
      `${counted(recent, 'event was', 'events were')} counted as recent; the service said of ${number(duplicates)} that it had them already.`,
    ],
    tables: [],
  }
}

/** What came after the rest, as part of the same import. */
export function repairedWords({ read, sent, rejected }: RetrySums): string {
  const still = rejected === 0 ? '' : `; ${number(rejected)} of them ${rejected === 1 ? 'is' : 'are'} still rejected`
  return `${counted(read, 'rejected record was', 'rejected records were')} tried again, which sent ${counted(sent, 'event')} more${still}.`
}

function balance({ balance: sums, repaired }: FinalReport): Section {
  const rows: [what: string, count: number][] = [
    ['Records read', sums.read],
    ['Records giving events', sums.givingEvents],
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
      ['Rejected records tried again', repaired.read],
      ['Events sent from repaired records', repaired.sent],
      ['Repaired records still rejected', repaired.rejected],
    )
  return {
    title: 'Balance',
    lines: [
      sums.isBalanced
        ? 'Every record and every event is accounted for.'
        : 'The figures do NOT balance, so the import is not done. Please report this as a defect of Pennon.',
    ],
    tables: [
      {
        caption: 'What became of every record',
        columns: [{ title: 'What' }, { title: 'Count', isNumber: true }],
        rows: rows.map(([what, count]) => [what, number(count)]),
      },
    ],
  }
}

const checkWords: Record<Verification['checks'][number]['name'], string> = {
  day_event_counts: 'Events by day and name',
  id_buckets: 'Events by 256 parts of the distinct ids',
  random_events: 'Events at random, all fields',
  live_data: 'Live events of the same days are still there',
}
const stateWords = { equal: 'equal', differs: 'DIFFERS', not_checked: 'could not be asked' } as const

function verified({ verification: { checks, notes, expected_rows, stored_rows } }: FinalReport): Section {
  const compared: Table = {
    caption: 'Compared with what is stored',
    columns: [{ title: 'Check' }, { title: 'Result' }, { title: 'Compared', isNumber: true }, { title: 'Differences' }],
    rows: checks.map(each => [
      checkWords[each.name],
      stateWords[each.state],
      number(each.compared),
      each.differences.slice(0, 5).join('; '),
    ]),
  }
  const noted: Table = {
    caption: 'What the service noted',
    columns: [{ title: 'Reason' }, { title: 'Count', isNumber: true }, { title: 'What it means' }],
    rows: notes.map(note => [note.reason, number(note.count), noteSentence(note)]),
  }
  return {
    title: 'Verification',
    lines: [
      `${counted(expected_rows, 'unique event was', 'unique events were')} expected and ${counted(stored_rows, 'is', 'are')} stored.`,
    ],
    tables: [compared, noted].filter(({ rows }) => rows.length > 0),
  }
}

function sumOf(values: Iterable<number>): number {
  let sum = 0
  for (const value of values) sum += value
  return sum
}
