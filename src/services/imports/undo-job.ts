// Discards a job. An unpublished job has only a staging overlay and pending rows. For a published one, its rows are deleted
// first; then its changes to persons and groups are undone from the undo records stored by publishing. Each undo record is
// deleted in the transaction that handles it, so the remaining ones are the work left. Source: docs/wire/import.md §2.11.

import type { UndoRecord } from '#core/imports/import-changes.ts'
import { noImportChanges } from '#core/imports/import-changes.ts'
import type { ImportJob, ImportStep } from '#core/imports/import-job.ts'
import type { ChunkSubjects } from '#core/processing/chunk.ts'
import type { PublishedBatch } from '#core/processing/imports/publish-staging.ts'
import { leaveMerges, undoMerges } from '#core/processing/imports/split-merges.ts'
import type { UndoBatch } from '#core/processing/imports/undo-batch.ts'
import {
  leaveGroups,
  leaveGroupType,
  leavePersons,
  undoGroups,
  undoPersons,
} from '#core/processing/imports/undo-publish.ts'
import type { UndoRefusal } from '#core/processing/imports/undoing.ts'
import { findInHalves, isQueryFailure } from './find-in-halves.ts'
import { createJobBatch, type ImportWorkDeps, runBatch } from './job-batch.ts'
import {
  findEventInputs,
  findGroupEventInputs,
  findPublishStartMs,
  loadUndoBatch,
  noEvents,
  readSubjectName,
  removeDiscardedImplicitJobs,
  type UndoRecordNamed,
} from './undo-questions.ts'

const batchSize = 250
const deletedGroupsMax = 1_000

const steps = ['rows', 'undo_merges', 'undo_persons', 'undo_groups', 'clearing'] as const

export function isUndoStep(step: ImportStep | null): step is (typeof steps)[number] {
  return steps.some(each => each === step)
}

/** Works until the step is done. @returns the next one; null when the job is discarded. @throws PortError, NotOwnerError */
export async function runUndoStep(
  job: ImportJob,
  step: (typeof steps)[number],
  deps: ImportWorkDeps,
  signal: AbortSignal,
): Promise<ImportStep | null> {
  switch (step) {
    case 'rows':
      await deps.events.discardJob(job.id)
      break
    case 'undo_merges':
      await splitMerges(job, deps, signal)
      break
    case 'undo_persons':
      await restorePersons(job, deps, signal)
      break
    case 'undo_groups':
      await restoreGroups(job, deps, signal)
      break
    case 'clearing':
      // Discards the job again, for rows of a chunk that was being processed when the job was closed.
      await deps.events.discardJob(job.id)
      await deleteGroupTypes(job, deps, signal)
      while (!signal.aborted && (await deps.jobs.clearStaging(job.id)));
      await deps.jobs.deleteUndoRecords(job.id)
      await deps.jobs.forgetGenerated(job.id)
      break
  }
  return steps[steps.indexOf(step) + 1] ?? null
}

async function splitMerges(job: ImportJob, deps: ImportWorkDeps, signal: AbortSignal): Promise<void> {
  await undoPersonRecords(job, 'id_count', deps, signal, (batch, undoRecords, isKnown) => {
    const undo = isKnown ? undoMerges : leaveMerges
    const { overrides, changes } = undo(batch, undoRecords.map(readSubjectName))
    // A survivor that no longer exists counts as done.
    const imports = changes.imports ?? noImportChanges
    const doneUndoRecords = [...imports.doneUndoRecords, ...undoRecords]
    return { overrides, changes: { ...changes, imports: { ...imports, doneUndoRecords } } }
  })
}

async function restorePersons(job: ImportJob, deps: ImportWorkDeps, signal: AbortSignal): Promise<void> {
  await undoPersonRecords(job, 'person', deps, signal, (batch, undoRecords, isKnown) => {
    const undo = isKnown ? undoPersons : leavePersons
    return undo(batch, undoRecords.map(readSubjectName))
  })
}

/**
 * Handles all undo records of a kind whose subjects are persons, in batches.
 * @param undo `isKnown`: whether the event store could answer how other events use the persons.
 */
async function undoPersonRecords(
  job: ImportJob,
  kind: 'id_count' | 'person',
  deps: ImportWorkDeps,
  signal: AbortSignal,
  undo: (batch: UndoBatch, undoRecords: readonly UndoRecord[], isKnown: boolean) => PublishedBatch,
): Promise<void> {
  for (;;) {
    const undoRecords = await deps.jobs.listUndoRecords(job.id, kind, batchSize)
    if (undoRecords.length === 0 || signal.aborted) return
    const idOf = await deps.jobs.findIdsOfPersons(job.projectId, undoRecords.map(readSubjectName))
    await runBatch(
      deps,
      signal,
      undoRecords,
      some =>
        toSubjects(
          job,
          some.flatMap(undoRecord => idOf.get(undoRecord.subject) ?? findFormerIds(undoRecord)),
        ),
      async (some, loaded, published) => {
        const batch = await loadUndoBatch(job, deps, loaded, published, some)
        return undo({ ...batch, ...(await findEventInputs(job, deps, signal, batch, some)) }, some, true)
      },
      async (some, loaded, published) => undo(await loadUndoBatch(job, deps, loaded, published, some), some, false),
    )
  }
}

/** A person that was merged away since is found by one of its former ids. */
function findFormerIds({ kind, after }: UndoRecord): readonly string[] {
  return (kind === 'person' || kind === 'id_count') && after?.anyId !== undefined ? [after.anyId] : []
}

async function restoreGroups(job: ImportJob, deps: ImportWorkDeps, signal: AbortSignal): Promise<void> {
  const { id, projectId } = job
  for (;;) {
    const undoRecords = (await deps.jobs.listUndoRecords(id, 'group', batchSize)) as readonly UndoRecordNamed<'group'>[]
    if (undoRecords.length === 0 || signal.aborted) return
    await runBatch(
      deps,
      signal,
      undoRecords,
      some => ({
        distinctIds: [],
        mergingDistinctIds: [],
        groups: [],
        groupKeys: some.flatMap(({ after }) => (after === null ? [] : { ...after, projectId })),
        projectIds: [projectId],
      }),
      async (some, loaded, published) => {
        const laterJobIds = await deps.jobs.listLaterImportJobs(job)
        const names = some.map(readSubjectName)
        const all = [...some, ...(await deps.jobs.findUndoRecords(laterJobIds, 'group', names))]
        const undoRecords = await removeDiscardedImplicitJobs(all, deps)
        const sinceMs = await findPublishStartMs(job, deps)
        const found = await findGroupEventInputs(job, deps, signal, { loaded, laterJobIds, sinceMs }, some.length)
        const batch = {
          ...createJobBatch(job, deps, loaded, published),
          ...noEvents,
          ...found,
          undoRecords,
          laterJobIds,
        }
        return undoGroups(batch, names)
      },
      (some, loaded, published) => {
        const batch = {
          ...createJobBatch(job, deps, loaded, published),
          ...noEvents,
          undoRecords: some,
          laterJobIds: [],
        }
        return leaveGroups(batch, some.map(readSubjectName))
      },
    )
  }
}

/** Deletes the group types that the job added unless a group, an event, or a flag uses them by now. */
async function deleteGroupTypes(job: ImportJob, deps: ImportWorkDeps, signal: AbortSignal): Promise<void> {
  for (const undoRecord of await deps.jobs.listUndoRecords(job.id, 'group_type', 100)) {
    if (signal.aborted) return
    // The type existed before the job.
    if (undoRecord.before !== null) continue
    const left = await deleteGroupType(job, deps, Number(undoRecord.subject), signal)
    if (left === null) continue
    const naming = await deps.jobs.listJobsNamingGroupType(job.projectId, Number(undoRecord.subject))
    const successorId = naming.find(id => id !== job.id) ?? null
    await runBatch(
      deps,
      signal,
      [undoRecord],
      () => toSubjects(job, []),
      () => ({ overrides: [], changes: leaveGroupType(undoRecord, successorId, left) }),
    )
  }
}

/** @returns why the type stays; null if it was deleted. */
async function deleteGroupType(
  { id, projectId }: ImportJob,
  { jobs, events, clock, random, logger }: ImportWorkDeps,
  typeIndex: number,
  signal: AbortSignal,
): Promise<UndoRefusal | null> {
  const isUsed = 'undo_left:group_type_is_used'
  const { results } = await jobs.listGroups(projectId, { typeIndex, limit: 1, offset: 0 })
  if (results.length > 0) return isUsed
  try {
    const find = async ([index]: readonly number[]) => [await events.hasRowsOfGroupType(projectId, id, index!)]
    const [hasRows] = await findInHalves([typeIndex], find, { random, signal })
    if (hasRows === true) return isUsed
  } catch (cause) {
    if (!isQueryFailure(cause)) throw cause
    logger.warn(
      { err: cause, importJob: id, typeIndex },
      'the event store could not answer whether a group type is used',
    )
    return 'undo_left:events_not_readable'
  }
  const started = await jobs.startDeletingGroupType(projectId, typeIndex, {
    by: { id: null, label: `Import job ${id}` },
    atMs: clock.nowMs(),
  })
  if (!started.ok) return started.error === 'not_found' ? null : isUsed
  while (!signal.aborted && (await jobs.deleteGroupsOfType(projectId, typeIndex, deletedGroupsMax)));
  return null
}

/** The subjects that load the persons of these ids with all their ids. */
function toSubjects({ projectId }: ImportJob, ids: readonly string[]): ChunkSubjects {
  const distinctIds = [...new Set(ids)].map(distinctId => ({ projectId, distinctId }))
  return { distinctIds, mergingDistinctIds: distinctIds, groups: [], projectIds: [projectId] }
}
