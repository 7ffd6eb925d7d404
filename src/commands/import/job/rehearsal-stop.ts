// Finds what prevents the approval of a rehearsed job, and the remedy. Source: docs/wire/import.md §2.6.

import { formatCount, truncateList } from '#core/format-count.ts'
import type { ImportPlan } from '#importer/job/plan.ts'
import type { ReasonCount, Rehearsal } from '#importer/stages/report/import-report.ts'
import {
  describeDamage,
  describeLikelySource,
  describeRejectShare,
  formatSufficientRejectShare,
  isShareTooLarge,
} from '#importer/stages/report/rejects.ts'
import { explainAgeRefusal } from '#importer/stages/report/target-facts.ts'

export interface RehearsalStop {
  readonly code: 'unbalanced' | 'damaged_files' | 'no_records' | 'no_events' | 'drops_old_events' | 'too_many_rejects'
  /** What is wrong, in whole sentences. */
  readonly problem: string
  /** What to do, without a full stop. */
  readonly remedy: string
  /** The command that comes next. */
  readonly command: string
}

/** @param at the job's folder, quoted for a shell. @returns null if the job may be approved. */
export function findRehearsalStop(
  { balance, days, rejects: rejectReasons, skips, damagedFiles, looksLike, targetAnswer, heldByRejects }: Rehearsal,
  { limits }: Pick<ImportPlan, 'limits'>,
  at: string,
): RehearsalStop | null {
  const { read, rejected, toSend } = balance
  const plan = `pennon import plan ${at} …`
  if (damagedFiles.length > 0 && limits.allowsDamagedFiles !== true)
    return {
      code: 'damaged_files',
      problem: truncateList(damagedFiles.map(describeDamage), 3).join(' '),
      remedy: `Download ${damagedFiles.length === 1 ? 'it' : 'them'} again and plan again: ${plan}; or import the readable part: pennon import run ${at} --allow-damaged-files`,
      command: plan,
    }
  if (!balance.isBalanced)
    return {
      code: 'unbalanced',
      problem: 'The counts of the rehearsal do not add up, so it cannot be approved.',
      remedy: 'Please report this as a bug in Pennon',
      command: `pennon import report ${at}`,
    }
  const rejects = `pennon import rejects ${at} --group`
  const top = rejectReasons.slice(0, 1).map(describeReject).join('')
  const other = looksLike === null ? '' : ` ${describeLikelySource(looksLike)}`
  const mend =
    looksLike === null
      ? 'Fix the records, the mapping or the --source, and plan again'
      : `Plan it with --source ${looksLike}`
  if (toSend === 0)
    return {
      code: read === 0 ? 'no_records' : 'no_events',
      problem: `No event comes from the ${formatCount(read, 'record')} (${formatCount(rejected, 'is', 'are')} rejected), so there is nothing to send.${top}${skips.map(describeSkip).join('')}${other}`,
      remedy: rejected === 0 ? `Plan again with other files: ${plan}` : mend,
      command: rejected === 0 ? `pennon import report ${at}` : rejects,
    }
  const old = explainAgeRefusal(targetAnswer, { days, acceptsOld: limits.acceptsOld === true })
  if (old !== null)
    return {
      code: 'drops_old_events',
      problem: old,
      remedy: formatOldEventsRemedy(at),
      command: formatAcceptOldCommand(at),
    }
  const held = heldByRejects ?? rejected
  const all = read - rejected + held
  if (!isShareTooLarge(held, all, limits.maxRejectShare)) return null
  const allow = `pennon import run ${at} --max-reject-share ${formatSufficientRejectShare(held, all)}`
  return {
    code: 'too_many_rejects',
    problem: `${describeRejectShare(held / all, limits.maxRejectShare, heldByRejects)}${top}${other}`,
    remedy: `${mend}, or allow more: ${allow}`,
    command: rejects,
  }
}

/** What to do about a project that refuses old events, without a full stop. */
export function formatOldEventsRemedy(at: string): string {
  return `To import them anyway, plan again: ${formatAcceptOldCommand(at)}; or set drop_events_older_than_seconds of the project to 0 and run: pennon import run ${at} --rehearse-again`
}

export function formatAcceptOldCommand(at: string): string {
  return `pennon import plan ${at} … --accept-old`
}

function describeReject({ reason, count, fix }: ReasonCount): string {
  return ` ${formatCount(count, 'is', 'are')} rejected as ${reason}: ${fix}`
}

function describeSkip({ reason, count, fix }: ReasonCount): string {
  return ` ${formatCount(count, 'is', 'are')} skipped as ${reason}: ${fix}.`
}

/** Formats problem and remedy together, for output that does not end with the next command. */
export function formatRehearsalStop({ code, problem, remedy, command }: RehearsalStop): string {
  const isToSee = code === 'unbalanced' || code === 'no_events' || code === 'too_many_rejects'
  return `${problem} ${isToSee ? `See what is wrong: ${command}. ` : ''}${remedy}`
}
