// Stage 1 of a planned job: completes what `pennon import fetch` began, and adds the files to the plan.

import { openFetchSource } from '#compose/import/open-fetch-source.ts'
import type { JsonObject } from '#core/json.ts'
import { type FetchConfig, parseFetchConfig } from '#importer/fetch/fetch-config.ts'
import { FetchStop } from '#importer/fetch/fetch-faults.ts'
import type { FetchProgress } from '#importer/fetch/fetch-reporter.ts'
import type { FetchSource } from '#importer/fetch/fetch-source.ts'
import { type FetchStageOptions, fetchStage } from '#importer/fetch/fetch-stage.ts'
import { readFetchedParts } from '#importer/fetch/fetch-state.ts'
import { describeWait, type FetchClock } from '#importer/fetch/waiting.ts'
import type { JobFolder } from '#importer/job/job-folder.ts'
import { checkPause, JobPaused, JobStopped } from '#importer/job/job-paused.ts'
import { writePlan } from '#importer/job/plan.ts'
import type { StageProgress } from '#importer/job/progress.ts'
import type { RawFile } from '#importer/read/read-record.ts'
import { canonicalJson } from '#importer/records/canonical-json.ts'
import { ImportConfigError } from '#importer/records/import-source.ts'
import { tryFileLock } from '#processes/data-lock.ts'
import type { JobStage } from '../job/job-stages.ts'
import { clock, describeWarnings } from './fetch.ts'

export const fetchJob: JobStage = {
  name: 'fetch',
  isDone: ({ folder, plan }) =>
    plan.fetch === null || (plan.files.length > 0 && readFetchedParts(folder.path)?.isComplete === true),
  async run({ folder, plan, progress, signal, findSpaceProblem }) {
    const files = await fetchForJob({
      ...{ folder, clock, tryFileLock, progress, signal, findSpaceProblem },
      fetch: plan.fetch!,
      open: config => openFetchSource(config, process.env, clock.nowMs),
    })
    writePlan(folder, { ...plan, files })
  },
}

export interface FetchForJobOptions
  extends Pick<FetchStageOptions, 'clock' | 'tryFileLock' | 'signal' | 'findSpaceProblem'> {
  readonly folder: JobFolder
  /** The `fetch` of the plan, for `parseFetchConfig`. */
  readonly fetch: JsonObject
  /** `openFetchSource` with the environment, which has the secrets that the plan must not hold. */
  readonly open: (config: FetchConfig) => Promise<{ readonly source: FetchSource; close(): void }>
  readonly progress: StageProgress
}

/**
 * Fetches the missing files; sends no request when none is missing.
 * @returns the files, oldest first.
 * @throws JobStopped, JobPaused
 */
export async function fetchForJob({
  folder,
  fetch,
  open,
  progress,
  ...options
}: FetchForJobOptions): Promise<readonly RawFile[]> {
  checkPause(options.signal)
  const config = canonicalJson(fetch)
  const before = readFetchedParts(folder.path)
  if (before === null || !before.isComplete || canonicalJson(before.config as JsonObject) !== config)
    try {
      const { source, close } = await open(parseFetchConfig(fetch))
      try {
        const { warnings } = await fetchStage({
          ...{ ...options, folder: folder.path, config, source },
          onProgress: createFetchReporter(progress, options.clock),
          onNotice: progress.say,
        })
        for (const line of describeWarnings(warnings)) progress.say(line)
      } finally {
        close()
      }
    } catch (cause) {
      if (options.signal.aborted) throw new JobPaused('paused')
      if (cause instanceof FetchStop || cause instanceof ImportConfigError) throw new JobStopped(cause.message)
      throw cause
    }
  return readFetchedParts(folder.path)!.parts.map(({ object }) => ({ path: folder.file(object), object }))
}

/** Counts parts as records, since no record has been read yet. */
function createFetchReporter(progress: StageProgress, clock: FetchClock): (now: FetchProgress) => void {
  let before = { records: 0, bytes: 0, retries: 0 }
  let total = -1
  return ({ partsDone: records, partsTotal, bytesReceived: bytes, retries, waiting }) => {
    if (partsTotal !== total) {
      total = partsTotal
      before = { records, bytes: 0, retries: 0 }
      progress.begin('fetch', { records: total })
      progress.add({ records, isEarlier: true })
    }
    progress.add({
      records: records - before.records,
      bytes: bytes - before.bytes,
      retries: retries - before.retries,
    })
    before = { records, bytes, retries }
    progress.waiting(waiting === null ? null : describeWait(waiting, clock.nowMs()))
  }
}
