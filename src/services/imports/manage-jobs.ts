// Operations of clients on import jobs: create, report progress, publish, discard.

import type { Change } from '#core/author.ts'
import {
  createPublicImportJobId,
  type DescribedImportJob,
  formatDayOfEndedJob,
  implicitDiscardsMax,
  importJobNumberMax,
  isJobOpen,
  jobsPerDayMax,
  keptJobsMax,
  type OpenState,
  openJobsMax,
  openStates,
  undoDays,
} from '#core/imports/import-job.ts'
import type { JsonObject } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import { dayMs } from '#core/time.ts'
import type { ImportJobStore, NewImportJob, TooManyJobs } from '#ports/state/import-job-store.ts'
import { retryOnConflict } from '../shared/write-optimistically.ts'

export interface ManageJobsDeps {
  readonly management: ImportJobStore
}

/**
 * Why an operation on a job was refused. `final`: it was published too long ago, or the data needed to undo it is deleted;
 * `too_many_implicit_jobs`: the implicit job of its day was discarded too often.
 */
export type JobRefusal =
  | 'not_found'
  | 'publishing'
  | 'published'
  | 'discarding'
  | 'discarded'
  | 'final'
  | 'too_many_implicit_jobs'

/** @throws PortError */
export function createJob(
  {
    management,
    randomBytes,
  }: Pick<ManageJobsDeps, 'management'> & { readonly randomBytes: (size: number) => Uint8Array },
  job: Omit<NewImportJob, 'publicId'>,
  change: Change,
): Promise<Result<DescribedImportJob, TooManyJobs>> {
  const limits = { openMax: openJobsMax, perDayMax: jobsPerDayMax, keptMax: keptJobsMax }
  const drawRandom = () => new DataView(randomBytes(4).slice().buffer).getUint32(0)
  // If another job has the id, the next try draws a new id.
  return retryOnConflict(() =>
    management.createImportJob({ ...job, publicId: createPublicImportJobId(drawRandom) }, limits, change),
  )
}

/** Finds a job of this project by its public id or its number; null if the job belongs to another project. */
export async function findJob(
  { management }: ManageJobsDeps,
  projectId: number,
  id: number,
): Promise<DescribedImportJob | null> {
  const job =
    id > importJobNumberMax ? await management.findImportJobByPublicId(id) : await management.findImportJob(id)
  return job?.projectId === projectId ? job : null
}

export async function updateJob(
  deps: ManageJobsDeps,
  projectId: number,
  id: number,
  fields: {
    readonly name?: string
    readonly state?: OpenState | 'failed'
    readonly plan?: JsonObject
    readonly progress?: JsonObject
  },
  { by, atMs }: Change,
): Promise<Result<DescribedImportJob, JobRefusal>> {
  const job = await findJob(deps, projectId, id)
  if (job === null) return err('not_found')
  const from = { states: [...openStates, 'failed' as const] }
  const updated = await deps.management.updateImportJob(job.id, { ...fields, updatedAtMs: atMs }, from, by)
  return updated === null ? err(toRefusal(job)) : ok(updated)
}

/** Starts publishing. A job that is already publishing or published is returned unchanged. */
export async function publishJob(
  deps: ManageJobsDeps,
  projectId: number,
  id: number,
  change: Change,
): Promise<Result<DescribedImportJob, JobRefusal>> {
  const job = await findJob(deps, projectId, id)
  if (job === null) return err('not_found')
  if (job.state === 'published' || job.state === 'publishing') return ok(job)
  return startClosing(deps, job, 'publishing', change)
}

/**
 * Starts discarding: an open job leaves no trace, a published one is undone as far as possible. A job that is already
 * discarding or discarded is returned unchanged.
 */
export async function discardJob(
  deps: ManageJobsDeps,
  projectId: number,
  id: number,
  change: Change,
): Promise<Result<DescribedImportJob, JobRefusal>> {
  const job = await findJob(deps, projectId, id)
  if (job === null) return err('not_found')
  if (job.state === 'discarded' || job.state === 'discarding') return ok(job)
  const isOld = job.publishedAtMs !== null && change.atMs - job.publishedAtMs > undoDays * dayMs
  if (isOld || job.finalAtMs !== null) return err('final')
  if (job.day !== null) {
    const implicitJobs = await deps.management.listImplicitJobs(projectId, job.day)
    if (implicitJobs.length > implicitDiscardsMax) return err('too_many_implicit_jobs')
  }
  return startClosing(deps, job, 'discarding', change)
}

async function startClosing(
  { management }: ManageJobsDeps,
  job: DescribedImportJob,
  state: 'publishing' | 'discarding',
  { by, atMs }: Change,
): Promise<Result<DescribedImportJob, JobRefusal>> {
  const states = [...openStates, 'failed' as const, ...(state === 'discarding' ? (['published'] as const) : [])]
  // Imports that arrive from now on belong to another implicit job of their day.
  const day = job.day === null ? null : { day: formatDayOfEndedJob(job.day, atMs) }
  const closing = { state, step: 'draining' as const, updatedAtMs: atMs, ...day }
  const started = await management.updateImportJob(job.id, closing, { states }, by)
  if (started !== null) return ok(started)
  const found = await management.findImportJob(job.id)
  return err(found !== null && found.finalAtMs !== null ? 'final' : toRefusal(job))
}

function toRefusal({ state }: DescribedImportJob): JobRefusal {
  return isJobOpen(state) || state === 'failed' ? 'publishing' : state
}
