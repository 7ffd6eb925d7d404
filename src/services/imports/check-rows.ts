// Compares the rows that were stored for a job with those that the event store has, before any of it is published.

import { noImportChanges } from '#core/imports/import-changes.ts'
import type { ImportJob } from '#core/imports/import-job.ts'
import { type JsonObject, numberOf, ownValue } from '#core/json.ts'
import { noChunkChanges } from '#core/processing/chunk.ts'
import { PortError } from '#ports/port-error.ts'
import { commitChanges, type ImportWorkDeps } from './job-batch.ts'
import { isOfQuestion } from './look-up.ts'

export const fewerRows = 'rows_fewer_than_stored'
export const uncountedRows = 'rows_not_counted'

/**
 * Notes in the job that the event store has fewer rows than were there when its client compared them with what it sent, or
 * without that, fewer than were stored for it. Events that were sent twice, in different chunks, make a difference there as
 * well, so the job is published all the same. Repeating it notes nothing twice.
 * @throws PortError of the state, NotOwnerError
 */
export async function checkRows(job: ImportJob, deps: ImportWorkDeps): Promise<void> {
  const described = await deps.jobs.findImportJob(job.id)
  const stored = verifiedRows(described?.progress ?? {}) ?? described?.storedRows ?? null
  // The job is gone.
  if (stored === null) return
  const found = await countOrNull(job, deps)
  if (found !== null && found >= stored) return
  const reason = found === null ? uncountedRows : fewerRows
  if ((await deps.jobs.listImportNotes(job.id)).some(note => note.reason === reason)) return
  const details: JsonObject = found === null ? { stored } : { stored, found }
  deps.logger.warn({ importJob: job.id, project: job.projectId, stored, found }, 'rows of an import job may be missing')
  const note = { importJobId: job.id, reason, count: found === null ? 1 : stored - found, samples: [details] }
  const end = await commitChanges(deps, { ...noChunkChanges, imports: { ...noImportChanges, notes: [note] } })
  if (end === 'again') throw new PortError('state', 'conflict', new Error('a note conflicts'))
}

/** How many rows the client has found to be what it sent; null when it has not compared them, or sent more since. */
function verifiedRows(progress: JsonObject): number | null {
  return numberOf(ownValue(progress, 'verified_rows') ?? null) ?? null
}

/** Null when the event store cannot count so many rows in its time and memory, which may be so on every try. */
async function countOrNull({ id, projectId }: ImportJob, { events, logger }: ImportWorkDeps): Promise<number | null> {
  try {
    return await events.countPendingRows(projectId, id)
  } catch (cause) {
    if (!isOfQuestion(cause)) throw cause
    logger.warn({ err: cause, importJob: id }, 'the rows of an import job could not be counted')
    return null
  }
}
