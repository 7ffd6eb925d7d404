// Sends an approved job for `pennon import run`, verifies the stored events, and adds both to the report.
// Source: docs/wire/import.md §2.1 (stages 6 and 7), §2.11 (guards).

import type { JsonObject } from '#core/json.ts'
import { wallClock } from '#importer/fetch/waiting.ts'
import { readApproval } from '#importer/job/approval.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { hashConversionSettings } from '#importer/job/plan.ts'
import { type Checkpoint, readCheckpoint } from '#importer/send/checkpoint.ts'
import { openRetries } from '#importer/send/retried-records.ts'
import { collectRetryOutcomes, readRetryOutcomes, storeRetryOutcomes } from '#importer/send/retry-outcomes.ts'
import { runSendStage, TooManyRefused } from '#importer/send/send-stage.ts'
import { ServiceRefusal } from '#importer/send/service-api.ts'
import {
  computeProgressFigures,
  ensureServiceJob,
  formatJobName,
  type OpenJobState,
  ProgressReporter,
  readServiceJob,
  reportJobState,
} from '#importer/send/service-job.ts'
import { openStagedJob } from '#importer/stages/part-lines.ts'
import {
  type ImportReport,
  readRehearsal,
  reportNames,
  type SentSummary,
} from '#importer/stages/report/import-report.ts'
import { formatNote, rowsErased } from '#importer/stages/report/note-messages.ts'
import { formatSufficientRejectShare } from '#importer/stages/report/rejects.ts'
import { describeSentEvents } from '#importer/stages/report/report-sections.ts'
import { updateReport } from '#importer/verify/sent-summary.ts'
import { runVerifyStage, storeVerification } from '#importer/verify/verify-stage.ts'
import { requireManifest, type StageRun } from '../job/job-stages.ts'
import { countLiveEventsBeforeSend } from '../job/live-events-before-send.ts'
import { describeNextStep } from '../job/next-step.ts'
import type { Job } from '../job/open-job.ts'
import { formatAcceptOldCommand, formatOldEventsRemedy } from '../job/rehearsal-stop.ts'
import { isInterruption } from '../messages/interruption.ts'
import { printJson, printLines } from '../messages/print.ts'
import { findDayGaps } from '../service/covered-days.ts'
import { checkTargetIsOwnProject } from '../service/known-project.ts'
import {
  checkJobAcceptsEvents,
  createServiceApi,
  explainConflict,
  type JobOfFolder,
  requireTrustedTarget,
} from '../service/target-api.ts'

export interface SendJobOptions {
  /** Whether to send although the project has live events on the same days. */
  readonly overlapOk: boolean
  /** Events per second at first. */
  readonly rate?: number
}

/** Sends a job whose current state is approved. @throws JobPaused, JobStopped */
export async function sendJob(run: StageRun, options: SendJobOptions): Promise<ImportReport> {
  const { folder, plan, source, progress, signal, at } = run
  const approval = readApproval(folder)!
  const manifest = requireManifest(folder)
  const target = requireTrustedTarget(run)
  const api = createServiceApi(target, signal, progress)
  const known = readServiceJob(folder)
  if (known === null) await checkTargetIsOwnProject(at, target, api)
  else await checkJobAcceptsEvents(at, known.id, api)
  const rehearsal = readRehearsal(folder)!
  const liveBefore = await countLiveEventsBeforeSend(run, api, rehearsal.range, options.overlapOk)
  const serviceJob = await ensureServiceJob(
    folder,
    api,
    { target: target.address, project: target.projectId ?? '@current' },
    {
      name: formatJobName(plan.source, rehearsal.range),
      source: plan.source,
      ...(plan.limits.joining !== undefined && { options: plan.limits.joining }),
      ...(plan.limits.acceptsOld === true && { accept_old: true }),
      plan: {
        job: plan.jobId,
        range: rehearsal.range === null ? null : { ...rehearsal.range },
        gaps: findDayGaps(rehearsal.days.map(({ day }) => day)),
        timezone: manifest.sourceTimezone,
        mapping_sha256: hashConversionSettings(plan),
        approval_sha256: approval.sha256,
        tool_version: plan.toolVersion,
      },
    },
  ).catch((error: unknown) => {
    throw addOldEventsRemedy(error, at)
  })
  using job = openStagedJob(folder, manifest)
  let sentState: OpenJobState = 'sending'
  try {
    storeVerification(folder, null)
    const repaired = readRetryOutcomes(folder)
    const reportState = (state: OpenJobState, checkpoint: Checkpoint | null, more: JsonObject = {}) => {
      sentState = state
      return reportJobState(api, serviceJob.id, state, {
        ...computeProgressFigures(checkpoint, manifest, repaired),
        ...more,
      })
    }
    await reportState('sending', readCheckpoint(folder))
    const sending = new ProgressReporter(() => reportState('sending', readCheckpoint(folder)), wallClock.nowMs)
    const checkpoint = await runSendStage({
      onStep: step => step === 'committed' && sending.moved(),
      ...{ folder, job, progress, signal, clock: wallClock, source: plan.source },
      identity: {
        jobId: plan.jobId,
        serviceJobId: serviceJob.id,
        target: target.address,
        project: serviceJob.project,
        mappingSha256: hashConversionSettings(plan),
      },
      projectKey: target.projectKey,
      secretJobId: serviceJob.secretId,
      maxRejectShare: plan.limits.maxRejectShare,
      personOf: job.personOf,
      ...(options.rate !== undefined && { rate: options.rate }),
    })
    await sending.ended()
    await reportState('verifying', checkpoint)
    const retried = openRetries({ folder, plan, manifest, source })
    await runVerifyStage({
      ...{ folder, job, checkpoint, retried, api, progress, signal, liveBefore },
      source: plan.source,
      personOf: job.personOf,
    })
    if (retried.length > 0) storeRetryOutcomes(folder, await collectRetryOutcomes(retried))
    const report = updateReport(folder, plan)!
    const { verification, balance } = report.sent!
    if (verification?.ok === true && balance.isBalanced)
      await reportState('pending', checkpoint, { verified_rows: verification.stored_rows })
    else await reportState('verifying', checkpoint, { paused: true })
    return report
  } catch (error) {
    if (isInterruption(error, signal) || error instanceof JobStopped) await reportPause(run, serviceJob.id, sentState)
    if (error instanceof TooManyRefused) throw toRefusalStop(error, at)
    throw await explainConflict(error, at, serviceJob.id, api)
  }
}

/** How long the last report to the service may delay the exit after Ctrl-C. */
const lastReportMs = 2_000

/**
 * Reports that nothing is sent for now, and the latest figures, since the service gets them only every few seconds. A
 * failure is ignored: the next run reports the figures again.
 */
export async function reportPause({ folder, plan }: JobOfFolder, id: string, state: OpenJobState): Promise<void> {
  const api = createServiceApi(plan.target!, AbortSignal.timeout(lastReportMs), { waiting: () => undefined })
  const figures = computeProgressFigures(readCheckpoint(folder), requireManifest(folder), readRetryOutcomes(folder))
  await reportJobState(api, id, state, { ...figures, paused: true }).catch(() => undefined)
}

/** Stops the job with remedies when the service refused too many events. A raised limit needs a new approval. */
function toRefusalStop({ message, refused, events }: TooManyRefused, at: string): JobStopped {
  const share = formatSufficientRejectShare(refused, events)
  const formatAdvice = (folder: string) =>
    `fix the cause, then pennon import run ${folder}; or allow more: pennon import run ${folder} --max-reject-share ${share}, and approve that; or undo it: pennon import discard ${folder}`
  return new JobStopped(`${message} Next: ${formatAdvice(at)}`, { command: null, why: formatAdvice('FOLDER') })
}

/**
 * Adds the option to use: the service's message only names a field of its API, which the user sets by an option of the
 * plan.
 */
function addOldEventsRemedy(error: unknown, at: string): unknown {
  if (!(error instanceof ServiceRefusal) || error.code !== 'project_drops_old_events') return error
  return new JobStopped(`${error.message} Nothing was sent. ${formatOldEventsRemedy(at)}`, {
    command: formatAcceptOldCommand('FOLDER'),
    why: 'the project drops old events, and the plan does not accept them',
  })
}

/** @throws JobStopped if the stored events differ from the sent events, or the figures do not balance. */
export async function printSentReport(
  job: Job,
  report: ImportReport,
  { json = false, isFollowed = false }: { readonly json?: boolean; readonly isFollowed?: boolean },
): Promise<void> {
  const { at } = job
  const sent = report.sent!
  const problem = findProblem(sent, at)
  if (json) printJson(report)
  else
    printLines([
      ...describeSentEvents(report, sent),
      'Nothing is visible until it is published.',
      ...(sent.balance.refused === 0 ? [] : [`The refused events: pennon import rejects ${at} --group`]),
      `Report: ${job.folder.file(reportNames.html)}`,
      ...(problem === null && !isFollowed ? [await describeNextStep(job)] : []),
    ])
  if (problem !== null) throw new JobStopped(problem)
}

function findProblem({ verification, balance }: SentSummary, at: string): string | null {
  if (verification?.ok !== true) {
    const { notes = [], checks = [] } = verification ?? {}
    const erased = notes.find(({ reason }) => reason === rowsErased)
    const reason = erased === undefined ? '' : ` ${formatNote(erased)}`
    const wayOn = erased === undefined ? '' : `pennon import publish ${at} --unverified publishes the rest, `
    return `the stored events differ from the sent ones: ${checks.flatMap(({ differences }) => differences)[0]}.${reason} Nothing is published. Next: ${wayOn}pennon import run ${at} verifies again, pennon import report ${at} shows all differences, pennon import discard ${at} undoes the import`
  }
  return balance.isBalanced
    ? null
    : `the counts do not add up, so the import is not complete. Next: pennon import report ${at} shows them, pennon import discard ${at} undoes the import`
}
