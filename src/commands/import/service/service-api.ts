// Client of the service that an import is sent to, with the personal key of the environment.

import { readConfig } from '#config.ts'
import { wallClock } from '#importer/fetch/waiting.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { importKeyScopeList } from '#importer/job/key-scopes.ts'
import { findApiAddress, type ImportTarget } from '#importer/job/plan.ts'
import type { StageProgress } from '#importer/job/progress.ts'
import { ServiceApi } from '#importer/send/job-api.ts'
import { readServiceState } from '#importer/send/service-job.ts'
import { quotePath } from '../messages/print.ts'

/** @throws JobStopped without a key, so that the progress of a run records why it ended. */
export function createServiceApi(
  target: ImportTarget,
  progress: Pick<StageProgress, 'waiting'>,
  signal: AbortSignal,
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
 * Call before events are sent, or the results of earlier ones removed.
 * @param path of the job's folder.
 * @param instead what to do with the events otherwise, as a whole sentence.
 * @throws JobStopped for a job that accepts none, with what to do.
 */
export async function checkTakesEvents(
  path: string,
  serviceJobId: string,
  api: ServiceApi,
  instead: string | null = null,
): Promise<void> {
  const ended = endedMessage(await readServiceState(api, serviceJobId), quotePath(path))
  if (ended === null) return
  const message = `import job ${serviceJobId} ${ended}`
  throw new JobStopped(instead === null ? message : `${message}. ${instead}`)
}

/** @returns null for a state in which a job accepts events. */
export function endedMessage(state: string, at: string): string | null {
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
