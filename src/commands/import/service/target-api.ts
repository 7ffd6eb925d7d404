// Clients of the instance that an import is sent to, with the personal key of the environment. Folders are passed between
// people, and plan.json is easily edited, so the key is sent only to a target that the folder was approved for. Source:
// ours; docs/import.md.

import { readConfig } from '#config.ts'
import { err, ok, type Result } from '#core/result.ts'
import { wallClock } from '#importer/fetch/waiting.ts'
import { hashTarget, readApproval } from '#importer/job/approval.ts'
import type { JobFolder } from '#importer/job/job-folder.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { importKeyScopeList } from '#importer/job/key-scopes.ts'
import { findApiAddress, type ImportPlan, type ImportTarget } from '#importer/job/plan.ts'
import type { StageProgress } from '#importer/job/progress.ts'
import { ServiceApi, ServiceRefusal } from '#importer/send/service-api.ts'
import { readServiceJob, readServiceState } from '#importer/send/service-job.ts'
import { ClientError, PrivateApi } from '../../client/private-api.ts'
import { printLine, quotePath } from '../messages/print.ts'

export interface JobOfFolder {
  readonly folder: JobFolder
  readonly plan: ImportPlan
}

/** @returns why the personal key must not be sent to the target of the plan; null if it may. */
export function findTargetMismatch({ folder, plan: { target } }: JobOfFolder): string | null {
  if (target === null) return null
  const notSent = `PENNON_PERSONAL_KEY was not sent to ${target.apiAddress ?? target.address}`
  const made = readServiceJob(folder)
  if (made !== null && made.target !== target.address)
    return `${notSent}: import job ${made.id} was created at ${made.target}, but plan.json has another target. Restore the previous plan.json, or plan in another folder`
  const approval = readApproval(folder)
  if (approval === null) return null
  // If only the project has become known since the approval, the key still goes to the same place.
  const beforeKnown = { ...target, projectId: null, projectName: null }
  if (![target, beforeKnown].some(each => hashTarget(each) === approval.hashes.target))
    return `${notSent}: plan.json has a different target than was approved. Restore the previous plan.json; or, if you changed it, check the target and approve again: pennon import run ${quotePath(folder.path)}`
  return null
}

/** @returns the target of the plan. @throws JobStopped if the personal key must not be sent there. */
export function requireTrustedTarget(job: JobOfFolder): ImportTarget {
  const reason = findTargetMismatch(job)
  if (reason !== null) throw new JobStopped(reason)
  return job.plan.target!
}

export interface TargetQuery {
  /** An id, `@current`, or empty for the list of projects. */
  readonly project: string
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  /** A sentence that says what to do if there is no personal key. */
  readonly noKey: string
}

/**
 * Asks the target of a job once, and does not wait for a target that is unavailable.
 * @returns the answer, or why the service gave none.
 */
export async function queryJobTarget<T>(
  job: JobOfFolder,
  options: TargetQuery,
  ask: (api: PrivateApi) => Promise<T>,
): Promise<Result<T, string>> {
  const mismatch = findTargetMismatch(job)
  return mismatch === null ? queryTarget(job.plan.target!, options, ask) : err(mismatch)
}

/** Like `queryJobTarget`, but for a target that no folder has recorded yet. */
export async function queryTarget<T>(
  target: ImportTarget,
  { noKey, ...options }: TargetQuery,
  ask: (api: PrivateApi) => Promise<T>,
): Promise<Result<T, string>> {
  const read = readConfig(process.env)
  if (!read.ok) return read
  const { personalKey } = read.value
  if (personalKey === null) return err(noKey)
  try {
    return ok(await ask(new PrivateApi({ instance: findApiAddress(target), personalKey, ...options })))
  } catch (error) {
    if (error instanceof ClientError) return err(error.message)
    throw error
  }
}

const printedWaits = { waiting: (reason: string | null) => reason !== null && printLine(`waiting: ${reason}`) }

/**
 * Creates a client that waits while the service is unavailable. @throws JobStopped if there is no key, so that the progress
 * of a run records why it ended.
 */
export function createServiceApi(
  target: ImportTarget,
  signal: AbortSignal,
  progress: Pick<StageProgress, 'waiting'> = printedWaits,
): ServiceApi {
  const read = readConfig(process.env)
  if (!read.ok) throw new JobStopped(read.error)
  const { personalKey } = read.value
  if (personalKey === null)
    throw new JobStopped(
      `Set PENNON_PERSONAL_KEY to a personal API key with the scopes ${importKeyScopeList}. To create one, run pennon new-key where the instance runs.`,
      {
        command: null,
        why: `set PENNON_PERSONAL_KEY to a key with the scopes ${importKeyScopeList}, then pennon import run FOLDER`,
      },
    )
  const project = target.projectId ?? '@current'
  return new ServiceApi({ address: findApiAddress(target), personalKey, project, clock: wallClock, progress, signal })
}

/**
 * Checks that the service's job still accepts events. Call it before sending events, and before removing the results of
 * earlier events.
 * @param at the folder of the job as a shell takes it.
 * @param instead what to do with the events if the job accepts none, as a whole sentence. @throws JobStopped in that case,
 * with what to do.
 */
export async function checkJobAcceptsEvents(
  at: string,
  serviceJobId: string,
  api: ServiceApi,
  instead: string | null = null,
): Promise<void> {
  const ended = describeEndedJob(await readServiceState(api, serviceJobId), at)
  if (ended === null) return
  const message = `import job ${serviceJobId} ${ended}`
  throw new JobStopped(instead === null ? message : `${message}. ${instead}`)
}

/**
 * Explains a refusal with status 409, which a job gets that was published or discarded from elsewhere while it was sent.
 * @returns the error to throw instead: what became of the job, or at least the next command. Other errors are returned as
 * they are.
 */
export async function explainConflict(
  error: unknown,
  ...[at, id, api, instead]: Parameters<typeof checkJobAcceptsEvents>
) {
  if (!(error instanceof ServiceRefusal) || error.status !== 409) return error
  const known = await checkJobAcceptsEvents(at, id, api, instead).catch((found: unknown) => found)
  const next = `Next: pennon import status ${at}`
  return known instanceof JobStopped
    ? known
    : new JobStopped(`${error.message.replace(/\.$/, '')}. ${next}`, error.remedy)
}

/** @returns null for a state in which a job accepts events. */
export function describeEndedJob(state: string, at: string): string | null {
  switch (state) {
    case 'publishing':
    case 'published':
      return `is ${state === 'published' ? '' : 'being '}published, so nothing more is sent. To undo it: pennon import discard ${at}`
    case 'discarding':
    case 'discarded':
      return `is ${state === 'discarded' ? '' : 'being '}discarded, so nothing more is sent. To import again, plan it in another folder: pennon import plan`
    case 'failed':
      return `failed at the service (see its output for the reason), so nothing more is sent. To undo it: pennon import discard ${at}`
    default:
      return null
  }
}
