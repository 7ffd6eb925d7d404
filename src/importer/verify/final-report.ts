// The final report of an import: which records were read, sent, stored and left out. `final-pages.ts` renders it. The job is
// done only if the figures balance. Source: docs/wire/import.md §2.9.

import {
  type DayCount,
  dayCountsSchema,
  type EventCount,
  eventCountsSchema,
  type RehearsalReport,
  rehearsalReportSchema,
} from '#importer/stages/report/rehearsal-report.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { allowNull, Type } from '../records/file-schema.ts'
import { type Checkpoint, type SendCounts, sumCounts } from '../send/checkpoint.ts'
import { isRejectKey, type RetryOutcomes, type RetrySums, sumOutcomes } from '../send/retry-outcomes.ts'
import type { ExpectedEvents } from './expected-events.ts'
import { verificationSchema } from './verification-file.ts'
import type { Verification } from './verify-stage.ts'

export const finalReportNames = {
  json: 'final/report.json',
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
  /** False after a canary, while the rest is still to be sent. */
  readonly isAll: boolean
  readonly balance: FinalBalance
  /** By the name that was sent; only the first ones if there are very many. */
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
  /** Records repaired and sent later, which the balance counts by their new outcome; null if there are none. */
  readonly repaired: RetrySums | null
  readonly verification: Verification
  /** Repaired records were sent after the stored events were last compared. */
  readonly isVerificationOld?: boolean
  /** The findings before sending: rejects and skips by reason, ids, dropped fields, a description of the mapping. */
  readonly rehearsal: RehearsalReport
}

/**
 * Balanced means, and only once the whole import is sent: `read = givingEvents + skipped + rejected + collapsed`,
 * `sent = fromRecords + generated`, and before any repair `sent + refused` equals the rehearsal's number of events to send.
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
  /** Events refused by the service or too large for it. */
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
  serviceJobId: allowNull(Type.String()),
  source: Type.String(),
  target: Type.String(),
  project: Type.String(),
  hashes: Type.Object({ mapping: Type.String(), approval: Type.String() }),
  isAll: Type.Boolean(),
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
  repaired: allowNull(Type.Object({ read: count, sent: count, refused: count, rejected: count, skipped: count })),
  verification: verificationSchema,
  isVerificationOld: Type.Optional(Type.Boolean()),
  rehearsal: rehearsalReportSchema,
})

/** @returns null until a final report has been written. */
export function readFinalReport(folder: JobFolder): FinalReport | null {
  return folder.readJson(finalReportNames.json, finalReportSchema)
}

export function createFinalReport({
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
    isAll: checkpoint.phase === 'sent',
    balance: countRepaired(computeFinalBalance(fromParts, generated, rehearsal), retried),
    events: [...expected.names]
      .map(([event, span]) => ({ event, sources: sources.get(event) ?? [], ...span }))
      .toSorted((a, b) => b.count - a.count || (a.event < b.event ? -1 : 1)),
    days: [...expected.counts]
      .map(([day, events]) => ({
        day,
        count: addUp(events.values()) + addUp(expected.otherCounts.get(day) ?? []),
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

function computeFinalBalance(parts: SendCounts, generated: SendCounts, { balance }: RehearsalReport): FinalBalance {
  const { records: givingEvents, rejected, collapsed, sent: fromRecords } = parts
  // Blank lines are counted in staging, and are in no part.
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

/**
 * A reject that was repaired no longer counts as rejected. A whole record, not a reject line, may stand for any record, so
 * only its events are counted.
 */
function countRepaired(balance: FinalBalance, retried: RetryOutcomes): FinalBalance {
  const moved = { sent: 0, skipped: 0, rejected: 0 }
  for (const [key, { kind }] of retried) if (isRejectKey(key)) moved[kind]++
  const { sent } = sumOutcomes(retried)
  return {
    ...balance,
    givingEvents: balance.givingEvents + moved.sent,
    skipped: balance.skipped + moved.skipped,
    rejected: balance.rejected - moved.sent - moved.skipped,
    fromRecords: balance.fromRecords + sent,
    sent: balance.sent + sent,
  }
}

/** Updates the report after records were repaired. @returns null if there is no report yet. */
export function updateRepairedReport(
  folder: JobFolder,
  checkpoint: Checkpoint,
  retried: RetryOutcomes,
): FinalReport | null {
  const report = readFinalReport(folder)
  if (report === null) return null
  const fromParts = sumCounts(checkpoint.parts.map(({ counts }) => counts))
  const sent = computeFinalBalance(fromParts, checkpoint.identity.progress.counts, report.rehearsal)
  return {
    ...report,
    balance: countRepaired(sent, retried),
    repaired: retried.size === 0 ? null : sumOutcomes(retried),
    isVerificationOld: true,
  }
}

/** Whether all records read so far are accounted for, even if the rest is still to be sent. */
export function isBalancedSoFar({ balance, rehearsal }: FinalReport): boolean {
  const { read, givingEvents, skipped, rejected, collapsed, sent, refused } = balance
  const isWithin = read <= rehearsal.balance.read && sent + refused <= rehearsal.balance.toSend
  return isWithin && read === givingEvents + skipped + rejected + collapsed
}

function addUp(values: Iterable<number>): number {
  let sum = 0
  for (const value of values) sum += value
  return sum
}
