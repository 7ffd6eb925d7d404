// When a job is undone, updates the undo records of later jobs: rewrites existing ones, and adds records for jobs that had none
// for a subject because all their writes were shadowed, so that undoing those jobs removes their values.

import type { UndoRecord, UndoRecordOf } from '#core/imports/import-changes.ts'
import { type ProfileUndoRecord, type Shadowed, sidesOf, versionOfMade } from './shadowed.ts'
import type { UndoContext } from './undo-batch.ts'

/**
 * Rewrites the undo records of later jobs for a subject, as if the undone import had never existed.
 * @param without returns the undo record without that import.
 * @param version the subject's version before and after the undo.
 * @param successorId the later job that counts as having created the subject.
 */
export function rebaseUndoRecords(
  context: UndoContext,
  kind: 'person' | 'group',
  subjects: Iterable<string>,
  without: (undoRecord: ProfileUndoRecord) => ProfileUndoRecord,
  version: { readonly was: number; readonly now: number },
  successorId: number | null = null,
): void {
  for (const subject of new Set(subjects))
    for (const undoRecord of context.laterUndoRecords(kind, subject) as ProfileUndoRecord[]) {
      const { before, after } = without(undoRecord)
      const isLast = after !== null && after.version === version.was
      context.rewrite({
        ...undoRecord,
        before: undoRecord.importJobId === successorId ? null : before,
        after: isLast ? { ...after, version: version.now } : after,
      } as UndoRecord)
    }
}

/**
 * Adds an undo record for each published job that had none. It has only the keys that the undone import wrote, and a version
 * that no subject has.
 * @param undone the undo record of the undone import.
 * @param shadowed the writes of imports that it had shadowed.
 * @param nowFor returns the current subject in the form of an undo record of the job.
 */
export function addUndoRecords<Kind extends 'person' | 'group'>(
  context: UndoContext,
  undone: UndoRecordOf<Kind>,
  shadowed: readonly Shadowed[],
  nowFor: (importJobId: number) => NonNullable<UndoRecordOf<Kind>['after']>,
): void {
  const { before, after, kind } = undone
  if (after === null) return
  for (const { importJobId } of shadowed) {
    if (!context.laterJobIds.includes(importJobId)) continue
    const now = nowFor(importJobId)
    // A person may have been merged into another one since.
    const subject = 'uuid' in now ? now.uuid : undone.subject
    if ([undone.subject, subject].some(name => context.undoRecordOfJob(importJobId, kind, name) !== undefined)) continue
    const sides = sidesOf(importJobId, { before, after }, now, shadowed, context.laterJobIds)
    if (sides === null) continue
    const [was, became] = [sides.before, sides.after].map(side => ({ ...now, ...side, version: versionOfMade }))
    context.rewrite({ ...undone, importJobId, subject, before: was!, after: became! } as UndoRecord)
  }
}

/** The other events that linked one of a person's ids, which identifies the person: ids of jobs, 0 for live data. */
export function identifiersOf(context: UndoContext, distinctIds: readonly string[]): number[] {
  return distinctIds
    .flatMap(id => context.usesOf(id))
    .filter(({ otherId }) => otherId !== null)
    .map(({ importJobId }) => importJobId)
}

/** Leaves to the first of the later jobs whether undoing it makes the person unidentified again. */
export function handOverIdentity(
  context: UndoContext,
  undone: UndoRecordOf<'person'>,
  person: NonNullable<UndoRecordOf<'person'>['after']>,
  identifiers: readonly number[],
): void {
  const successorId = context.findSuccessor(identifiers)
  if (successorId === null) return
  const theirs = context.undoRecordOfJob(successorId, 'person', person.uuid) ?? {
    ...{ ...undone, importJobId: successorId, subject: person.uuid, before: person, after: person },
  }
  const became = theirs.after && { ...theirs.after, isIdentified: true }
  if (theirs.before !== null)
    context.rewrite({ ...theirs, before: { ...theirs.before, isIdentified: false }, after: became })
}
