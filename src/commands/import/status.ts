// `pennon import status FOLDER`: prints the state of a job, also while another terminal runs it, and the next step. Changes
// nothing. Source: docs/wire/import.md §2.8.

import { formatCount, truncateList } from '#core/format-count.ts'
import type { FetchedParts } from '#importer/fetch/fetch-state.ts'
import { countRecordsRead } from '#importer/job/manifest.ts'
import type { ProgressFigures } from '#importer/job/progress.ts'
import { countRepairedRejects, readRetryOutcomes } from '#importer/send/retry-outcomes.ts'
import { formatDuration } from '#importer/stages/report/format-figures.ts'
import { describeDamage, listDamagedFiles } from '#importer/stages/report/rejects.ts'
import { describeSentEvents } from '#importer/stages/report/report-sections.ts'
import { exitAfterOutput } from '../client/exit-after-output.ts'
import { findNextStep, readJobProgress } from './job/next-step.ts'
import {
  findNextStepAfterFetch,
  isFetchRunning,
  isJobRunning,
  type Job,
  readFetchedPartsOfJob,
  readFetchWithoutPlan,
  refuseNonFolderPath,
  runReadOnlyOnJob,
} from './job/open-job.ts'
import { findRehearsalStop } from './job/rehearsal-stop.ts'
import { formatNextStep, printJson, printLines, quotePath } from './messages/print.ts'
import { formatProgressLine } from './run/run-progress.ts'
import { describeServiceState, queryServiceJob, type ServiceAnswer } from './service/query-service-job.ts'

/** As commander gives them. */
interface StatusOptions {
  readonly json?: boolean
}

export async function showStatus(path: string, options: StatusOptions): Promise<void> {
  refuseNonFolderPath(path, `pennon import plan FOLDER ${quotePath(path)}`)
  const fetched = readFetchWithoutPlan(path)
  if (fetched !== null) printFetched(path, fetched, options)
  else
    await runReadOnlyOnJob(path, async job => {
      const status = await readStatus(job)
      if (options.json === true) printJson(toStatusJson(status))
      else printLines(formatStatus(status))
    })
}

/** Nothing has been planned yet. */
function printFetched(path: string, fetched: FetchedParts, { json = false }: StatusOptions): void {
  exitAfterOutput()
  const { config, isComplete, partsWaiting, partsEmpty, parts } = fetched
  const next = findNextStepAfterFetch(path, fetched)
  const { source } = config as { readonly source: string }
  const isRunning = isFetchRunning(path)
  const done = parts.length + partsEmpty
  if (json)
    printJson({ isRunning, fetched: { source, isComplete, parts: parts.length, partsEmpty, partsWaiting }, next })
  else
    printLines([
      'Nothing has been planned yet.',
      isComplete
        ? `Downloaded from ${source}: all ${formatCount(parts.length, 'part')}.`
        : `Downloaded from ${source}: ${done.toLocaleString('en')} of ${formatCount(done + partsWaiting, 'part')}.`,
      isRunning ? adviseWaiting(path) : formatNextStep(next),
    ])
}

type Status = Awaited<ReturnType<typeof readStatus>>

async function readStatus(job: Job) {
  const service = await queryServiceJob(job)
  const jobState = await readJobProgress(job)
  const isRunning = isJobRunning(job.folder)
  return { ...jobState, job, isRunning, service, next: findNextStep(job.path, jobState, service) }
}

function toStatusJson({ job, isRunning, manifest, report, next, ...status }: Status): object {
  const { jobId, source, createdAt, target } = job.plan
  const { progress, approvalSha256, approvedAt, sent, service } = status
  return {
    ...{ jobId, source, createdAt },
    target: target && { address: target.address, projectId: target.projectId, projectName: target.projectName },
    ...{ isRunning, progress },
    range: manifest?.sourceRange ?? null,
    sourceTimezone: manifest?.sourceTimezone ?? null,
    mappingSha256: manifest?.mappingSha256 ?? null,
    records: manifest && countRecordsRead(manifest),
    balance: report?.balance ?? null,
    damagedFiles: manifest === null ? [] : listDamagedFiles(manifest),
    stop: report && findRehearsalStop(report, job.plan, job.at),
    ...{ approvalSha256, approvedAt, sent, service },
    // Programs may run the command in `next`, so it must not be a command that undoes an import.
    next: next.isOnlyToUndo === true ? null : next,
  }
}

function formatStatus({ job, isRunning, manifest, report, next, ...status }: Status): string[] {
  const { jobId, createdAt, target } = job.plan
  const { progress, approvedAt, sent, service } = status
  const range = manifest?.sourceRange
  return [
    `Job ${jobId}: ${describeFiles(job)}, planned ${createdAt}.`,
    target === null ? 'No target.' : `Target: ${target.projectName ?? 'the project of the key'} on ${target.address}.`,
    manifest === null
      ? 'Not staged yet.'
      : `Staged: ${formatCount(countRecordsRead(manifest), 'record')} of ${formatCount(manifest.totals.days, 'day')}${range ? `, ${range.first} to ${range.last}` : ''}.`,
    report === null
      ? 'Not rehearsed yet.'
      : `Rehearsed: ${formatCount(report.predicted.events, 'event')} to send, ${formatCount(report.balance.rejected, 'record')} rejected${describeRepaired(job)}.`,
    ...(manifest === null ? [] : truncateList(listDamagedFiles(manifest).map(describeDamage))),
    approvedAt === null ? 'Not approved.' : `Approved ${approvedAt}.`,
    ...(report === null || sent === null ? [] : describeSentEvents(report, sent)),
    ...(service === null ? [] : [describeServiceState(service)]),
    isRunning ? describeRunning(progress) : describeLastRun(progress, service),
    isRunning ? adviseWaiting(job.path) : formatNextStep(next),
  ]
}

function describeRepaired({ folder }: Job): string {
  const repaired = countRepairedRejects(readRetryOutcomes(folder))
  return repaired === 0 ? '' : `, of which ${formatCount(repaired, 'is', 'are')} repaired and sent`
}

/** The plan of a fetch names no files until a run has fetched all of them. */
function describeFiles({ folder, plan: { files, fetch, source } }: Job): string {
  if (files.length > 0 || fetch === null) return `${formatCount(files.length, 'file')} of ${source}`
  const fetched = readFetchedPartsOfJob(folder)
  return `${formatCount(fetched?.parts.length ?? 0, 'file')} of ${source}, fetched${fetched?.isComplete === true ? '' : ' so far'}`
}

/** A running command writes its figures every second, so older figures show that it is held up. */
const heldUpMs = 15_000

function describeRunning(progress: ProgressFigures | null): string {
  // The process may be another command, such as `publish`, or a run that has just begun.
  if (progress?.state !== 'running') return 'Another process is working on it, without reporting progress.'
  const silentMs = Date.now() - Date.parse(progress.updatedAt)
  const silent = silentMs < heldUpMs ? '' : ` No progress for ${formatDuration(silentMs / 1_000)}; it may have stopped.`
  return `Running (process ${progress.pid}): ${formatProgressLine(progress)}.${silent}`
}

/** Describes how the last run ended; not once the job is discarded, since the run's message no longer applies. */
function describeLastRun(progress: ProgressFigures | null, service: ServiceAnswer): string {
  if (progress === null) return 'Not run yet.'
  if (service !== null && 'state' in service && service.state === 'discarded') return 'Nothing is running.'
  if (progress.state === 'running') return `Nothing is running: the last run was interrupted in ${progress.stage}.`
  return progress.message === null ? 'Nothing is running.' : `Last run: ${progress.message}`
}

function adviseWaiting(path: string): string {
  return `Next: wait; to see the progress: pennon import status ${quotePath(path)}`
}
