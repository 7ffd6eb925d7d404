// `pennon import retry FOLDER --rejects FILE`: sends repaired records as part of the same job.
// Source: docs/wire/import.md §2.6.

import { existsSync } from 'node:fs'
import { formatCount } from '#core/format-count.ts'
import type { JsonObject } from '#core/json.ts'
import { wallClock } from '#importer/fetch/waiting.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { hashConversionSettings } from '#importer/job/plan.ts'
import { formatTime, utcDay } from '#importer/records/source-time.ts'
import { findRetryProblem } from '#importer/send/check-retry.ts'
import { readCheckpoint, sumSendCounts } from '#importer/send/checkpoint.ts'
import { addRetry, openRetries, type RetryContext } from '#importer/send/retried-records.ts'
import { collectRetryOutcomes, readRetryOutcomes, storeRetryOutcomes } from '#importer/send/retry-outcomes.ts'
import { runSendStage } from '#importer/send/send-stage.ts'
import type { ServiceApi } from '#importer/send/service-api.ts'
import { computeProgressFigures, readServiceJob, reportJobState } from '#importer/send/service-job.ts'
import { createRejectLine } from '#importer/stages/reject-files.ts'
import { readRehearsal } from '#importer/stages/report/import-report.ts'
import { updateReport } from '#importer/verify/sent-summary.ts'
import { storeVerification } from '#importer/verify/verify-stage.ts'
import { refuse } from '../refuse.ts'
import { requireManifest } from './job/job-stages.ts'
import { type Job, runExclusivelyOnJob } from './job/open-job.ts'
import { isInterruption, runUntilInterrupted } from './messages/interruption.ts'
import { formatNextStep, printLine, quotePath } from './messages/print.ts'
import { createRunProgress } from './run/run-progress.ts'
import { reportPause } from './run/send-job.ts'
import { findDayGaps } from './service/covered-days.ts'
import { checkJobAcceptsEvents, createServiceApi, explainConflict, requireTrustedTarget } from './service/target-api.ts'

/** As commander gives them. */
interface RetryOptions {
  readonly rejects: string
}

export async function retryRejects(path: string, { rejects }: RetryOptions): Promise<void> {
  if (!existsSync(rejects)) refuse(`there is no file ${rejects}`)
  const describePause = () =>
    `paused. To continue: pennon import retry ${quotePath(path)} --rejects ${quotePath(rejects)}`
  await runExclusivelyOnJob(path, job => runUntilInterrupted(describePause, signal => retry(job, rejects, signal)))
}

/** The way to import records after the job has ended. It is safe: repaired records get the same event ids in any import. */
const elsewhere =
  'Repaired records can be imported separately, as complete records in the format of the source: pennon import plan ANOTHER-FOLDER FILE'

async function retry(job: Job, rejects: string, signal: AbortSignal): Promise<void> {
  const { folder, plan, at } = job
  const sent = readCheckpoint(folder)
  const serviceJob = readServiceJob(folder)
  if (sent?.isSent !== true || serviceJob === null || plan.target === null)
    refuse(`the other records must be sent first: pennon import run ${at}`)
  const api = createServiceApi(requireTrustedTarget(job), signal)
  await checkJobAcceptsEvents(at, serviceJob.id, api, elsewhere)
  const context = { ...job, manifest: requireManifest(folder) }
  const problem = await findRetryProblem(context, rejects)
  if (problem !== null)
    refuse(`${problem}. Nothing was sent. The rejects to repair: pennon import rejects ${at} --json`)
  const retried = addRetry(context, rejects)
  const progress = createRunProgress({ folder: retried.folder })
  try {
    storeVerification(folder, null)
    // Reset the service's verification, too, since it does not cover the events of this retry.
    const repaired = readRetryOutcomes(folder)
    await reportJobState(api, serviceJob.id, 'sending', computeProgressFigures(sent, context.manifest, repaired))
    const checkpoint = await runSendStage({
      ...{ folder: retried.folder, job: retried.job, progress: progress.tracker, signal },
      ...{ clock: wallClock, source: plan.source, projectKey: plan.target.projectKey },
      secretJobId: serviceJob.secretId,
      identity: { ...sent.identity, mappingSha256: hashConversionSettings(plan) },
      // Never stop because of rejects: all records of this retry have already been rejected once.
      maxRejectShare: 1,
    })
    progress.end('done', null)
    const counts = sumSendCounts(checkpoint.parts.map(part => part.counts))
    const outcomes = await collectRetryOutcomes(openRetries(context))
    storeRetryOutcomes(folder, outcomes)
    updateReport(folder, plan)
    const figures = computeProgressFigures(sent, context.manifest, outcomes)
    await reportJobState(api, serviceJob.id, 'verifying', { ...figures, paused: true })
    await reportDays(context, serviceJob.id, api)
    const count = (value: number) => value.toLocaleString('en')
    printLine(
      `${formatCount(counts.read, 'record')}: ${formatCount(counts.sent, 'event')} sent, ${formatCount(counts.rejected, 'record')} rejected, ${count(counts.skipped)} skipped.`,
    )
    for await (const line of listStillRejected(retried.job, plan.source)) printLine(`  ${line}`)
    // The larger count, not the sum: a record whose events the service all refused is in both counts.
    const wrong = Math.max(counts.rejected, counts.refused)
    const compare = `pennon import run ${at}`
    if (wrong > 0)
      throw new JobStopped(
        `${count(wrong)} of them ${wrong === 1 ? 'is' : 'are'} still wrong. Next: repair ${wrong === 1 ? 'it' : 'them'} in ${rejects}, then pennon import retry ${at} --rejects ${quotePath(rejects)} (records already sent are not duplicated); or leave ${wrong === 1 ? 'it' : 'them'} out and verify the stored events: ${compare}`,
      )
    printLine(formatNextStep({ command: compare, why: 'verify the stored events' }))
  } catch (error) {
    const isPaused = isInterruption(error, signal)
    if (readCheckpoint(retried.folder)?.isSent !== true && (isPaused || error instanceof JobStopped)) {
      storeRetryOutcomes(folder, await collectRetryOutcomes(openRetries(context)))
      await reportPause(job, serviceJob.id, 'sending')
    }
    const explained = await explainConflict(error, at, serviceJob.id, api, elsewhere)
    progress.end(isPaused ? 'paused' : 'stopped', (explained as Error).message)
    throw explained
  }
}

/** Adds the days of all retried events to the days that the service lists for the job. */
async function reportDays(context: RetryContext, id: string, api: ServiceApi): Promise<void> {
  const { days, range } = readRehearsal(context.folder)!
  const times = range === null ? [] : [range.first, range.last]
  const withEvents = new Set(days.map(({ day }) => day))
  for (const { job } of openRetries(context))
    for await (const { result } of job.readPart(job.parts[0]!))
      for (const { timeUs } of result.kind === 'events' ? result.events : []) {
        times.push(formatTime(timeUs))
        withEvents.add(utcDay(timeUs))
      }
  const sorted = times.toSorted()
  if (sorted.length === 0) return
  const { plan } = await api.call('GET', `/import_jobs/${id}/`)
  const covered = {
    range: { first: sorted[0]!, last: sorted.at(-1)! },
    gaps: findDayGaps([...withEvents].toSorted()),
  }
  await api.call('PATCH', `/import_jobs/${id}/`, { body: { plan: { ...(plan as JsonObject), ...covered } } })
}

const shownMax = 20

async function* listStillRejected(job: ReturnType<typeof addRetry>['job'], adapter: string): AsyncGenerator<string> {
  let shown = 0
  const [part] = job.parts
  for await (const outcome of job.readPart(part!)) {
    const { result } = outcome
    if (result.kind !== 'rejected' || shown++ >= shownMax) continue
    const { line, reason, field, fix } = createRejectLine(part!.id, adapter, outcome, result)
    yield `line ${line}: ${reason}${field === null ? '' : `, ${field}`}. ${fix}`
  }
}
