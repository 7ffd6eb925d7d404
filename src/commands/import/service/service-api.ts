// Client of the service that an import is sent to, with the personal key of the environment.

import { readConfig } from '#config.ts'
import { wallClock } from '#importer/fetch/waiting.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { importKeyScopeList } from '#importer/job/key-scopes.ts'
import { findApiAddress, type ImportTarget } from '#importer/job/plan.ts'
import type { StageProgress } from '#importer/job/progress.ts'
import { ServiceApi } from '#importer/send/job-api.ts'

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
