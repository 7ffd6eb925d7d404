// Rows of a pending job show of their persons what the job itself knew by then. Before they become visible, they get what
// the project knows besides: from live events, other imports, and what else the job said of the person. It is what persons
// have at publishing, since a job may describe them after their events, and live events change them until then.
// Source: docs/wire/import.md §2.11; docs/decisions/0065-persons-in-rows-of-a-job.md.

import type { ImportJob } from '#core/imports/import-job.ts'
import { findOwnPosition, type ImportWorkDeps } from './job-batch.ts'

/** Distinct ids that are dealt with in one turn; each turn rewrites a column of all rows of the job. */
const idsPerShare = 100_000
const textBytesMax = 64 * 1024 * 1024

/** Repeating it adds what has become known since. @throws PortError, NotOwnerError */
export async function addKnownProperties(job: ImportJob, deps: ImportWorkDeps, signal: AbortSignal): Promise<void> {
  const { events, serialize, underWay } = deps
  // Rows that are being restored since before the job was closed are still inserted among the pending ones.
  await underWay?.settled()
  // One share at least, since each clears what a worker that was killed has left behind.
  const count = Math.max(1, Math.ceil((await events.countPendingIds(job.id)) / idsPerShare))
  for (let index = 0; index < count && !signal.aborted; index++) {
    const add = () => events.addKnownProperties(job.id, { index, count }, ids => knownOf(job, ids, deps), signal)
    await serialize(() => underWay?.run(add) ?? add())
    // A worker that took over has cleared what this one was about to add.
    await findOwnPosition(deps)
  }
}

async function knownOf(
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
    const halves = [await knownOf(job, ids.slice(0, middle), deps), await knownOf(job, ids.slice(middle), deps)]
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
