// Undoes an implicit job: its writes are recognized by its marks, because it has no undo records. A key that it wrote gets the
// shadowed value of other imports and later live events, or is removed; a person or a group that nothing else uses is removed
// as well. Merges and times of creation stay.
// Source: docs/wire/import.md §2.11; docs/decisions/0053-import-jobs.md.

import type { Group } from '#core/groups/group.ts'
import { noImportChanges, type UndoRecord } from '#core/imports/import-changes.ts'
import type { Person } from '#core/persons/person.ts'
import { type Profile, ProfileDraft } from '#core/persons/profile.ts'
import { noChunkChanges } from '#core/processing/chunk.ts'
import { countedNotes, type JobBatch, type PublishedBatch } from './publish-staging.ts'
import { addUndoRecords, rebaseUndoRecords } from './rebase-undo-records.ts'
import { type ProfileUndoRecord, type Shadowed, undoRecordWithShadowed, withWritesBeneath } from './shadowed.ts'
import type { UndoBatch, UndoContext } from './undo-batch.ts'
import { groupSubject } from './undo-records.ts'
import { collectUndo, mappingRemoval, noteMissing, type Undoing } from './undoing.ts'

/** As for a job, but every published job of the project counts as later: an implicit job has no place among them. */
export interface UndoImplicitJobBatch extends UndoBatch {
  /** The distinct ids in `loaded` that have rows of other events. */
  readonly usedIds: ReadonlySet<string>
}

/** @param uuids the persons to undo; `loaded` must have every id of each. */
export function undoImplicitJobOfPersons(batch: UndoImplicitJobBatch, uuids: readonly string[]): PublishedBatch {
  const publishedVersions = new Map(
    Array.from(batch.publishedOverrides ?? [], override => [override.distinctId, override.version]),
  )
  return collectUndo(batch, (context, undoing) => {
    for (const uuid of uuids) {
      const person = context.persons.get(uuid)
      const without = person && withoutValuesOf(person, batch.importJobId)
      if (person === undefined || without == null) continue
      const isUsed = context.idsOf(uuid).some(({ distinctId }) => batch.usedIds.has(distinctId))
      const isLeft = undoImplicitJobOfPerson(context, undoing, person, without, isUsed)
      if (isLeft) continue
      undoing.removedPersons.push({ projectId: batch.projectId, uuid, loadedVersion: person.version })
      for (const id of context.idsOf(uuid)) {
        const { mapping, override, nextVersion } = mappingRemoval(id, publishedVersions.get(id.distinctId))
        undoing.removedMappings.push(mapping)
        if (override !== null) undoing.overrides.push(override)
        if (nextVersion !== null) undoing.nextVersions.push(nextVersion)
      }
    }
  })
}

/** @returns whether the person stays. */
function undoImplicitJobOfPerson(
  context: UndoContext,
  undoing: Undoing,
  person: Person,
  without: Person,
  isUsed: boolean,
): boolean {
  const { uuid } = person
  const ids = context.idsOf(uuid).map(({ distinctId }) => distinctId)
  const shadowed = context.shadowedIn(ids)
  // For implicit jobs, the links of the ids are not loaded.
  const homes = context.homesOf(uuid, undefined, false)
  const { subject, unsure, missing } = withWritesBeneath(without, person, context.laterWritesOf(ids), shadowed, {
    homes,
  })
  if (!hasValues(subject) && !isUsed) return false
  for (const key of unsure)
    undoing.notes.push({ reason: 'undo_left:property_was_written', details: { personId: uuid, key } })
  noteMissing(undoing, { personId: uuid }, missing)
  const now = { ...subject, version: person.version + 1 }
  undoing.persons.set(uuid, { row: now, loadedVersion: person.version })
  const [before, after] = [without, person].map(side => ({ ...side, anyId: ids[0] ?? '' }))
  const undoRecord = {
    importJobId: context.importJobId,
    projectId: context.projectId,
    kind: 'person',
    subject: uuid,
  } as const
  const beneath = missing.length > 0 ? [] : shadowed
  const undone = { ...undoRecord, before: before!, after: after! }
  const version = { was: person.version, now: now.version }
  rebaseUndoRecords(context, 'person', [uuid], withoutImplicitJob(context, undone, beneath), version)
  addUndoRecords(context, undone, beneath, importJobId => ({
    ...{ ...now, anyId: context.idWrittenBy(importJobId, ids) ?? '' },
  }))
  return true
}

/**
 * Leaves persons of the implicit job unchanged, because their other uses are unknown. They keep their marks, so a worker that
 * restarts the step finds and counts them again.
 */
export function leaveImplicitJobOfPersons(batch: JobBatch, uuids: readonly string[]): PublishedBatch {
  return noteUnreadableSubjects(
    batch,
    uuids.map(personId => ({ personId })),
  )
}

/** Leaves groups unchanged, for the same reason. */
export function leaveImplicitJobOfGroups(batch: JobBatch, groups: readonly GroupName[]): PublishedBatch {
  return noteUnreadableSubjects(
    batch,
    groups.map(({ typeIndex, key }) => ({ groupTypeIndex: typeIndex, groupKey: key })),
  )
}

function noteUnreadableSubjects(
  { importJobId }: JobBatch,
  subjects: readonly Record<string, string | number>[],
): PublishedBatch {
  const notes = subjects.map(details => ({ reason: 'undo_left:events_not_readable', details }) as const)
  const imports = { ...noImportChanges, notes: countedNotes(importJobId, notes) }
  return { overrides: [], changes: { ...noChunkChanges, imports } }
}

type GroupName = Pick<Group, 'typeIndex' | 'key'>

/** @param groups the groups to undo. */
export function undoImplicitJobOfGroups(batch: UndoBatch, groups: readonly GroupName[]): PublishedBatch {
  return collectUndo(batch, (context, undoing) => {
    for (const name of groups) {
      const group = context.groups.get(groupSubject(name))
      const without = group && withoutValuesOf(group, batch.importJobId)
      if (group !== undefined && without != null) undoImplicitJobOfGroup(context, undoing, group, without)
    }
  })
}

function undoImplicitJobOfGroup(context: UndoContext, undoing: Undoing, group: Group, without: Group): void {
  const { projectId, typeIndex, key, version } = group
  const subject = groupSubject(group)
  const shadowed = context.shadowedInGroup(subject)
  const { subject: left, missing } = withWritesBeneath(without, group, [], shadowed)
  if (!hasValues(left) && context.usersOfGroup(subject).length === 0) {
    undoing.removedGroups.push({ projectId, typeIndex, key, loadedVersion: version })
    return
  }
  noteMissing(undoing, { groupTypeIndex: typeIndex, groupKey: key }, missing)
  const now = { ...left, version: version + 1 }
  undoing.groups.push({ row: now, loadedVersion: version })
  const { importJobId } = context
  const undoRecord = { importJobId, projectId, kind: 'group', subject, before: without, after: group } as const
  const beneath = missing.length > 0 ? [] : shadowed
  rebaseUndoRecords(context, 'group', [subject], withoutImplicitJob(context, undoRecord, beneath), {
    was: version,
    now: now.version,
  })
  addUndoRecords(context, undoRecord, beneath, () => now)
}

/** A published job's undo record of the subject, as if the implicit job had never existed. */
function withoutImplicitJob(context: UndoContext, undone: ProfileUndoRecord, shadowed: readonly Shadowed[]) {
  return (undoRecord: ProfileUndoRecord) =>
    undoRecordWithShadowed(
      undoRecord,
      undoRecordWithout(undoRecord, context.importJobId),
      undone,
      shadowed,
      context.laterJobIds,
    )
}

/** The undo record without the values of an implicit job. */
export function undoRecordWithout<Of extends UndoRecord>(undoRecord: Of, importJobId: number): Of {
  if (undoRecord.kind !== 'person' && undoRecord.kind !== 'group') return undoRecord
  const undoSide = <Side extends Profile>(profile: Side | null) =>
    profile === null ? null : (withoutValuesOf(profile, importJobId) ?? profile)
  return {
    ...undoRecord,
    before: undoSide<Profile>(undoRecord.before),
    after: undoSide<Profile>(undoRecord.after),
  } as Of
}

/** @returns null for a profile without a value of the job. */
function withoutValuesOf<Of extends Profile>(profile: Of, importJobId: number): Of | null {
  const draft = new ProfileDraft({ properties: profile.properties, marks: profile.marks })
  for (const [key, mark] of Object.entries(profile.marks)) {
    if (mark.importJobId !== importJobId || mark.kind === 'live_once') continue
    draft.removeProperty(key)
    draft.removeMark(key)
  }
  const left = draft.result()
  return left === null ? null : { ...profile, properties: left.properties, marks: left.marks }
}

function hasValues({ properties }: Profile): boolean {
  return Object.keys(properties).length > 0
}
