// Rows of a pending job contain the person properties that the job had sent so far. Before the rows become visible, the
// person's properties at publishing are added: those from live events, other imports, and later events of the job itself.
// Source: docs/wire/import.md §2.11; docs/decisions/0065-persons-in-rows-of-a-job.md.

import type { ImportJob } from '#core/imports/import-job.ts'
import { findOwnPosition, type ImportWorkDeps } from './job-batch.ts'

/** Distinct ids per pass; each pass rewrites a column of all rows of the job. */
const idsPerShare = 100_000
const textBytesMax = 64 * 1024 * 1024

/**
 * Adds the known properties to the rows. A repeated call also adds properties that were set since the last one.
 * @throws PortError, NotOwnerError
 */
export async function addKnownProperties(job: ImportJob, deps: ImportWorkDeps, signal: AbortSignal): Promise<void> {
  const { events, serialize, underWay } = deps
  // Restores that began before the job was closed may still be inserting pending rows.
  await underWay?.settled()
  // At least one pass, since each clears leftovers of a worker that was killed.
  const count = Math.max(1, Math.ceil((await events.countPendingDistinctIds(job.id)) / idsPerShare))
  for (let index = 0; index < count && !signal.aborted; index++) {
    const add = () =>
      events.addKnownProperties(job.id, { index, count }, ids => loadKnownProperties(job, ids, deps), signal)
    await serialize(() => underWay?.run(add) ?? add())
    // Stop if another worker took over: it has cleared what this one was adding.
    await findOwnPosition(deps)
  }
}

async function loadKnownProperties(
  job: ImportJob,
  ids: readonly string[],
  deps: ImportWorkDeps,
): Promise<ReadonlyMap<string, string>> {
  const { projectId } = job
  const distinctIds = ids.map(distinctId => ({ projectId, distinctId }))
  const subjects = { distinctIds, mergingDistinctIds: [], groups: [], projectIds: [projectId] }
  const loaded = await deps.state.loadChunk(subjects, ids.length > 1 ? textBytesMax : Number.POSITIVE_INFINITY)
  if (loaded === 'too_large') {
    const middle = Math.ceil(ids.length / 2)
    const halves = [
      await loadKnownProperties(job, ids.slice(0, middle), deps),
      await loadKnownProperties(job, ids.slice(middle), deps),
    ]
    return new Map(halves.flatMap(half => [...half]))
  }
  const texts = new Map(
    loaded.persons.map(({ uuid, properties }, index) => [
      uuid,
      loaded.personPropertiesJson?.[index] ?? JSON.stringify(properties),
    ]),
  )
  return new Map(loaded.mappings.map(({ distinctId, personUuid }) => [distinctId, texts.get(personUuid)!]))
}
