// Undoes the changes of a published import job to persons and groups, using the undo records stored by publishing: they return
// to their earlier state, key by key if others have written since. What cannot be undone stays and is noted. The undo records
// of later jobs are changed accordingly, so that undoing those does not restore this job's values.
// Pure; `services/imports/undo-job.ts` loads and commits. Source: docs/wire/import.md §2.11.

import type { Group } from '#core/groups/group.ts'
import { noImportChanges, type UndoRecord, type UndoRecordOf } from '#core/imports/import-changes.ts'
import type { Person } from '#core/persons/person.ts'
import type { Profile } from '#core/persons/profile.ts'
import { type ChunkChanges, noChunkChanges } from '#core/processing/chunk.ts'
import { undoRecordWithBrought, withBrought, withHidden } from './joined-persons.ts'
import type { PublishedBatch } from './publish-staging.ts'
import { addUndoRecords, handOverIdentity, identifiersOf, rebaseUndoRecords } from './rebase-undo-records.ts'
import { findUncertainKeys, isJoinOf, keysAdded, revertSubject, showsValueOf } from './revert.ts'
import {
  createdAtWithShadowed,
  laterUndoRecordWithout,
  type ProfileUndoRecord,
  type Shadowed,
  withWritesBeneath,
} from './shadowed.ts'
import type { UndoBatch, UndoContext } from './undo-batch.ts'
import {
  collectUndo,
  cutIdList,
  noteMissing,
  noteRefusedLinks,
  omitAnyId,
  removeMapping,
  type Undoing,
  type UndoRefusal,
} from './undoing.ts'

/** Restores persons. @param subjects the subjects of their undo records. */
export function undoPersons(batch: UndoBatch, subjects: readonly string[]): PublishedBatch {
  return undoSubjects(batch, subjects, findPersonRecord, (context, undoing, undoRecord) => {
    if (undoRecord.after !== null) undoPerson(context, undoing, undoRecord, undoRecord.after)
  })
}

/** Leaves persons unchanged, because their other uses are unknown. */
export function leavePersons(batch: UndoBatch, subjects: readonly string[]): PublishedBatch {
  return undoSubjects(batch, subjects, findPersonRecord, (_context, undoing, { subject, after }) => {
    if (after !== null) undoing.notes.push({ reason: 'undo_left:events_not_readable', details: { personId: subject } })
  })
}

/** Leaves groups unchanged, for the same reason. */
export function leaveGroups(batch: UndoBatch, subjects: readonly string[]): PublishedBatch {
  return undoSubjects(batch, subjects, findGroupRecord, (_context, undoing, { after }) => {
    if (after === null) return
    const details = { groupTypeIndex: after.typeIndex, groupKey: after.key }
    undoing.notes.push({ reason: 'undo_left:events_not_readable', details })
  })
}

/** Restores groups. @param subjects the subjects of their undo records. */
export function undoGroups(batch: UndoBatch, subjects: readonly string[]): PublishedBatch {
  return undoSubjects(batch, subjects, findGroupRecord, (context, undoing, undoRecord) => {
    if (undoRecord.after !== null) undoGroup(context, undoing, undoRecord, undoRecord.after)
  })
}

const findPersonRecord = (context: UndoContext, subject: string) => context.undoRecord('person', subject)
const findGroupRecord = (context: UndoContext, subject: string) => context.undoRecord('group', subject)

/** Marks every undo record that is found as done. */
function undoSubjects<Of extends UndoRecord>(
  batch: UndoBatch,
  subjects: readonly string[],
  findRecord: (context: UndoContext, subject: string) => Of | undefined,
  undoOne: (context: UndoContext, undoing: Undoing, undoRecord: Of) => void,
): PublishedBatch {
  return collectUndo(batch, (context, undoing) => {
    for (const subject of subjects) {
      const undoRecord = findRecord(context, subject)
      if (undoRecord === undefined) continue
      undoing.doneUndoRecords.push(undoRecord)
      undoOne(context, undoing, undoRecord)
    }
  })
}

/** Notes a group type that stays, and makes another job that names it responsible for deleting it. */
export function leaveGroupType(undoRecord: UndoRecord, successorId: number | null, reason: UndoRefusal): ChunkChanges {
  const { importJobId, subject } = undoRecord
  const details = { groupTypeIndex: Number(subject) }
  return {
    ...noChunkChanges,
    imports: {
      ...noImportChanges,
      rewrittenUndoRecords: successorId === null ? [] : [{ ...undoRecord, importJobId: successorId }],
      doneUndoRecords: [undoRecord],
      notes: [{ importJobId, reason, count: 1, samples: [details] }],
    },
  }
}

type PersonValue = NonNullable<UndoRecordOf<'person'>['before']>

function undoPerson(
  context: UndoContext,
  undoing: Undoing,
  undoRecord: UndoRecordOf<'person'>,
  after: PersonValue,
): void {
  const { subject, before } = undoRecord
  const person =
    context.persons.get(subject) ?? context.persons.get(context.mappings.get(after.anyId)?.personUuid ?? '')
  if (person === undefined) {
    undoing.notes.push({ reason: 'undo_left:person_is_gone', details: { personId: subject } })
    return
  }
  const isSame = person.uuid === subject
  const isMade = before === null
  const ids = context.idsOf(person.uuid).map(({ distinctId }) => distinctId)
  if (isSame && (isMade || (after.isIdentified && !before.isIdentified)))
    noteRefusedLinks(context, undoing, { uuid: subject, isMade }, ids)
  if (isSame && wasAbsentOrEmpty(before) && removePerson(context, undoing, person, undoRecord, after)) return
  const kept = before === null && isSame ? keepUsedPerson(context, undoing, undoRecord) : null
  if (before === null && !isSame) forgetMadePerson(context, subject, after)
  const identifiers = identifiersOf(context, ids)
  const isUntouched = isSame && person.version === after.version
  const shadowed = [...context.shadowedIn(ids, !isSame), ...(isSame ? context.shadowedOfJoined(subject) : [])]
  const joined = context.joinedPersons.joinedIn(person.uuid, shadowed)
  const { subject: alone, left } =
    isUntouched && before !== null
      ? { subject: omitAnyId(before), left: [] }
      : context.joinedPersons.reverted(person, { before, after }, joined)
  const brought = isSame ? context.broughtTo(subject) : []
  const without = withBrought(alone, person, brought)
  const later = context.laterWritesOf(ids)
  const homes = context.homesOf(person.uuid, isSame ? undefined : { uuid: subject, anyId: after.anyId })
  const {
    subject: changed,
    unsure,
    missing,
  } = withWritesBeneath(without, isSame ? person : withHidden(person, { before, after }), later, shadowed, {
    ...{ homes, added: new Set(isSame ? keysAdded(before, after) : []) },
  })
  // Another value of the survivor of a later merge may always have been the survivor's own. And undoing the job's changes to a
  // person that was merged into the survivor may already have removed the job's value.
  const isJoined = context.idsOf(person.uuid).some(({ version }) => version > 0)
  const ofOthers = shadowed.map(({ profile }) => profile)
  const wasTaken = (key: string) => isJoined && isJoinOf(ofOthers, key, person)
  const stays = left.filter(key => (isSame ? !wasTaken(key) : showsValueOf(person, after, key)))
  for (const key of new Set([...stays, ...unsure, ...findUncertainKeys(changed, left, later)]))
    undoing.notes.push({ reason: 'undo_left:property_was_written', details: { personId: subject, key } })
  noteMissing(undoing, { personId: person.uuid }, missing)
  const createdAtMs = isSame
    ? changed.createdAtMs
    : createdAtOfMerged(context, undoing, person, undoRecord, after, shadowed)
  if (isSame && createdAtMs !== person.createdAtMs && !isUntouched && context.wasMergedInto(subject))
    undoing.notes.push({ reason: 'undo_left:created_at_was_merged', details: { personId: subject } })
  const row = {
    ...changed,
    createdAtMs,
    isIdentified: changed.isIdentified || (person.isIdentified && identifiers.length > 0),
  }
  const isAsBefore = isUntouched && before !== null && changed === without && row.isIdentified === before.isIdentified
  const isChanged = isAsBefore || changed !== person || createdAtMs !== person.createdAtMs
  const rowVersion = isAsBefore ? row.version : person.version + 1
  const version = isChanged ? writePerson(context, undoing, person, { ...row, version: rowVersion }) : person.version
  const beneath = missing.length > 0 ? [] : shadowed
  const withoutJob = (of: ProfileUndoRecord) => {
    const without = laterUndoRecordWithout(of, undoRecord, joined.others, beneath, context.laterJobIds)
    return of.subject === subject ? undoRecordWithBrought(of, without, brought, context.laterJobIds) : without
  }
  rebaseUndoRecords(context, 'person', [subject, person.uuid], withoutJob, { was: person.version, now: version }, kept)
  if (kept !== null) handOverPerson(context, undoRecord, after, person, kept)
  addUndoRecords(context, undoRecord, beneath, importJobId => ({
    ...{ ...row, version, anyId: context.idWrittenBy(importJobId, ids) ?? '' },
  }))
  if (row.isIdentified && !changed.isIdentified)
    handOverIdentity(context, undoRecord, { ...row, version, anyId: after.anyId }, identifiers)
}

/**
 * Whether the subject did not exist before the job, or existed only because of an implicit job that has been undone:
 * any other creator leaves a property.
 */
function wasAbsentOrEmpty(before: Profile | null): boolean {
  return before === null || Object.keys(before.properties).length + Object.keys(before.marks).length === 0
}

/** Removes a person that only the job uses. @returns whether it was removed. */
function removePerson(
  context: UndoContext,
  undoing: Undoing,
  person: Person,
  { before: was }: UndoRecordOf<'person'>,
  after: PersonValue,
): boolean {
  const { projectId } = context
  const { uuid, version } = person
  const ids = context.idsOf(uuid)
  const made = ids.flatMap(({ distinctId }) => context.undoRecord('mapping', distinctId) ?? [])
  const areOfJob = made.length === ids.length && made.every(({ before }) => before === null)
  if ((was === null && !areOfJob) || ids.some(({ distinctId }) => context.usesOf(distinctId).length > 0)) return false
  const isTheJobs =
    version === after.version || Object.keys(revertSubject(person, was, after).subject.properties).length === 0
  if (!isTheJobs) return false
  for (const id of ids) removeMapping(undoing, id)
  for (const undoRecord of made) undoing.doneUndoRecords.push(undoRecord)
  undoing.removedPersons.push({ projectId, uuid, loadedVersion: version })
  context.persons.delete(uuid)
  return true
}

/**
 * Notes that a person created by the job stays. If only later jobs use it, undoing the first of them will remove it.
 * @returns that first job; null if not only later jobs use the person.
 */
function keepUsedPerson(context: UndoContext, undoing: Undoing, undoRecord: UndoRecordOf<'person'>): number | null {
  const { subject } = undoRecord
  const ids = context.idsOf(subject)
  undoing.notes.push({
    reason: 'undo_left:person_is_used',
    details: { personId: subject, distinctIds: cutIdList(ids) },
  })
  const successorId = context.findSuccessor(
    ids.flatMap(
      ({ distinctId }) =>
        context.bringerOf(distinctId, subject) ?? context.usesOf(distinctId).map(({ importJobId }) => importJobId),
    ),
  )
  if (successorId === null) return null
  for (const { distinctId } of ids) {
    const mapping = context.undoRecord('mapping', distinctId)
    if (mapping?.before === null) context.handOver(mapping, successorId)
  }
  return successorId
}

/** Changes the undo records of later jobs that merged the person away, as if it had never existed. */
function forgetMadePerson(context: UndoContext, uuid: string, { anyId }: PersonValue): void {
  const home = context.mappings.get(anyId)?.personUuid ?? ''
  for (const undoRecord of context.laterUndoRecords('person', uuid)) context.rewrite({ ...undoRecord, before: null })
  for (const { distinctId } of context.idsOf(home))
    for (const undoRecord of context.laterUndoRecords('mapping', distinctId))
      if (undoRecord.before?.personUuid === uuid) context.rewrite({ ...undoRecord, before: null })
}

/** The time of creation of a person into which another was merged: the merge took the earlier time of both. */
function createdAtOfMerged(
  context: UndoContext,
  undoing: Undoing,
  person: Person,
  { before }: UndoRecordOf<'person'>,
  after: PersonValue,
  shadowed: readonly Shadowed[],
): number {
  if (person.createdAtMs !== after.createdAtMs || before?.createdAtMs === after.createdAtMs) return person.createdAtMs
  const ofMerge = context
    .laterUndoRecords('person', person.uuid)
    .find(undoRecord => undoRecord.after?.createdAtMs === after.createdAtMs)
  if (ofMerge?.before != null && ofMerge.before.createdAtMs > after.createdAtMs)
    return createdAtWithShadowed(
      Math.min(ofMerge.before.createdAtMs, before?.createdAtMs ?? Number.POSITIVE_INFINITY),
      after.createdAtMs,
      shadowed,
    )
  undoing.notes.push({ reason: 'undo_left:created_at_was_merged', details: { personId: person.uuid } })
  return person.createdAtMs
}

/** Hands the undo record of a person created by the job over to the later job that is to remove the person. */
function handOverPerson(
  context: UndoContext,
  undoRecord: UndoRecordOf<'person'>,
  after: PersonValue,
  person: Person,
  successorId: number,
): void {
  const { subject } = undoRecord
  if (context.undoRecordOfJob(successorId, 'person', subject) !== undefined) return
  const now = context.persons.get(subject) ?? person
  context.rewrite({ ...undoRecord, importJobId: successorId, before: null, after: { ...now, anyId: after.anyId } })
}

/** Writes a person once, even for several undo records, based on the loaded version. @returns its new version. */
function writePerson(context: UndoContext, undoing: Undoing, person: Person, row: Person): number {
  const known = undoing.persons.get(person.uuid)
  const version = known?.row.version ?? row.version
  undoing.persons.set(person.uuid, { row: { ...row, version }, loadedVersion: known?.loadedVersion ?? person.version })
  context.persons.set(person.uuid, { ...row, version })
  return version
}

function undoGroup(context: UndoContext, undoing: Undoing, undoRecord: UndoRecordOf<'group'>, after: Group): void {
  const { subject, before } = undoRecord
  const { projectId } = context
  const group = context.groups.get(subject)
  const { typeIndex, key } = after
  const details = { groupTypeIndex: typeIndex, groupKey: key }
  if (group === undefined) {
    undoing.notes.push({ reason: 'undo_left:group_is_gone', details })
    return
  }
  const { version } = group
  const isUntouched = version === after.version
  const users = context.usersOfGroup(subject)
  const successorId = context.findSuccessor(users)
  const isTheJobs = isUntouched || Object.keys(revertSubject(group, before, after).subject.properties).length === 0
  // Describing a group without properties also counts as a use.
  if (wasAbsentOrEmpty(before) && users.length === 0 && isTheJobs) {
    undoing.removedGroups.push({ projectId, typeIndex, key, loadedVersion: version })
    return
  }
  if (before === null) undoing.notes.push({ reason: 'undo_left:group_is_used', details })
  const shadowed = context.shadowedInGroup(subject)
  const others = shadowed.map(({ profile }) => profile)
  const { subject: without, left } =
    isUntouched && before !== null
      ? { subject: before, left: [] }
      : revertSubject(group, before, after, { before, others })
  const { subject: changed, missing } = withWritesBeneath(without, group, [], shadowed)
  for (const property of left)
    undoing.notes.push({ reason: 'undo_left:property_was_written', details: { ...details, key: property } })
  noteMissing(undoing, details, missing)
  const isAsBefore = isUntouched && changed === without
  const versionNow = changed === group || isAsBefore ? changed.version : version + 1
  if (changed !== group) undoing.groups.push({ row: { ...changed, version: versionNow }, loadedVersion: version })
  const beneath = missing.length > 0 ? [] : shadowed
  const withoutJob = (of: ProfileUndoRecord) =>
    laterUndoRecordWithout(of, undoRecord, others, beneath, context.laterJobIds)
  rebaseUndoRecords(
    context,
    'group',
    [subject],
    withoutJob,
    { was: version, now: versionNow },
    before === null ? successorId : null,
  )
  if (before === null && successorId !== null && context.undoRecordOfJob(successorId, 'group', subject) === undefined)
    context.rewrite({ ...undoRecord, importJobId: successorId, after: { ...changed, version: versionNow } })
  addUndoRecords(context, undoRecord, beneath, () => changed)
}
