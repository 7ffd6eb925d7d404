// Checks that a job still accepts events, before any are sent or the results of earlier ones are removed.

import { JobStopped } from '#importer/job/job-paused.ts'
import type { ServiceApi } from '#importer/send/job-api.ts'
import { readServiceState } from '#importer/send/service-job.ts'
import { quotePath } from '../messages/print.ts'

/**
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
