// Discards an implicit job. Implicit jobs share a partition, so its rows are deleted by key and counted afterwards; its
// changes to persons and groups are found by its marks.

import type { ImportJob, ImportStep } from '#core/imports/import-job.ts'
import {
  leaveImplicitJobOfGroups,
  leaveImplicitJobOfPersons,
  undoImplicitJobOfGroups,
  undoImplicitJobOfPersons,
} from '#core/processing/imports/undo-implicit-job.ts'
import { groupSubject } from '#core/processing/imports/undo-records.ts'
import { findInHalves } from './find-in-halves.ts'
import { createJobBatch, type ImportWorkDeps, runBatch } from './job-batch.ts'
import { findEventsOfImplicitJob, findGroupEventInputs, listPublishedJobs, noEvents } from './undo-questions.ts'

const batchSize = 250

const steps = ['rows', 'undo_persons', 'undo_groups'] as const

/** Works until the step is done. @returns the next one; null when the job is discarded. @throws PortError, NotOwnerError */
export async function runUndoDayStep(
  job: ImportJob,
  step: ImportStep | null,
  deps: ImportWorkDeps,
  signal: AbortSignal,
): Promise<ImportStep | null> {
  const index = (steps as readonly (ImportStep | null)[]).indexOf(step)
  if (index === -1) throw new Error(`import job ${job.id} of ${job.day} is at the unknown step ${step}`)
  if (step === 'rows') await deps.events.discardDay(job.id)
  else if (step === 'undo_persons') await undoPersons(job, deps, signal)
  else await undoGroups(job, deps, signal)
  return steps[index + 1] ?? null
}

async function undoPersons(job: ImportJob, deps: ImportWorkDeps, signal: AbortSignal): Promise<void> {
  const { projectId } = job
  for (let after: number | null = null; !signal.aborted; ) {
    const page: readonly { cursor: number; uuid: string }[] = await deps.jobs.listMarkedPersons(job, after, batchSize)
    if (page.length === 0) return
    const uuids = page.map(({ uuid }) => uuid)
    const idOf = await deps.jobs.findIdsOfPersons(projectId, uuids)
    await runBatch(
      deps,
      signal,
      uuids,
      some => {
        const distinctIds = some.flatMap(uuid => idOf.get(uuid) ?? []).map(distinctId => ({ projectId, distinctId }))
        return { distinctIds, mergingDistinctIds: distinctIds, groups: [], projectIds: [projectId] }
      },
      async (some, loaded, published) => {
        const ids = [...new Set(loaded.personMappings.map(({ distinctId }) => distinctId))]
        const find = (asked: readonly string[]) => deps.events.findUsedIds(projectId, job.id, asked)
        const used = await (some.length > 1 ? find(ids) : findInHalves(ids, find, { random: deps.random, signal }))
        const laterJobIds = await listPublishedJobs(job, deps)
        const undoRecords = await deps.jobs.findUndoRecords(laterJobIds, 'person', some)
        const found = await findEventsOfImplicitJob(job, deps, signal, { loaded, laterJobIds }, some.length)
        const batch = {
          ...createJobBatch(job, deps, loaded, published),
          ...noEvents,
          ...found,
          undoRecords,
          laterJobIds,
        }
        return undoImplicitJobOfPersons({ ...batch, usedIds: new Set(used) }, some)
      },
      (some, loaded, published) => leaveImplicitJobOfPersons(createJobBatch(job, deps, loaded, published), some),
    )
    after = page.at(-1)!.cursor
  }
}

async function undoGroups(job: ImportJob, deps: ImportWorkDeps, signal: AbortSignal): Promise<void> {
  const { projectId } = job
  type Place = { readonly typeIndex: number; readonly key: string }
  for (let after: Place | null = null; !signal.aborted; ) {
    const page: readonly Place[] = await deps.jobs.listMarkedGroups(job, after, batchSize)
    if (page.length === 0) return
    await runBatch(
      deps,
      signal,
      page,
      some => ({
        distinctIds: [],
        mergingDistinctIds: [],
        groups: [],
        groupKeys: some.map(group => ({ projectId, ...group })),
        projectIds: [projectId],
      }),
      async (some, loaded, published) => {
        const laterJobIds = await listPublishedJobs(job, deps)
        const undoRecords = await deps.jobs.findUndoRecords(laterJobIds, 'group', some.map(groupSubject))
        const found = await findGroupEventInputs(job, deps, signal, { loaded, laterJobIds, sinceMs: 0 }, some.length)
        const batch = {
          ...createJobBatch(job, deps, loaded, published),
          ...noEvents,
          ...found,
          undoRecords,
          laterJobIds,
        }
        return undoImplicitJobOfGroups(batch, some)
      },
      (some, loaded, published) => leaveImplicitJobOfGroups(createJobBatch(job, deps, loaded, published), some),
    )
    after = page.at(-1)!
  }
}
