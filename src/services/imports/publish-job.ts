// Publishes a job: first its links, then its persons and groups, last its rows, so that every event that becomes visible
// has its person with all known properties. Each transaction removes the items it has done from the step's list, so an
// interrupted step continues with the rest. Source: docs/wire/import.md §2.11.

import { type ImportJob, type ImportStep, toStagingProjectId } from '#core/imports/import-job.ts'
import {
  publishGroups,
  publishImportLinks,
  publishPersonlessIds,
  publishPersons,
} from '#core/processing/imports/publish-staging.ts'
import { createJobBatch, findOwnImportPosition, type ImportWorkDeps, runJobBatch, textBytesMax } from './job-batch.ts'

/** Items per transaction: the live stream waits while a transaction commits. */
const batchSize = 250
/** Distinct ids per pass over the job's rows; each pass rewrites a column of all rows. */
const idsPerShare = 100_000

/** The steps of publishing after draining, in order. */
const steps = ['links', 'persons', 'groups', 'person_properties', 'rows', 'clearing'] as const

/**
 * Works until the step is done. @returns the next step; null when the job is published. @throws PortError, NotOwnerError
 */
export async function runPublishStep(
  job: ImportJob,
  step: (typeof steps)[number],
  deps: ImportWorkDeps,
  signal: AbortSignal,
): Promise<ImportStep | null> {
  switch (step) {
    case 'links':
      await publishAllLinks(job, deps, signal)
      break
    case 'persons':
      await publishAllPersons(job, deps, signal)
      break
    case 'groups':
      await publishAllGroups(job, deps, signal)
      break
    case 'person_properties':
      await addKnownProperties(job, deps, signal)
      break
    case 'rows':
      await deps.events.publishJob(job.id)
      break
    case 'clearing':
      while (!signal.aborted && (await deps.jobs.clearImportJob(job.id, 'staging')));
      break
  }
  return steps[steps.indexOf(step) + 1] ?? null
}

export function isPublishStep(step: ImportStep | null): step is (typeof steps)[number] {
  return steps.some(each => each === step)
}

async function publishAllLinks(job: ImportJob, deps: ImportWorkDeps, signal: AbortSignal): Promise<void> {
  for (;;) {
    const links = await deps.jobs.listStagedItems(job.id, 'links', batchSize)
    if (links.length === 0 || signal.aborted) return
    await runJobBatch(
      deps,
      signal,
      links,
      some => {
        const distinctIds = some.flatMap(({ link }) =>
          [link.distinctId, link.otherId].map(distinctId => ({ projectId: job.projectId, distinctId })),
        )
        return { distinctIds, mergingDistinctIds: distinctIds, groups: [], projectIds: [job.projectId] }
      },
      async (some, loaded, published) => {
        const batch = createJobBatch(job, loaded, published)
        if (!loaded.erasures?.has(job.projectId)) return publishImportLinks(batch, some)
        // The list no longer has links of persons that were erased since it was read.
        const left = new Set((await deps.jobs.listStagedItems(job.id, 'links', batchSize)).map(({ id }) => id))
        return publishImportLinks(
          batch,
          some.filter(({ id }) => left.has(id)),
        )
      },
    )
  }
}

async function publishAllPersons(job: ImportJob, deps: ImportWorkDeps, signal: AbortSignal): Promise<void> {
  const { id, projectId } = job
  const toSubjects = (ids: readonly string[]) => ({
    distinctIds: ids.flatMap(distinctId => [
      { projectId, distinctId },
      { projectId: toStagingProjectId(id), distinctId },
    ]),
    mergingDistinctIds: [],
    groups: [],
    projectIds: [projectId],
  })
  for (;;) {
    const ids = await deps.jobs.listStagedItems(id, 'ids', batchSize)
    if (ids.length === 0 || signal.aborted) break
    await runJobBatch(deps, signal, ids, toSubjects, (some, loaded, published) =>
      publishPersons(createJobBatch(job, loaded, published), some),
    )
  }
  for (let after: string | null = null; !signal.aborted; ) {
    const ids: readonly string[] = await deps.jobs.listStagedItems(id, 'personlessIds', batchSize, after)
    if (ids.length === 0) return
    await runJobBatch(deps, signal, ids, toSubjects, (some, loaded, published) =>
      publishPersonlessIds(createJobBatch(job, loaded, published), some),
    )
    after = ids.at(-1)!
  }
}

async function publishAllGroups(job: ImportJob, deps: ImportWorkDeps, signal: AbortSignal): Promise<void> {
  const { id, projectId } = job
  const types = await deps.jobs.listNamedGroupTypes(id)
  const typeNames = new Map(types.map(({ typeIndex, name }) => [typeIndex, name]))
  for (;;) {
    const groups = await deps.jobs.listStagedItems(id, 'groups', batchSize)
    if (groups.length === 0 || signal.aborted) return
    await runJobBatch(
      deps,
      signal,
      groups,
      some => ({
        distinctIds: [],
        mergingDistinctIds: [],
        groups: [],
        groupKeys: some.flatMap(({ typeIndex, key }) => [
          { projectId, typeIndex, key },
          { projectId: toStagingProjectId(id), typeIndex, key },
        ]),
        projectIds: [projectId],
      }),
      (some, loaded, published) => publishGroups(createJobBatch(job, loaded, published), some, typeNames),
    )
  }
}

/**
 * Rows of a pending job contain the person properties that the job had sent so far. Adds the properties that the person has
 * at publishing: those from live events, other imports, and later events of the job itself. A repeated call also adds what
 * was set since the last call. Source: docs/wire/import.md §2.11; docs/decisions/0065-persons-in-rows-of-a-job.md.
 */
async function addKnownProperties(job: ImportJob, deps: ImportWorkDeps, signal: AbortSignal): Promise<void> {
  const { events, serialize, underWay } = deps
  // Restores that began before the job was closed may still be inserting pending rows.
  await underWay?.settled()
  // At least one pass, since each pass clears leftovers of a worker that was killed.
  const count = Math.max(1, Math.ceil((await events.countPendingDistinctIds(job.id)) / idsPerShare))
  for (let index = 0; index < count && !signal.aborted; index++) {
    const add = () =>
      events.addKnownProperties(job.id, { index, count }, ids => loadKnownProperties(job, ids, deps), signal)
    await serialize(() => underWay?.run(add) ?? add())
    // Stop if another worker took over: it has cleared what this one was adding.
    await findOwnImportPosition(deps)
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
