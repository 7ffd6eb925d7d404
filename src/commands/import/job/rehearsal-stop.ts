// Reasons not to approve a rehearsed job as it is, and their remedies. Source: docs/wire/import.md §2.6.

import { formatCount } from '#core/format-count.ts'
import type { ImportPlan } from '#importer/job/plan.ts'
import type { ReasonCount, Rehearsal } from '#importer/stages/report/import-report.ts'
import {
  describeDamage,
  describeLikelySource,
  describeRejectShare,
  formatSufficientShare,
  isShareTooLarge,
} from '#importer/stages/report/rejects.ts'
import { explainAgeRefusal } from '#importer/stages/report/target-facts.ts'

export interface RehearsalStop {
  readonly code: 'damaged_files' | 'no_records' | 'no_events' | 'drops_old_events' | 'too_many_rejects'
  /** What is wrong, in whole sentences. */
  readonly problem: string
  /** What to do, without a full stop. */
  readonly wayOut: string
  /** The command that comes next. */
  readonly command: string
}

const filesNamed = 3

/**
 * @param at the folder of the job as a shell takes it.
 * @returns null for a job that may be approved.
 */
export function findRehearsalStop(
  { balance, days, skips, damagedFiles, looksLike, targetAnswer, heldByRejects }: Rehearsal,
  { source, config, limits }: Pick<ImportPlan, 'source' | 'config' | 'limits'>,
  at: string,
): RehearsalStop | null {
  const { read, rejected, toSend } = balance
  const plan = `pennon import plan ${at} …`
  if (damagedFiles.length > 0 && limits.allowsDamagedFiles !== true) {
    const more = damagedFiles.length - filesNamed
    const named = damagedFiles.slice(0, filesNamed).map(describeDamage).join(' ')
    return {
      code: 'damaged_files',
      problem:
        more > 0 ? `${named} ${more.toLocaleString('en')} more files are damaged: pennon import report ${at}.` : named,
      wayOut: `Download ${damagedFiles.length === 1 ? 'it' : 'them'} again and plan again: ${plan}; or import the readable part: pennon import run ${at} --allow-damaged-files`,
      command: plan,
    }
  }
  const rejects = `pennon import rejects ${at} --group`
  const other = looksLike === null ? '' : ` ${describeLikelySource(looksLike)}`
  const mend =
    looksLike !== null
      ? `Plan it with --source ${looksLike}`
      : `Fix the records${mappingHint(source, config)} and plan again`
  if (read === 0)
    return {
      code: 'no_records',
      problem: 'The files contain no records, so there is nothing to send.',
      wayOut: `Plan again with files that contain records: ${plan}`,
      command: plan,
    }
  if (toSend === 0) {
    const isUnsettled = source === 'ga4' && rejected === 0 && skips.some(({ reason }) => reason === 'filtered')
    return {
      code: 'no_events',
      problem: `${read === 1 ? 'The only record produces no event' : `None of the ${formatCount(read, 'record')} produces an event`} (${formatCount(rejected, 'is', 'are')} rejected), so there is nothing to send.${skips.map(skipText).join('')}${other}`,
      wayOut: isUnsettled ? `${settledLater}: ${plan}` : mend,
      command: rejected === 0 ? `pennon import report ${at}` : rejects,
    }
  }
  const old = explainAgeRefusal(targetAnswer, { days, acceptsOld: limits.acceptsOld === true })
  if (old !== null)
    return {
      code: 'drops_old_events',
      problem: old,
      wayOut: formatOldEventsRemedy(at),
      command: formatAcceptingPlan(at),
    }
  const held = heldByRejects ?? rejected
  const all = read - rejected + held
  if (!isShareTooLarge(held, all, limits.maxRejectShare)) return null
  const allow = `pennon import run ${at} --max-reject-share ${formatSufficientShare(held, all)}`
  return {
    code: 'too_many_rejects',
    problem: `${describeRejectShare(held / all, limits.maxRejectShare, heldByRejects)}${other}`,
    wayOut: `${mend}, or allow more: ${allow}`,
    command: rejects,
  }
}

/** What to do about a project that refuses old events, without a full stop. */
export function formatOldEventsRemedy(at: string): string {
  return `To import them anyway, plan again: ${formatAcceptingPlan(at)}; or set drop_events_older_than_seconds of the project to 0 and run: pennon import run ${at} --rehearse-again`
}

export function formatAcceptingPlan(at: string): string {
  return `pennon import plan ${at} … --accept-old`
}

/** Advice on rows of the last days, which are no mistake in the export. */
const settledLater =
  'Plan again when the days are older; or, to import them as they are, plan now with --config FILE, where FILE contains {"settle_days":0}'

function skipText({ reason, count, fix }: ReasonCount): string {
  return ` ${formatCount(count, 'is', 'are')} skipped as ${reason}: ${fix}.`
}

/** Formats problem and remedy together, for output that does not end with the next command. */
export function formatStop({ code, problem, wayOut, command }: RehearsalStop): string {
  const isToSee = code === 'no_events' || code === 'too_many_rejects'
  return `${problem} ${isToSee ? `See what is wrong: ${command}. ` : ''}${wayOut}`
}

/** Only some sources have a mapping that could be wrong; for the others it may be the source itself. */
function mappingHint(source: string, config: ImportPlan['config']): string {
  return source === 'generic' || config.mapping !== undefined ? ' or the mapping' : ' or the --source'
}
