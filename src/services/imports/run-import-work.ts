// Publishes and discards import jobs, and repairs persons, in the worker that owns the log's import stream. The state store
// has each job's state and step, so any worker can continue after a crash.

import { discardedJobsMax, type ImportJob, type ImportStep, undoDays } from '#core/imports/import-job.ts'
import type { PersonRepair } from '#core/persons/person-repair.ts'
import { ProjectGoneError } from '#core/processing/imports/publish-staging.ts'
import { dayMs } from '#core/time.ts'
import type { Clock } from '#ports/clock.ts'
import type { OpenImportWork } from '#ports/state/import-job-store.ts'
import { runPeriodically } from '../shared/run-periodically.ts'
import { createSerialQueue } from '../shared/serial-queue.ts'
import { addMissingRowsNote } from './add-missing-rows-note.ts'
import { createDrainedJobTracker } from './drained-jobs.ts'
import { type ImportWorkDeps, NotOwnerError } from './job-batch.ts'
import { createJobFailureTracker } from './job-failures.ts'
import { isPublishStep, runPublishStep } from './publish-job.ts'
import { repairPersons } from './repair-persons.ts'
import { isUndoStep, runUndoStep } from './undo-job.ts'

const everyMs = 1_000
const failedRepairPauseMs = 10_000
const finalizeEveryMs = 3_600_000
/**
 * The maximum of projects worked on at once: each holds in memory what it has queried outside of the serialized
 * batches.
 */
const projectsAtOnceMax = 8

export interface ImportWorkOptions extends Omit<ImportWorkDeps, 'serialize'> {
  /** Decides when jobs become final. */
  readonly retentionClock: Clock & { isTrusted(): boolean }
}

export function createImportWorker({ retentionClock, ...options }: ImportWorkOptions) {
  const deps = { ...options, serialize: createSerialQueue() }
  const { jobs, clock, logger } = deps
  const failures = createJobFailureTracker(deps)
  const drain = createDrainedJobTracker(deps)
  const running = new Map<number, Promise<void>>()
  const causes: unknown[] = []
  /** When to continue with repairs that failed, by project. */
  const repairsAtMs = new Map<number, number>()
  let finalizedAtMs = Number.NEGATIVE_INFINITY

  /**
   * Starts the work of each project that has some and is not being worked on. Batches of the projects interleave, so a job
   * with very many links does not hold up other projects. @returns whether every project is being worked on.
   */
  async function start(signal: AbortSignal, isDue: (jobId: number) => boolean): Promise<boolean> {
    const all = await listWork()
    // Keep the awaited offsets until the job's next step is stored, so that a retried step does not wait for newer records.
    drain.keepOnly(all.filter(({ step }) => step === 'draining').map(({ id }) => id))
    const waiting = Map.groupBy(all, ({ projectId }) => projectId)
    const repairs = Map.groupBy(await jobs.listOpenRepairs(), ({ projectId }) => projectId)
    for (const projectId of new Set([...waiting.keys(), ...repairs.keys()])) {
      if (running.has(projectId)) continue
      if (running.size >= projectsAtOnceMax) return false
      const ofProject = waiting.get(projectId) ?? []
      const done = repairFirst(projectId, repairs.get(projectId) ?? [], ofProject, signal)
        .then(() => workOnProject(ofProject, signal, isDue))
        .finally(() => running.delete(projectId))
      running.set(projectId, done)
    }
    return true
  }

  /** A job that has begun is finished first: while it is half done, its persons do not match any set of events. */
  async function repairFirst(
    projectId: number,
    repairs: readonly PersonRepair[],
    all: readonly OpenImportWork[],
    signal: AbortSignal,
  ): Promise<void> {
    const isDue = (repairsAtMs.get(projectId) ?? 0) <= performance.now()
    if (isDue && all.every(({ step }) => step === 'draining'))
      for (const repair of repairs) {
        if (signal.aborted) return
        try {
          await repairPersons(repair, deps, signal)
        } catch (cause) {
          if (cause instanceof NotOwnerError) return
          causes.push(cause)
          repairsAtMs.set(projectId, performance.now() + failedRepairPauseMs)
          break
        }
      }
  }

  /** Runs jobs one after another: for an undo, each other job counts as a whole or not at all. Never rejects. */
  async function workOnProject(
    all: readonly OpenImportWork[],
    signal: AbortSignal,
    isDue: (jobId: number) => boolean,
  ): Promise<void> {
    let begun = all.find(({ step }) => step !== 'draining')?.id ?? null
    for (const job of all) {
      if (signal.aborted) return
      if (begun !== null && begun !== job.id) continue
      if (!isDue(job.id)) {
        begun = job.id
        continue
      }
      try {
        // Forget the failure before the job's end is stored, or a crash in between would leave the failure there for ever.
        await work(job, signal, () => failures.forget(job))
        begun = null
      } catch (cause) {
        if (cause instanceof NotOwnerError) return
        begun = job.id
        causes.push(cause)
        await failures.note(job, cause).catch((again: unknown) => causes.push(again))
      }
    }
  }

  /** @throws the first failure since the last call. */
  function throwFirstFailure(): void {
    const [first] = causes.splice(0)
    if (first !== undefined) throw first
  }

  /** @param onProgress called before each completed step is stored. */
  async function work(job: OpenImportWork, signal: AbortSignal, onProgress: () => Promise<void>): Promise<void> {
    let { step } = job
    while (!signal.aborted) {
      const next = await runStep(job, step, signal).catch((cause: unknown) => {
        if (cause instanceof ProjectGoneError) return 'project_gone' as const
        throw cause
      })
      if (next === 'project_gone') return discardInstead(job)
      if (next === 'waits' || signal.aborted) return
      await onProgress()
      const isDone = next === null
      const nowMs = clock.nowMs()
      const end = job.state === 'publishing' ? 'published' : 'discarded'
      const moved = await jobs.updateImportJob(
        job.id,
        {
          updatedAtMs: nowMs,
          step: next,
          ...(next === 'links' && { publishBeganAtMs: nowMs }),
          ...(isDone && { state: end }),
          ...(isDone && (end === 'published' ? { publishedAtMs: nowMs } : { discardedAtMs: nowMs })),
        },
        { states: [job.state], step },
        null,
      )
      if (moved === null) return
      if (isDone) {
        logger.info({ importJob: job.id, project: job.projectId }, `import job ${end}`)
        if (end === 'discarded') await jobs.deleteDiscardedJobs(job.projectId, discardedJobsMax)
        return
      }
      step = next
    }
  }

  /** Unpublished jobs of a deleted project are discarded. Published rows stay with the project's other rows. */
  async function listWork(): Promise<readonly OpenImportWork[]> {
    const work: OpenImportWork[] = []
    for (const job of await jobs.listImportWork()) {
      if (!job.isProjectGone || job.state === 'discarding') {
        work.push(job)
        continue
      }
      const isClosed = job.state === 'publishing'
      const step = isClosed && job.step !== 'draining' ? 'clearing' : 'draining'
      const updatedAtMs = isClosed ? job.updatedAtMs : clock.nowMs()
      const change = { state: 'discarding', step, updatedAtMs } as const
      const moved = await jobs.updateImportJob(job.id, change, { states: [job.state], step: job.step }, null)
      logger.info({ importJob: job.id, project: job.projectId }, 'discarding the import job of a deleted project')
      if (moved !== null) work.push({ ...moved, isProjectGone: true })
    }
    return work
  }

  /** Discards a job whose project was deleted while the job was publishing: it has nowhere to be published to. */
  async function discardInstead(job: ImportJob): Promise<void> {
    const change = { state: 'discarding', step: 'rows', updatedAtMs: clock.nowMs() } as const
    await jobs.updateImportJob(job.id, change, { states: ['publishing'] }, null)
    logger.warn(
      { importJob: job.id, project: job.projectId },
      'the project of an import job was deleted: discarding the job',
    )
  }

  async function runStep(
    job: OpenImportWork,
    step: ImportStep | null,
    signal: AbortSignal,
  ): Promise<ImportStep | null | 'waits'> {
    if (job.state === 'publishing' && isPublishStep(step)) return runPublishStep(job, step, deps, signal)
    if (job.state === 'discarding' && job.isProjectGone) return runDeletedProjectStep(job, step, signal)
    if (job.state === 'discarding' && isUndoStep(step)) return runUndoStep(job, step, deps, signal)
    if (step !== 'draining') throw new Error(`import job ${job.id} is ${job.state} at the unknown step ${step}`)
    if (!(await drain.isDrained(job))) return 'waits'
    // Without being published, a job has changed no person and no group of the project, so there is nothing to undo.
    if (job.state === 'discarding') return job.publishedAtMs === null ? 'rows' : 'undo'
    await addMissingRowsNote(job, deps, signal)
    return 'links'
  }

  /** Persons and groups of a deleted project need not be restored. */
  async function runDeletedProjectStep(
    job: ImportJob,
    step: ImportStep | null,
    signal: AbortSignal,
  ): Promise<ImportStep | null | 'waits'> {
    if (step === 'draining' && !(await drain.isDrained(job))) return 'waits'
    if (step !== 'clearing') return 'clearing'
    return runUndoStep(job, 'clearing', deps, signal)
  }

  /** Jobs published longer than `undoDays` ago can no longer be undone. */
  async function finalizeJobs(): Promise<void> {
    if (performance.now() - finalizedAtMs < finalizeEveryMs) return
    const [nowMs, isTrusted] = [retentionClock.nowMs(), retentionClock.isTrusted()]
    await jobs.finalizeImportJobs(nowMs - undoDays * dayMs, { nowMs, isTrusted })
    finalizedAtMs = performance.now()
  }

  /**
   * Works on every job that has work, including jobs that failed, until each is done or must wait.
   * @throws PortError
   */
  async function workNow(signal: AbortSignal): Promise<void> {
    let areAllStarted: boolean
    repairsAtMs.clear()
    do {
      areAllStarted = await start(signal, () => true)
      await Promise.all(running.values())
    } while (!areAllStarted && !signal.aborted)
    throwFirstFailure()
    await finalizeJobs()
  }

  return {
    workNow,
    async run(signal: AbortSignal): Promise<void> {
      const task = async (): Promise<void> => {
        await start(signal, failures.isDue)
        throwFirstFailure()
        await finalizeJobs()
      }
      await runPeriodically(task, { everyMs, what: 'publishing or discarding of an import job', logger, signal })
      await Promise.all(running.values())
    },
  }
}
