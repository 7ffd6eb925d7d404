// The part of the report on the sent events, derived from the job's files, which may change while another process sends.
// Source: docs/wire/import.md §2.9.

import {
  type ImportReport,
  type PersonsCheck,
  type Rehearsal,
  readRehearsal,
  type SentBalance,
  type SentSummary,
} from '#importer/stages/report/import-report.ts'
import { listPlanChoices } from '#importer/stages/report/plan-choices.ts'
import { writeReport } from '#importer/stages/report/report-html.ts'
import { readSamples } from '#importer/stages/report/samples.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { createStateAccessors } from '../job/job-state.ts'
import { hashConversionSettings, type ImportPlan } from '../job/plan.ts'
import { type Checkpoint, readCheckpoint, sumProgress, sumSendCounts } from '../send/checkpoint.ts'
import { isRejectKey, type RetryOutcomes, readRetryOutcomes, sumRetryOutcomes } from '../send/retry-outcomes.ts'
import { readEnding, readServiceJob } from '../send/service-job.ts'
import { readVerification } from './verify-stage.ts'

export const [readPersonsCheck, storePersonsCheck] = createStateAccessors<PersonsCheck>('persons')

/** @param rehearsal the job's rehearsal, if it has been read already. @returns null before sending starts. */
export function readSentSummary(folder: JobFolder, rehearsal = readRehearsal(folder)): SentSummary | null {
  const checkpoint = readCheckpoint(folder)
  if (checkpoint === null) return null
  const retried = readRetryOutcomes(folder)
  const { duplicates, recent } = sumSendCounts(checkpoint.parts.map(each => each.counts))
  const serviceJobId = readServiceJob(folder)?.id ?? null
  const ending = readEnding(folder)
  return {
    isAll: checkpoint.isSent,
    serviceJobId,
    balance: applyRetries(computeBalance(checkpoint, rehearsal), retried),
    repaired: retried.size === 0 ? null : sumRetryOutcomes(retried),
    duplicates,
    recent,
    seconds: checkpoint.spentMs / 1_000,
    retries: checkpoint.retries,
    verification: readVerification(folder),
    persons: readPersonsCheck(folder),
    ending: ending?.serviceJobId === serviceJobId ? ending : null,
  }
}

function computeBalance({ parts }: Checkpoint, rehearsal: Rehearsal | null): SentBalance {
  const { records, generated } = sumProgress(parts)
  const { records: givingEvents, rejected, collapsed, sent: fromRecords, ...sums } = records
  // Add the blank lines, which staging counts and no part contains.
  const blankLines = rehearsal?.balance.blankLines ?? 0
  const read = sums.read + blankLines
  const skipped = sums.skipped + blankLines
  const refused = sums.refused + generated.refused
  const sent = fromRecords + generated.sent
  const isWhole = read === rehearsal?.balance.read && sent + refused === rehearsal.balance.toSend
  const isBalanced = isWhole && read === givingEvents + skipped + rejected + collapsed
  return {
    ...{ read, givingEvents, skipped, rejected, collapsed },
    ...{ fromRecords, generated: generated.sent, sent, refused, isBalanced },
  }
}

/**
 * A reject that was repaired no longer counts as rejected. A repaired record that is not a reject line may stand for any
 * record, so only its events are counted.
 */
function applyRetries(balance: SentBalance, retried: RetryOutcomes): SentBalance {
  const moved = { sent: 0, skipped: 0, rejected: 0 }
  for (const [key, { kind }] of retried) if (isRejectKey(key)) moved[kind]++
  const { sent } = sumRetryOutcomes(retried)
  return {
    ...balance,
    givingEvents: balance.givingEvents + moved.sent,
    skipped: balance.skipped + moved.skipped,
    rejected: balance.rejected - moved.sent - moved.skipped,
    fromRecords: balance.fromRecords + sent,
    sent: balance.sent + sent,
  }
}

/**
 * Writes the report again if it is outdated, since more was sent or an option changed that does not affect the rehearsal's
 * results.
 * @throws JobStopped if the samples, which are part of the report's page, are missing or damaged.
 */
export function updateReport(folder: JobFolder, plan: ImportPlan): ImportReport | null {
  const stored = readRehearsal(folder)
  if (stored === null) return null
  const sent = readSentSummary(folder, stored)
  // If the mapping has changed, the report is not written, since the rehearsal will be repeated anyway.
  if (stored.hashes.mapping !== hashConversionSettings(plan)) return { ...stored, sent }
  const { maxRejectShare } = plan.limits
  const report = { ...stored, maxRejectShare, choices: listPlanChoices(plan, stored.targetAnswer), sent }
  if (JSON.stringify(report) !== JSON.stringify(stored)) writeReport(folder, report, readSamples(folder))
  return report
}
