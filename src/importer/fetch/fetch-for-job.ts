// Stage 1 of a planned job: fetches the raw files that staging reads into the job folder.

import { firstFew } from '#core/format-count.ts'
import type { JsonObject } from '#core/json.ts'
import type { FindSpaceProblem } from '#importer/read/disk-space.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { checkPause, JobPaused, JobStopped } from '../job/job-paused.ts'
import type { StageProgress } from '../job/progress.ts'
import type { RawFile } from '../read/read-record.ts'
import { canonicalJson } from '../records/canonical-json.ts'
import { ImportConfigError } from '../records/import-source.ts'
import { describeWait } from './describe-wait.ts'
import type { FetchClock } from './fetch-clock.ts'
import { type FetchConfig, parseFetchConfig } from './fetch-config.ts'
import { FetchStop } from './fetch-faults.ts'
import type { FetchProgress } from './fetch-reporter.ts'
import type { FetchSource } from './fetch-source.ts'
import { fetchStage } from './fetch-stage.ts'
import { readFetchedParts } from './fetched-parts.ts'

export interface FetchForJobOptions {
  readonly folder: JobFolder
  /** The `fetch` of the plan, for `parseFetchConfig`. */
  readonly fetch: JsonObject
  /** `openFetchSource` with the environment, which has the secrets that the plan must not hold. */
  readonly open: (config: FetchConfig) => Promise<{ readonly source: FetchSource; close(): void }>
  readonly clock: FetchClock
  readonly tryFileLock: (path: string) => (() => void) | null
  readonly progress: StageProgress
  readonly signal: AbortSignal
  /** As in `FetchStageOptions`. */
  readonly findSpaceProblem?: FindSpaceProblem
}

/**
 * Fetches the missing files; sends no request when none is missing.
 * @returns the files, oldest first.
 * @throws JobStopped, JobPaused
 */
export async function fetchForJob(options: FetchForJobOptions): Promise<readonly RawFile[]> {
  const { folder, fetch, open, progress, signal, findSpaceProblem } = options
  checkPause(signal)
  const config = canonicalJson(fetch)
  const before = readFetchedParts(folder.path)
  if (before === null || !before.isComplete || canonicalJson(before.config as JsonObject) !== config)
    try {
      const { source, close } = await open(parseFetchConfig(fetch))
      try {
        const { warnings } = await fetchStage({
          ...{ folder: folder.path, config, source, signal },
          ...{ clock: options.clock, tryFileLock: options.tryFileLock },
          ...(findSpaceProblem && { findSpaceProblem }),
          onProgress: createFetchReporter(progress, options.clock),
          onNotice: progress.say,
        })
        for (const line of firstFew(warnings.map(({ part, line }) => (part === '' ? line : `${part}: ${line}`))))
          progress.say(line)
      } finally {
        close()
      }
    } catch (cause) {
      if (signal.aborted) throw new JobPaused('paused')
      if (cause instanceof FetchStop || cause instanceof ImportConfigError) throw new JobStopped(cause.message)
      throw cause
    }
  return readFetchedParts(folder.path)!.parts.map(({ object }) => ({ path: folder.file(object), object }))
}

/** Counts parts as records, since no record has been read yet. */
function createFetchReporter(progress: StageProgress, clock: FetchClock): (now: FetchProgress) => void {
  let [parts, bytes, retries, total] = [0, 0, 0, -1]
  return now => {
    if (now.partsTotal !== total) {
      progress.begin('fetch', { records: now.partsTotal })
      ;[parts, bytes, retries, total] = [now.partsDone, 0, 0, now.partsTotal]
      progress.add({ records: now.partsDone, isEarlier: true })
    }
    const more = { records: now.partsDone - parts, bytes: now.bytesReceived - bytes, retries: now.retries - retries }
    ;[parts, bytes, retries] = [now.partsDone, now.bytesReceived, now.retries]
    progress.add(more)
    progress.waiting(now.waiting === null ? null : describeWait(now.waiting, clock.nowMs()))
  }
}
