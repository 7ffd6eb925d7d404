// The question of `pennon import run` between the rehearsal and sending: a person signs off what the rehearsal found. The
// approval holds hashes of what they saw, so that nothing else is sent. Source: docs/wire/import.md §2.1 (stage 5), §2.11.

import { canAskQuestions } from '#commands/client/prompt.ts'
import { refuse } from '#commands/refuse.ts'
import { formatCount, truncateList } from '#core/format-count.ts'
import { readFetchedParts } from '#importer/fetch/fetch-state.ts'
import { createApproval, listChangesSinceApproval, readApproval, storeApproval } from '#importer/job/approval.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { formatDuration } from '#importer/stages/report/format-figures.ts'
import { type Rehearsal, reportNames } from '#importer/stages/report/import-report.ts'
import { formatChoices, listPlanChoices } from '#importer/stages/report/plan-choices.ts'
import { describeJob } from '#importer/stages/report/report-sections.ts'
import { requireManifest } from '../job/job-stages.ts'
import { findOverlapProblem, type OverlapProblem } from '../job/live-events-before-send.ts'
import { findNextStep, hashDigits, readJobProgress } from '../job/next-step.ts'
import type { Job } from '../job/open-job.ts'
import { findRehearsalStop, formatRehearsalStop } from '../job/rehearsal-stop.ts'
import { describePause, runUntilInterrupted } from '../messages/interruption.ts'
import { confirmByTyping, confirmTarget, formatNextStep, printJson, printLines } from '../messages/print.ts'
import { addKnownProjectToPlan } from '../service/known-project.ts'
import { createServiceApi, requireTrustedTarget } from '../service/target-api.ts'

interface ApprovalOptions {
  readonly yes?: string
  readonly json?: boolean
  readonly overlapOk?: boolean
}

/**
 * Prints what the rehearsal found and asks to approve it, unless it is approved already.
 * @param yes hash of the state to approve without a question, or its first digits.
 * @param options `overlapOk`: whether it may be sent although the project has live events on the same days. Without it, a
 *   user at the terminal is asked about such days first, since sending would be refused after the approval.
 * @returns the options for sending if the job is approved as it is now; null if not.
 * @throws JobStopped if the job may not be approved, or if it has changed since its approval and there is no terminal to
 *   ask at.
 */
export async function approveJob(
  rehearsed: Job,
  { yes, json = false, overlapOk = false }: ApprovalOptions,
): Promise<{ readonly overlapOk: boolean } | null> {
  const { folder, path, at } = rehearsed
  const earlier = readApproval(folder)
  const manifest = requireManifest(folder)
  const changes = earlier === null ? [] : listChangesSinceApproval(earlier, { plan: rehearsed.plan, manifest })
  const isApproved = earlier !== null && changes.length === 0
  const job = isApproved ? rehearsed : { ...rehearsed, plan: await addKnownProjectToPlan(folder, rehearsed.plan) }
  const approval = createApproval({ plan: job.plan, manifest }, new Date().toISOString())
  const digits = approval.sha256.slice(0, hashDigits)
  if (yes !== undefined && !approval.sha256.startsWith(yes))
    refuse(
      `--yes ${yes} is for other files, options, limits or another target than the import has now, which is ${digits}. Read the report (pennon import report ${at}), then approve it: pennon import run ${at} --yes ${digits}`,
    )
  if (isApproved) return { overlapOk }
  const jobState = await readJobProgress(job)
  if (earlier !== null && jobState.ending !== null)
    refuse(
      `it was approved at ${earlier.approvedAt} and has been ${jobState.ending.how}ed since, so there is nothing to approve. To see its state: pennon import status ${at}`,
    )
  const report = jobState.report!
  const isAllowed = jobState.approvalSha256 !== null
  const isAsked = isAllowed && yes === undefined && !json && canAskQuestions()
  const changed = changes.length === 0 ? null : `${changes.join(' and ')} changed since the approval.`
  const next = formatNextStep(findNextStep(path, jobState, null))
  const isLast = !isAsked && !(isAllowed && yes !== undefined)
  if (json) {
    if (isLast) printJson({ ...report, sent: null, approvalSha256: jobState.approvalSha256 })
  } else
    printLines([
      ...(isAsked ? describeJob(report) : []),
      ...describeRehearsal(job, report),
      ...(changed === null || isLast ? [] : [changed]),
      ...(isLast ? [next] : []),
    ])
  if (isLast) {
    const stop = findRehearsalStop(report, job.plan, at)
    if (stop !== null) throw new JobStopped(formatRehearsalStop(stop))
    if (changed !== null) throw new JobStopped(`${changed} Read the report and approve it again. ${next}`)
    if (yes !== undefined) refuse(`the plan has no target. ${next}`)
    return null
  }
  const target = job.plan.target!
  let isOverlapAccepted = overlapOk
  if (isAsked) {
    const overlap = overlapOk ? null : await findOverlap(job, report)
    if (overlap !== null && !(await confirmOverlap(overlap, next))) return null
    isOverlapAccepted ||= overlap !== null
    const name = target.projectName ?? target.address
    if (!(await confirmTarget(name, 'approve and send the import', ['Nothing was sent.', next]))) return null
  }
  storeApproval(folder, { ...approval, approvedAt: new Date().toISOString() })
  if (!json) printLines([`Approved as ${digits}.`])
  return { overlapOk: isOverlapAccepted }
}

/** @throws JobStopped if sending would be refused anyway, for example without a personal key. */
function findOverlap(job: Job, { range }: Rehearsal): Promise<OverlapProblem | null> {
  const target = requireTrustedTarget(job)
  return runUntilInterrupted(
    () => describePause(job),
    signal => findOverlapProblem(job, createServiceApi(target, signal), range),
  )
}

function confirmOverlap({ message, advice }: OverlapProblem, next: string): Promise<boolean> {
  printLines([`WARNING: ${message}`])
  const left = ['Nothing was sent.', advice.startsWith('Next: ') ? advice : next]
  return confirmByTyping('yes', 'Type yes to send it anyway (--overlap-ok)', left)
}

/** Why more or fewer events are sent than records produce events; empty if the two counts are equal. */
function explainEventCount({ givingEvents, fromRecords, generated, toSend }: Rehearsal['balance']): string {
  if (toSend === givingEvents) return ''
  const several = fromRecords > givingEvents ? ', some of which produce several' : ''
  const others = `, and ${generated.toLocaleString('en')} generated to link ids to persons or to describe groups`
  return ` (${fromRecords.toLocaleString('en')} from records${several}${generated === 0 ? '' : others})`
}

/** Describes what the rehearsal found. It is printed in scripts, too, since people read a script's output later. */
function describeRehearsal({ folder, plan, at }: Job, report: Rehearsal): readonly string[] {
  const { balance, rejects, warnings, seconds, predicted, targetAnswer } = report
  const choices = formatChoices(listPlanChoices(plan, targetAnswer))
  const ofDownload = readFetchedParts(folder.path)?.warnings ?? []
  const listLines = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : [title, ...lines.map(line => `  ${line}`)]
  return [
    `${formatCount(balance.read, 'record')}: ${formatCount(balance.givingEvents, 'produces', 'produce')} events, ${formatCount(balance.skipped, 'is', 'are')} skipped, ${balance.rejected.toLocaleString('en')} rejected, ${balance.collapsed.toLocaleString('en')} collapsed (repeated records).`,
    `${formatCount(predicted.events, 'event')} would be sent and 0 charged${explainEventCount(balance)}. The rehearsal sent nothing and took ${formatDuration(seconds)}.`,
    ...listLines(
      `Rejected records (to see them: pennon import rejects ${at}):`,
      rejects.map(({ reason, count, fix }) => `${count.toLocaleString('en')} ${reason}: ${fix}`),
    ),
    ...listLines('Options of the plan:', choices),
    ...listLines('During the download:', truncateList(ofDownload)),
    ...listLines(
      `${formatCount(warnings.length, 'warning')}:`,
      warnings.map(({ text }) => text),
    ),
    `Report: ${folder.file(reportNames.html)}`,
  ]
}
