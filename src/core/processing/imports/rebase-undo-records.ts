// The undo records by which later jobs are undone, when one beneath them is: those that they have, and those of jobs that had none of
// a subject because all that they wrote was beneath. By these, undoing such a job takes its values away again.

import type { UndoRecord, UndoRecordOf } from '#core/imports/import-changes.ts'
import { type ProfileUndoRecord, type Shadowed, sidesOf, versionOfMade } from './shadowed.ts'
import type { UndoContext } from './undo-batch.ts'

/**
 * Rewrites the undo records that later jobs have of what one subject is by now, as if the undone import had never been.
 * @param without the undo record without that import.
 * @param version of the subject, as it was and as it is now.
 * @param successorId the later job for which the subject was not there before.
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
 * Keeps an undo record for each of the published jobs that had none. It has nothing but the keys that the undone import wrote, and
 * a version that no subject has.
 * @param undone the undo record of the import that is undone.
 * @param shadowed what imports wrote beneath it.
 * @param nowFor what the subject is now, as an undo record of the job names it.
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

/** Who else has linked one of a person's ids with another one, which identifies it: ids of jobs, 0 for live data. */
export function identifiersOf(context: UndoContext, distinctIds: readonly string[]): number[] {
  return distinctIds
    .flatMap(id => context.usesOf(id))
    .filter(({ otherId }) => otherId !== null)
    .map(({ importJobId }) => importJobId)
}

/** Undoing the first of the later jobs will show whether the person is still identified then. */
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
