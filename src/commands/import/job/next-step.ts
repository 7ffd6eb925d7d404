// The next step of a job, as a command to type. Every command about a job prints it.

import { canAskQuestions } from '#commands/client/prompt.ts'
import { createApproval, listChangesSinceApproval, readApproval } from '#importer/job/approval.ts'
import type { Remedy } from '#importer/job/job-paused.ts'
import { readManifest } from '#importer/job/manifest.ts'
import { hashConversionSettings } from '#importer/job/plan.ts'
import { progressFile, progressSchema } from '#importer/job/progress.ts'
import { type JobEnding, readEnding, readServiceJob } from '#importer/send/service-job.ts'
import { findChangedSource } from '#importer/stages/raw-sources.ts'
import { readRehearsal, type SentSummary } from '#importer/stages/report/import-report.ts'
import { readSentSummary } from '#importer/verify/sent-summary.ts'
import { formatNextStep, type NextStep, quotePath } from '../messages/print.ts'
import type { ServiceAnswer } from '../service/query-service-job.ts'
import type { JobOfFolder } from '../service/target-api.ts'
import { isReportCurrent } from './job-stages.ts'
import type { Job } from './open-job.ts'
import { findRehearsalStop, type RehearsalStop } from './rehearsal-stop.ts'

/** The state of a job, as far as it decides the next step. */
export interface NextStepState {
  readonly isRehearsed: boolean
  readonly hasTarget: boolean
  /** Hash of the state that can be approved now; null if nothing can be approved. */
  readonly approvalSha256: string | null
  /** Whether a run would ask somebody to approve the job, so that no command needs the hash. */
  readonly isAttended: boolean
  /** What prevents an approval; null if nothing does. @param at the folder, quoted for a shell. */
  readonly stopAt: (at: string) => Pick<RehearsalStop, 'command' | 'remedy'> | null
  /** Descriptions of what changed since the approval; null without an approval. */
  readonly changed: readonly string[] | null
  readonly sent: Pick<SentSummary, 'isAll' | 'verification'> | null
  /** A file that changed since it was staged; null if none did, or once the files are no longer needed. */
  readonly changedFile: string | null
  /** How this folder's user has asked the service to end the job (publish or discard); null if not yet. */
  readonly ending: JobEnding | null
  /**
   * What to do before the next run, which would otherwise stop again; null if the last run did not stop, or if
   * something has changed since.
   */
  readonly remedy: Remedy | null
}

/** How many digits of an approval's hash are shown; at least as many must be given. */
export const hashDigits = 12

/** The line with the next step, after a command that did not ask the service. */
export async function describeNextStep(job: Job): Promise<string> {
  return formatNextStep(findNextStep(job.path, await readJobProgress(job), null))
}

/** @returns the state, and the facts that it follows from, for commands that show them. */
export async function readJobProgress({ folder, plan }: JobOfFolder) {
  const manifest = readManifest(folder)
  const report = readRehearsal(folder)
  const approval = readApproval(folder)
  const isRehearsed = manifest !== null && isReportCurrent(report, manifest, plan)
  const sent = readSentSummary(folder, report)
  const needsFiles = manifest?.mappingSha256 === hashConversionSettings(plan) && sent?.isAll !== true
  const changedFile = needsFiles ? ((await findChangedSource(manifest.raw))?.path ?? null) : null
  const ending = readEnding(folder)
  const stopAt = (at: string) => (report === null ? null : findRehearsalStop(report, plan, at))
  const isToApprove = isRehearsed && plan.target !== null && stopAt('') === null
  const progress = folder.readJson(progressFile, progressSchema)
  // A stop before the plan's last change does not count: with the changed or approved plan, the next run may succeed.
  const isStopped = progress?.state === 'stopped' && progress.updatedAt >= plan.createdAt
  const jobState = {
    ...{ isRehearsed, sent, stopAt, changedFile },
    hasTarget: plan.target !== null,
    approvalSha256: isToApprove ? createApproval({ plan, manifest }, '').sha256 : null,
    isAttended: canAskQuestions(),
    changed: approval && manifest && listChangesSinceApproval(approval, { plan, manifest }),
    remedy: isStopped && progress.updatedAt >= (approval?.approvedAt ?? '') ? (progress.wayOut ?? null) : null,
    ending: ending?.serviceJobId === readServiceJob(folder)?.id ? ending : null,
  } satisfies NextStepState
  return { ...jobState, manifest, report, progress, approvedAt: approval?.approvedAt ?? null }
}

/** @param path the path of the job's folder as the user wrote it. */
export function findNextStep(path: string, jobState: NextStepState, service: ServiceAnswer): NextStep {
  const at = quotePath(path)
  const next =
    findStepAfterSending(at, service, jobState.ending) ??
    (jobState.sent?.isAll === true ? findStepAfterSent(at, jobState.sent, service) : findStepBeforeSent(at, jobState))
  const { remedy } = jobState
  if (remedy === null || next.command !== `pennon import run ${at}`) return next
  const withFolderName = (text: string) => text.replaceAll('FOLDER', () => at)
  return { command: remedy.command === null ? null : withFolderName(remedy.command), why: withFolderName(remedy.why) }
}

/** If service and folder disagree, the service is right: the job may have been published or discarded from elsewhere. */
function findStepAfterSending(at: string, service: ServiceAnswer, ending: JobEnding | null): NextStep | null {
  const isKnown = service !== null && !('unknownBecause' in service)
  switch (isKnown ? service.state : ending && endStates[ending.how][ending.isDone ? 1 : 0]) {
    case 'publishing':
      return createStep(`publish ${at}`, 'wait until the service is done')
    case 'discarding':
      return createStep(`discard ${at}`, 'wait until the service is done')
    case 'published':
      return { ...createStep(`discard ${at}`, 'To undo it within 30 days'), isOnlyToUndo: true }
    case 'discarded':
      return createStep('plan ANOTHER-FOLDER', 'only to import again; the events of this import are removed')
    case 'failed':
      return createStep(`discard ${at}`, "it failed; see the service's output for the reason")
    default:
      return null
  }
}

function createStep(command: string, why: string): NextStep {
  return { command: `pennon import ${command}`, why }
}

/** The states of the service's job while it is published or discarded, and afterwards. */
export const endStates = { publish: ['publishing', 'published'], discard: ['discarding', 'discarded'] } as const

function findStepAfterSent(
  at: string,
  { verification }: Pick<SentSummary, 'verification'>,
  service: ServiceAnswer,
): NextStep {
  if (verification === null) return createStep(`run ${at}`, 'verify the stored events')
  if (!verification.ok)
    return createStep(
      `run ${at}`,
      `verify again; to see the differences: pennon import report ${at}; to undo the import: pennon import discard ${at}`,
    )
  const unlessDone =
    service !== null && 'unknownBecause' in service
      ? ', unless this was already done elsewhere: the service was not asked'
      : ''
  return createStep(`publish ${at}`, `make it visible; can be undone for 30 days${unlessDone}`)
}

function findStepBeforeSent(
  at: string,
  { isRehearsed, hasTarget, approvalSha256, isAttended, stopAt, changed, sent, changedFile }: NextStepState,
): NextStep {
  if (changedFile !== null)
    return {
      command: null,
      why: `restore ${changedFile} as it was staged, then pennon import run ${at}; to import its current content: pennon import plan ANOTHER-FOLDER`,
    }
  if (!isRehearsed) return createStep(`run ${at}`, 'rehearse it; nothing is sent')
  const stop = stopAt(at)
  if (stop !== null) return { command: stop.command, why: stop.remedy }
  if (!hasTarget) return createStep(`plan ${at} … --project-key phc_…`, 'the plan has no target project')
  if (changed?.length === 0) return createStep(`run ${at}`, sent === null ? 'sends it' : 'send the rest')
  const yes = isAttended ? '' : ` --yes ${approvalSha256?.slice(0, hashDigits)}`
  const why = changed && `${changed.join(' and ')} changed since the approval`
  return createStep(
    `run ${at}${yes}`,
    why ?? `approve and send it, after reading the report: pennon import report ${at}`,
  )
}
