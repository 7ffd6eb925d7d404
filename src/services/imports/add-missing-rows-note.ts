// Before a job is published, compares its row count in the event store with the expected count.

import type { ImportJob } from '#core/imports/import-job.ts'
import { getOwnValue, type JsonObject, readJsonNumber } from '#core/json.ts'
import { commitImportChanges, type ImportWorkDeps } from './job-batch.ts'
import { isQueryFailure } from './query-failures.ts'

const fewerRows = 'rows_fewer_than_stored'
const uncountedRows = 'rows_not_counted'

/**
 * Adds a note to the job if the event store has fewer rows than the client verified or, without a verified count, fewer
 * than were stored. The job is published anyway: an event that was sent twice, in different chunks, also makes the counts
 * differ. Repeating the check adds no second note.
 * @throws PortError of the state, NotOwnerError
 */
export async function addMissingRowsNote(job: ImportJob, deps: ImportWorkDeps, signal: AbortSignal): Promise<void> {
  const described = await deps.jobs.findImportJob(job.id)
  const stored = readVerifiedRowCount(described?.progress ?? {}) ?? described?.storedRows ?? null
  // The job has been deleted.
  if (stored === null) return
  const found = await countPendingRowsOrNull(job, deps)
  if (found !== null && found >= stored) return
  const reason = found === null ? uncountedRows : fewerRows
  if ((await deps.jobs.listImportNotes(job.id)).some(note => note.reason === reason)) return
  const details: JsonObject = found === null ? { stored } : { stored, found }
  deps.logger.warn(
    { importJob: job.id, project: job.projectId, stored, found },
    'some rows of an import job may be missing',
  )
  const note = { importJobId: job.id, reason, count: found === null ? 1 : stored - found, samples: [details] }
  await commitImportChanges(deps, signal, { notes: [note] })
}

/** How many rows the client compared with what it sent; null if it has not compared them, or has sent more since. */
function readVerifiedRowCount(progress: JsonObject): number | null {
  return readJsonNumber(getOwnValue(progress, 'verified_rows') ?? null) ?? null
}

/** Null if the event store cannot count this many rows within its limits of time and memory: retrying may never succeed. */
async function countPendingRowsOrNull(
  { id, projectId }: ImportJob,
  { events, logger }: ImportWorkDeps,
): Promise<number | null> {
  try {
    return await events.countPendingRows(projectId, id)
  } catch (cause) {
    if (!isQueryFailure(cause)) throw cause
    logger.warn({ err: cause, importJob: id }, 'cannot count the rows of an import job')
    return null
  }
}
