// Publishes and discards import jobs, in the worker that owns the log's import stream. A job's state and step say in the
// state how far it is, so that any worker goes on with it after a crash.

import { discardedJobsMax, type ImportJob, type ImportStep, undoDays } from '#core/imports/import-job.ts'
import { ProjectGoneError } from '#core/processing/imports/publish-shelf.ts'
import { dayMs } from '#core/time.ts'
import { findProgress } from '../progress/find-progress.ts'
import { runPeriodically } from '../shared/run-periodically.ts'
import { checkRows } from './check-rows.ts'
import { type ImportWorkDeps, NotOwnerError } from './job-batch.ts'
import { createJobFailures } from './job-failures.ts'
import { isPublishStep, publishStep } from './publish-job.ts'
import { undoDayStep } from './undo-day.ts'
import { isUndoStep, undoStep } from './undo-job.ts'

const everyMs = 1_000
/** How long a front may still take events for a job after its state has changed: it asks once a second. */
export const closingMs = 3_000
const retentionEveryMs = 3_600_000

export interface ImportWork {
  run(signal: AbortSignal): Promise<void>
  /** Works on every job that has work, until it is done or has to wait, also on those that failed. @throws PortError */
  workNow(signal: AbortSignal): Promise<void>
}

export function createImportWork(deps: ImportWorkDeps): ImportWork {
  const { jobs, clock, logger } = deps
  /** Jobs of deleted projects, as of the beginning of the turn. */
  const gone = new Set<number>()
  const failures = createJobFailures(deps)
  let retainedAtMs = Number.NEGATIVE_INFINITY

  async function workOnAll(signal: AbortSignal, isDue: (jobId: number) => boolean): Promise<void> {
    const causes: unknown[] = []
    await discardJobsOfGoneProjects()
    const all = await jobs.listImportWork()
    // One job of a project after the other: what a job keeps for its undoing must not be of the midst of another one.
    const begun = new Map(all.filter(({ step }) => step !== 'draining').map(job => [job.projectId, job.id]))
    for (const job of all) {
      if (signal.aborted) return
      if ((begun.get(job.projectId) ?? job.id) !== job.id) continue
      try {
        // Those of other projects go on while it waits.
        if (!isDue(job.id)) begun.set(job.projectId, job.id)
        else {
          await work(job, signal)
          begun.delete(job.projectId)
          await failures.forget(job)
        }
      } catch (cause) {
        if (cause instanceof NotOwnerError) return
        begun.set(job.projectId, job.id)
        causes.push(cause)
        await failures.note(job, cause).catch((again: unknown) => causes.push(again))
      }
    }
    if (causes.length > 0) throw causes[0]
    await dropFinalImages()
  }

  async function work(job: ImportJob, signal: AbortSignal): Promise<void> {
    let { step } = job
    while (!signal.aborted) {
      const next = await nextStep(job, step, signal).catch((cause: unknown) => {
        if (cause instanceof ProjectGoneError) return 'project_gone' as const
        throw cause
      })
      if (next === 'project_gone') return discardInstead(job)
      if (next === 'waits' || signal.aborted) return
      const isDone = next === null
      const nowMs = clock.nowMs()
      const end = job.state === 'publishing' ? 'published' : 'discarded'
      const moved = await jobs.updateImportJob(
        job.id,
        {
          updatedAtMs: nowMs,
          step: next,
          ...(isDone && { state: end }),
          ...(isDone && (end === 'published' ? { publishedAtMs: nowMs } : { discardedAtMs: nowMs })),
        },
        { states: [job.state], step },
      )
      if (moved === null) return
      if (isDone) {
        logger.info({ importJob: job.id, project: job.projectId }, `an import job is ${end}`)
        if (end === 'discarded') await jobs.forgetDiscardedJobs(job.projectId, discardedJobsMax)
        return
      }
      step = next
    }
  }

  /** Their shelves, pending rows and images go. What is published stays with the project's other rows. */
  async function discardJobsOfGoneProjects(): Promise<void> {
    gone.clear()
    for (const job of await jobs.listJobsOfGoneProjects()) {
      gone.add(job.id)
      if (job.state === 'published') await jobs.deleteImportImages(job.id)
      else if (job.state !== 'discarding') {
        const isClosed = job.state === 'publishing'
        const step = isClosed && job.step !== 'draining' ? 'clearing' : 'draining'
        const updatedAtMs = isClosed ? job.updatedAtMs : clock.nowMs()
        const change = { state: 'discarding', step, updatedAtMs } as const
        await jobs.updateImportJob(job.id, change, { states: [job.state], step: job.step })
        logger.info({ importJob: job.id, project: job.projectId }, 'an import job of a deleted project is discarded')
      }
    }
  }

  /** The job of a project that was deleted meanwhile has nowhere to be published to. */
  async function discardInstead(job: ImportJob): Promise<void> {
    const change = { state: 'discarding', step: 'rows', updatedAtMs: clock.nowMs() } as const
    await jobs.updateImportJob(job.id, change, { states: ['publishing'] })
    logger.warn(
      { importJob: job.id, project: job.projectId },
      'the project of an import job is gone: the job is discarded',
    )
  }

  async function nextStep(
    job: ImportJob,
    step: ImportStep | null,
    signal: AbortSignal,
  ): Promise<ImportStep | null | 'waits'> {
    if (job.state === 'publishing' && isPublishStep(step)) return publishStep(job, step, deps, signal)
    if (job.state === 'discarding' && gone.has(job.id)) return stepOfGone(job, step, signal)
    if (job.state === 'discarding' && job.day !== null && step !== 'draining')
      return undoDayStep(job, step, deps, signal)
    if (job.state === 'discarding' && isUndoStep(step)) return undoStep(job, step, deps, signal)
    if (step !== 'draining') throw new Error(`import job ${job.id} is ${job.state} at the unknown step ${step}`)
    if (!(await isDrained(job))) return 'waits'
    if (job.state === 'discarding') return 'rows'
    await checkRows(job, deps)
    return 'links'
  }

  /** Persons and groups of a deleted project need not go back to what they were. */
  async function stepOfGone(
    job: ImportJob,
    step: ImportStep | null,
    signal: AbortSignal,
  ): Promise<ImportStep | null | 'waits'> {
    if (step === 'draining' && !(await isDrained(job))) return 'waits'
    if (step !== 'clearing') return 'clearing'
    if (job.day !== null) await deps.events.discardDay(job.id)
    else await undoStep(job, 'clearing', deps, signal)
    return null
  }

  /**
   * Whether every record that a front may have taken for the job is processed. Its exceptions and AI events go with the
   * live ones.
   */
  async function isDrained({ updatedAtMs }: ImportJob): Promise<boolean> {
    if (clock.nowMs() - updatedAtMs < closingMs) return false
    for (const { stream } of await deps.log.streams()) {
      const { doneOffset } = await findProgress(jobs, stream)
      const { appendedAtMs } = await deps.log.status(stream, doneOffset)
      if (appendedAtMs !== null && appendedAtMs <= updatedAtMs + closingMs) return false
    }
    return true
  }

  /** A job that was published this long ago can no longer be undone. */
  async function dropFinalImages(): Promise<void> {
    if (performance.now() - retainedAtMs < retentionEveryMs) return
    for (const id of await jobs.listFinalImportJobs(clock.nowMs() - undoDays * dayMs)) await jobs.deleteImportImages(id)
    retainedAtMs = performance.now()
  }

  return {
    workNow: signal => workOnAll(signal, () => true),
    run: signal =>
      runPeriodically(() => workOnAll(signal, failures.isDue), {
        everyMs,
        what: 'publishing or discarding an import job',
        logger,
        signal,
      }),
  }
}
