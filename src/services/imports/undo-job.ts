// Discards a job. An unpublished job has only a staging overlay and pending rows. A published one is undone first: persons
// and groups become what all of their events except the job's make of them. The undo can be repeated, so after a crash it
// begins again; the job's rows are deleted afterwards, as they show what to undo. Source:
// docs/decisions/0081-a-person-is-a-fold.md.

import type { ImportNote, UndoRefusal } from '#core/imports/import-changes.ts'
import type { ImportJob, ImportStep } from '#core/imports/import-job.ts'
import { commitImportChanges, type ImportWorkDeps } from './job-batch.ts'
import { isQueryFailure, retryQuery } from './query-failures.ts'
import { UndoNotes, undoGroups, undoPersons } from './undo-subjects.ts'

const deletedGroupsMax = 1_000

const steps = ['undo', 'rows', 'clearing'] as const

export function isUndoStep(step: ImportStep | null): step is (typeof steps)[number] {
  return steps.some(each => each === step)
}

/**
 * Works until the step is done. @returns the next step; null when the job is discarded. @throws PortError, NotOwnerError
 */
export async function runUndoStep(
  job: ImportJob,
  step: (typeof steps)[number],
  deps: ImportWorkDeps,
  signal: AbortSignal,
): Promise<ImportStep | null> {
  switch (step) {
    case 'undo': {
      const left = new UndoNotes()
      await undoPersons(job, deps, left, signal)
      await undoGroups(job, deps, left, signal)
      await addNotesOnce(job, deps, left.notes(job.id), signal)
      break
    }
    case 'rows':
      await discardRows(job, deps)
      break
    case 'clearing':
      // Discards rows again: a chunk that was being processed when the job was closed may have stored some.
      await discardRows(job, deps)
      await deleteGroupTypes(job, deps, signal)
      while (!signal.aborted && (await deps.jobs.clearImportJob(job.id, 'everything')));
      break
  }
  return steps[steps.indexOf(step) + 1] ?? null
}

function discardRows({ id, day }: ImportJob, { events }: ImportWorkDeps): Promise<void> {
  return day === null ? events.discardJob(id) : events.deleteSharedJobRows(id)
}

/** Adds notes to the job about what the undo left unchanged, unless an earlier try of the step has added them. */
async function addNotesOnce(
  job: ImportJob,
  deps: ImportWorkDeps,
  notes: readonly ImportNote[],
  signal: AbortSignal,
): Promise<void> {
  const known = new Set((await deps.jobs.listImportNotes(job.id)).map(({ reason }) => reason))
  const added = notes.filter(({ reason }) => !known.has(reason))
  if (added.length === 0) return
  await commitImportChanges(deps, signal, { notes: added })
}

/** Deletes the group types that the job added unless a group, an event, or a flag uses them by now. */
async function deleteGroupTypes(job: ImportJob, deps: ImportWorkDeps, signal: AbortSignal): Promise<void> {
  for (const { isAdded, typeIndex } of await deps.jobs.listNamedGroupTypes(job.id)) {
    if (signal.aborted) return
    if (!isAdded) continue
    const reason = await deleteGroupType(job, deps, typeIndex, signal)
    if (reason === null) continue
    const note = { importJobId: job.id, reason, count: 1, samples: [{ groupTypeIndex: typeIndex }] }
    const leftGroupTypes = [{ importJobId: job.id, typeIndex }]
    await commitImportChanges(deps, signal, { leftGroupTypes, notes: [note] })
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
    const hasRows = await retryQuery(() => events.hasRowsOfGroupType(projectId, id, typeIndex), { random, signal })
    if (hasRows) return isUsed
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
