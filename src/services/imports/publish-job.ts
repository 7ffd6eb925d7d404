// Publishes a job: first its links, then its persons and groups, last its rows, so that every event that becomes visible
// has its person with all known properties. Each transaction removes the items it has done from the step's list, so an
// interrupted step continues with the rest. Source: docs/wire/import.md §2.11.

import { type ImportJob, type ImportStep, toStagingId } from '#core/imports/import-job.ts'
import {
  publishGroups,
  publishLinks,
  publishPersonlessIds,
  publishPersons,
} from '#core/processing/imports/publish-staging.ts'
import { createJobBatch, type ImportWorkDeps, runBatch } from './job-batch.ts'
import { addKnownProperties } from './known-properties.ts'

/** Items per transaction: the live stream waits while one commits. */
const batchSize = 250

/** The steps of publishing after draining, in order. */
const steps = ['links', 'persons', 'groups', 'person_properties', 'rows', 'clearing'] as const

/** Works until the step is done. @returns the next one; null when the job is published. @throws PortError, NotOwnerError */
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
    const links = await deps.jobs.listStaged(job.id, 'links', batchSize)
    if (links.length === 0 || signal.aborted) return
    await runBatch(
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
        if (!loaded.erasures?.has(job.projectId)) return publishLinks(batch, some)
        // The list no longer has links of persons that were erased since it was read.
        const left = new Set((await deps.jobs.listStaged(job.id, 'links', batchSize)).map(({ id }) => id))
        return publishLinks(
          batch,
          some.filter(({ id }) => left.has(id)),
        )
      },
    )
  }
}

async function publishAllPersons(job: ImportJob, deps: ImportWorkDeps, signal: AbortSignal): Promise<void> {
  const { id, projectId } = job
  const subjectsOf = (ids: readonly string[]) => ({
    distinctIds: ids.flatMap(distinctId => [
      { projectId, distinctId },
      { projectId: toStagingId(id), distinctId },
    ]),
    mergingDistinctIds: [],
    groups: [],
    projectIds: [projectId],
  })
  for (;;) {
    const ids = await deps.jobs.listStaged(id, 'ids', batchSize)
    if (ids.length === 0 || signal.aborted) break
    await runBatch(deps, signal, ids, subjectsOf, (some, loaded, published) =>
      publishPersons(createJobBatch(job, loaded, published), some),
    )
  }
  for (let after: string | null = null; !signal.aborted; ) {
    const ids: readonly string[] = await deps.jobs.listStaged(id, 'personlessIds', batchSize, after)
    if (ids.length === 0) return
    await runBatch(deps, signal, ids, subjectsOf, (some, loaded, published) =>
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
    const groups = await deps.jobs.listStaged(id, 'groups', batchSize)
    if (groups.length === 0 || signal.aborted) return
    await runBatch(
      deps,
      signal,
      groups,
      some => ({
        distinctIds: [],
        mergingDistinctIds: [],
        groups: [],
        groupKeys: some.flatMap(({ typeIndex, key }) => [
          { projectId, typeIndex, key },
          { projectId: toStagingId(id), typeIndex, key },
        ]),
        projectIds: [projectId],
      }),
      (some, loaded, published) => publishGroups(createJobBatch(job, loaded, published), some, typeNames),
    )
  }
}
