// Stage 1 of a planned job: completes what `pennon import fetch` began, and adds the files to the plan.

import { openFetchSource } from '#compose/import/open-fetch-source.ts'
import type { JsonObject } from '#core/json.ts'
import { parseFetchConfig } from '#importer/fetch/fetch-config.ts'
import type { FetchProgress } from '#importer/fetch/fetch-reporter.ts'
import { runFetchStage } from '#importer/fetch/fetch-stage.ts'
import { readFetchedParts } from '#importer/fetch/fetch-state.ts'
import { describeWait, type FetchClock, wallClock } from '#importer/fetch/waiting.ts'
import { writePlan } from '#importer/job/plan.ts'
import type { StageProgress } from '#importer/job/progress.ts'
import type { RawFile } from '#importer/read/read-record.ts'
import { toCanonicalJson } from '#importer/records/canonical-json.ts'
import { tryFileLock } from '#processes/data-lock.ts'
import type { JobStage, StageRun } from '../job/job-stages.ts'
import { describeWarnings } from './fetch.ts'

export const fetchJob: JobStage = {
  isDone: ({ folder, plan }) =>
    plan.fetch === null || (plan.files.length > 0 && readFetchedParts(folder.path)?.isComplete === true),
  async run(run) {
    const files = await fetchFilesForJob(run, run.plan.fetch!, { clock: wallClock, env: process.env })
    writePlan(run.folder, { ...run.plan, files })
  },
}

/**
 * Fetches the missing files; sends no request when none is missing.
 * @param fetch the plan's `fetch`, for `parseFetchConfig`.
 * @param from.env has the secrets, which the plan must not hold.
 * @returns the files, oldest first.
 * @throws JobStopped, ImportConfigError, the signal's reason when it is aborted.
 */
export async function fetchFilesForJob(
  { folder, progress, signal, findSpaceProblem }: Pick<StageRun, 'folder' | 'progress' | 'signal' | 'findSpaceProblem'>,
  fetch: JsonObject,
  { clock, env }: { readonly clock: FetchClock; readonly env: NodeJS.ProcessEnv },
): Promise<readonly RawFile[]> {
  const config = toCanonicalJson(fetch)
  const before = readFetchedParts(folder.path)
  if (before === null || !before.isComplete || toCanonicalJson(before.config as JsonObject) !== config) {
    using source = await openFetchSource(parseFetchConfig(fetch), env, clock.nowMs())
    const { warnings } = await runFetchStage({
      ...{ folder: folder.path, config, source, clock, tryFileLock, signal, findSpaceProblem },
      onProgress: createFetchReporter(progress, clock),
      onNotice: progress.say,
    })
    for (const line of describeWarnings(warnings)) progress.say(line)
  }
  return readFetchedParts(folder.path)!.parts.map(({ object }) => ({ path: folder.file(object), object }))
}

/** Reports the parts of a fetch as the progress of a stage; parts count as records, since no record has been read yet. */
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
