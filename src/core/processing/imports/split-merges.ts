// Splits the persons that a job merged and unlinks the ids that it linked. The ids of a survivor form pieces, each of which was
// a separate person before the job. A piece is split off unless live data or another job holds it: by its own link between the
// pieces, or by having changed the survivor's ids. A piece held by a later job is undone with that job.
// Pure. Source: docs/wire/import.md §2.11.

import type { Assignments, UndoRecordOf } from '#core/imports/import-changes.ts'
import type { LaterWrite } from '#core/imports/other-use.ts'
import type { Person } from '#core/persons/person.ts'
import { personUuid } from '#core/persons/person-uuid.ts'
import { emptyProfile, ProfileDraft } from '#core/persons/profile.ts'
import { mergeProfiles } from '#core/processing/properties/import-update.ts'
import { filteredProperties } from '#core/processing/properties/mapped-properties.ts'
import { exceedsPersonLimit, trimProfile } from '#core/processing/properties/person-update.ts'
import type { PublishedBatch } from './publish-staging.ts'
import { addUndoRecords, handOverIdentity, identifiersOf } from './rebase-undo-records.ts'
import { keysChanged, revertSubject, withLaterWrites } from './revert.ts'
import { versionOfMade } from './shadowed.ts'
import type { UndoBatch, UndoContext } from './undo-batch.ts'
import {
  collectUndo,
  cutIdList,
  moveMappingBack,
  noteRefusedLinks,
  omitAnyId,
  removeMapping,
  type Undoing,
  type UndoRefusal,
} from './undoing.ts'

/** The undo records of the ids of one earlier person. */
type Piece = readonly UndoRecordOf<'mapping'>[]

/** Why a piece stays, and the later job that undoes it; null if no job does. */
interface Hold {
  readonly reason: UndoRefusal
  readonly byJobId: number | null
}

/** `loaded` must have every id of each person. @param survivorUuids the persons that got ids through the job. */
export function undoMerges(batch: UndoBatch, survivorUuids: readonly string[]): PublishedBatch {
  return collectUndo(batch, (context, undoing) => {
    for (const uuid of survivorUuids) undoMergesInto(context, undoing, uuid)
  })
}

/** Leaves the merges into these persons unchanged, because their other uses are unknown. */
export function leaveMerges(batch: UndoBatch, survivorUuids: readonly string[]): PublishedBatch {
  const unreadable: Hold = { reason: 'undo_left:events_not_readable', byJobId: null }
  return collectUndo(batch, (context, undoing) => {
    for (const uuid of survivorUuids) undoMergesInto(context, undoing, uuid, unreadable)
  })
}

/** @param ofAll a hold for all pieces, which overrides other holds. */
function undoMergesInto(context: UndoContext, undoing: Undoing, uuid: string, ofAll?: Hold): void {
  const count = context.undoRecord('id_count', uuid)
  if (count?.after == null) return
  undoing.doneUndoRecords.push(count)
  const { anyId = '' } = count.after
  const home = context.persons.has(uuid) ? uuid : context.mappings.get(anyId)?.personUuid
  if (home === undefined) return
  const ids = context.idsOf(home)
  const undoRecords = ids.flatMap(({ distinctId }) => context.undoRecord('mapping', distinctId) ?? [])
  const moved = undoRecords.filter(
    undoRecord => undoRecord.after?.personUuid === uuid && originOf(context, undoRecord) !== uuid,
  )
  if (moved.length === 0) return
  const pieces = Map.groupBy(moved, undoRecord => originOf(context, undoRecord))
  if (ofAll !== undefined) {
    leavePieces(context, undoing, uuid, [moved], ofAll)
    return
  }
  if (home !== uuid) {
    const taker = context.laterUndoRecords('person', uuid).find(({ after }) => after === null)
    leavePieces(context, undoing, uuid, [moved], {
      reason: 'undo_left:merge_was_built_on',
      byJobId: taker?.importJobId ?? null,
    })
    return
  }
  const ofLaterJobs = new Set(ids.filter(({ distinctId }) => context.bringerOf(distinctId, uuid) !== null))
  if (ids.length - ofLaterJobs.size !== count.after.count) {
    leavePieces(context, undoing, uuid, [moved], { reason: 'undo_left:merge_was_built_on', byJobId: null })
    return
  }
  const holds = holdsOf(context, ids, moved)
  const held = Array.from(pieces, ([origin, piece]) => ({
    piece,
    hold: holds.get(origin) ?? findOwnHold(context, undoing, piece),
  }))
  // Held pieces come first, so that the jobs that take them over have their counts when the other pieces are split off.
  for (const { piece, hold } of held) if (hold !== null) leavePieces(context, undoing, uuid, [piece], hold)
  for (const { piece, hold } of held) if (hold === null) splitPiece(context, undoing, uuid, piece)
}

/** The person that had the id before the job; a unique name for an id without a person. */
function originOf({ projectId }: UndoContext, { subject, before, after }: UndoRecordOf<'mapping'>): string {
  if (before !== null) return before.personUuid
  const derived = personUuid(projectId, subject)
  return derived === after?.personUuid ? derived : `id ${subject}`
}

/**
 * The holds by the origin of each piece: a later event of live data or of another job links an id of the piece with
 * another id of the survivor.
 */
function holdsOf(
  context: UndoContext,
  ids: readonly { readonly distinctId: string }[],
  moved: Piece,
): ReadonlyMap<string, Hold> {
  const holds = new Map<string, Hold>()
  const originOfId = new Map(moved.map(undoRecord => [undoRecord.subject, originOf(context, undoRecord)]))
  const isOfSurvivor = new Set(ids.map(({ distinctId }) => distinctId))
  for (const { distinctId } of ids)
    for (const { otherId, isLater, importJobId } of context.usesOf(distinctId)) {
      if (otherId === null || !isLater || !isOfSurvivor.has(otherId)) continue
      const origins = [originOfId.get(distinctId), originOfId.get(otherId)]
      if (origins[0] === origins[1]) continue
      for (const origin of origins)
        if (origin !== undefined) recordHold(context, holds, origin, importJobId === 0 ? null : importJobId)
    }
  return holds
}

/** A hold by live data is permanent; of several jobs, the one that was published first undoes the piece. */
function recordHold(
  { laterJobIds }: UndoContext,
  holds: Map<string, Hold>,
  origin: string,
  byJobId: number | null,
): void {
  const known = holds.get(origin)
  if (known?.byJobId === null) return
  const isFirst =
    byJobId === null || known === undefined || laterJobIds.indexOf(byJobId) < laterJobIds.indexOf(known.byJobId)
  if (isFirst) holds.set(origin, { reason: 'undo_left:link_was_confirmed', byJobId })
}

/** Why a piece stays although no link holds it. */
function findOwnHold(context: UndoContext, undoing: Undoing, piece: Piece): Hold | null {
  const [{ subject, before }] = piece as [UndoRecordOf<'mapping'>]
  if (before !== null) {
    const isThere = context.persons.has(before.personUuid) || undoing.persons.has(before.personUuid)
    const canReturn = isThere || context.undoRecord('person', before.personUuid)?.before != null
    return canReturn ? null : { reason: 'undo_left:merge_was_built_on', byJobId: null }
  }
  const uses = context.usesOf(subject)
  if (uses.length === 0) return null
  return {
    reason: 'undo_left:link_is_used',
    byJobId: context.findSuccessor(uses.map(({ importJobId }) => importJobId)),
  }
}

function splitPiece(context: UndoContext, undoing: Undoing, survivorUuid: string, piece: Piece): void {
  const origin = piece[0]!.before?.personUuid ?? null
  for (const undoRecord of piece) {
    undoing.doneUndoRecords.push(undoRecord)
    const { subject } = undoRecord
    const now = context.mappings.get(subject)!
    if (origin === null) removeMapping(undoing, now)
    else moveMappingBack(undoing, now, origin)
  }
  for (const undoRecord of context.laterUndoRecords('id_count', survivorUuid))
    if (undoRecord.after !== null)
      context.rewrite({ ...undoRecord, after: { ...undoRecord.after, count: undoRecord.after.count - piece.length } })
  const person = origin === null ? undefined : context.undoRecord('person', origin)
  if (person?.before?.isIdentified !== true)
    noteRefusedLinks(
      context,
      undoing,
      { uuid: survivorUuid, isMade: origin === null },
      piece.map(({ subject }) => subject),
    )
  if (origin === null) return
  if (person?.before != null && !context.persons.has(origin)) {
    const ids = piece.map(({ subject }) => subject)
    const { properties } = person.before
    // Values that were set stay with the survivor, and are noted. Writes that the survivor's values blocked are stored nowhere,
    // and properties that were unset are still in the undo record: both are applied here.
    const isNowhere = ({ op, key }: LaterWrite) =>
      op !== 'set' || (filteredProperties.has(key) && !Object.hasOwn(properties, key))
    const laterWrites = context.laterWritesOf(ids).filter(isNowhere)
    // The survivor's current values came to it and not to this person, so an `$unset` removes any value in the undo record.
    const survivor = context.persons.get(survivorUuid)!
    const { subject } = withLaterWrites(omitAnyId(person.before), survivor, laterWrites, emptyProfile)
    const identifiers = identifiersOf(context, ids)
    // The survivor's earlier time of creation hid the first events of these imports.
    const hidden = context
      .shadowedIn(ids)
      .filter(({ firstMs }) => !mayHaveLoweredCreatedAt(context, survivorUuid, firstMs))
    const createdAtMs = hidden.reduce((first, { firstMs }) => Math.min(first, firstMs), subject.createdAtMs)
    const row = { ...subject, createdAtMs, isIdentified: subject.isIdentified || identifiers.length > 0 }
    undoing.persons.set(origin, { row, loadedVersion: null })
    addUndoRecords(context, { ...person, after: { ...person.before, createdAtMs } }, hidden, importJobId => ({
      ...{ ...row, anyId: context.idWrittenBy(importJobId, ids) ?? ids[0]! },
    }))
    if (row.isIdentified && !subject.isIdentified)
      handOverIdentity(context, person, { ...row, anyId: ids[0]! }, identifiers)
  }
  if (person !== undefined && person.after === null) undoing.doneUndoRecords.push(person)
  returnAssignments(context, undoing, origin, survivorUuid)
  noteValuesThatStay(context, undoing, survivorUuid, piece)
}

/**
 * Returns the person's own assignments; the survivor keeps its own. If the job later merged that survivor away, the
 * last survivor may have got some of the assignments.
 */
function returnAssignments(context: UndoContext, undoing: Undoing, uuid: string, survivorUuid: string): void {
  const kept = context.undoRecord('assignments', uuid)
  if (kept?.before == null || kept.after === null) return
  undoing.doneUndoRecords.push(kept)
  const assignments = context.assignmentsGivenTo(uuid).reduce<Assignments>(assignmentsWithout, kept.before)
  let given: Assignments = kept.after
  for (let holder = kept.after.personUuid; holder !== survivorUuid; ) {
    const next = context.undoRecord('assignments', holder)?.after
    if (next == null) break
    given = assignmentsWithout(given, assignmentsWithout(given, next))
    holder = next.personUuid
  }
  undoing.returnedAssignments.push({ projectId: context.projectId, uuid, assignments, survivorUuid, given })
}

function assignmentsWithout({ hashKeys, cohortIds }: Assignments, other: Assignments): Assignments {
  const others = new Set(other.hashKeys.map(row => row.join('\0')))
  return {
    hashKeys: hashKeys.filter(row => !others.has(row.join('\0'))),
    cohortIds: cohortIds.filter(id => !other.cohortIds.includes(id)),
  }
}

/** Whether an import's first event may have lowered the time of creation that the survivor has. */
function mayHaveLoweredCreatedAt(context: UndoContext, survivorUuid: string, firstMs: number): boolean {
  const survivor = context.persons.get(survivorUuid)
  return survivor !== undefined && firstMs <= survivor.createdAtMs
}

function noteValuesThatStay(context: UndoContext, undoing: Undoing, survivorUuid: string, piece: Piece): void {
  const isEarlier = (id: string) =>
    context.shadowedIn([id]).some(({ firstMs }) => mayHaveLoweredCreatedAt(context, survivorUuid, firstMs))
  const writers = piece.filter(
    ({ subject }) => context.usesOf(subject).some(({ writes }) => writes) || isEarlier(subject),
  )
  if (writers.length > 0)
    undoing.notes.push({
      reason: 'undo_left:values_stay_with_survivor',
      details: { personId: survivorUuid, distinctIds: cutIdList(writers) },
    })
}

/**
 * Leaves pieces with the survivor, which keeps what it got from them: it returns to the state that the merges alone would have
 * given it.
 */
function leavePieces(
  context: UndoContext,
  undoing: Undoing,
  survivorUuid: string,
  pieces: readonly Piece[],
  { reason, byJobId }: Hold,
): void {
  const moved = pieces.flat()
  undoing.notes.push({ reason, details: { personId: survivorUuid, distinctIds: cutIdList(moved) } })
  const gone = [...new Set(moved.flatMap(({ before }) => before?.personUuid ?? []))]
  const ofGone = gone
    .flatMap(uuid => [context.undoRecord('person', uuid) ?? [], context.undoRecord('assignments', uuid) ?? []])
    .flat()
  const survivor = context.undoRecord('person', survivorUuid)
  const merged = gone.reduce<UndoRecordOf<'person'>['before']>(
    (into, uuid) => mergedBefore(into, context.undoRecord('person', uuid)?.before ?? null, survivorUuid),
    survivor?.before ?? null,
  )
  if (byJobId !== null) {
    for (const undoRecord of [...moved, ...ofGone]) context.handOver(undoRecord, byJobId)
    handOverSurvivor(context, survivorUuid, merged, byJobId)
  }
  if (survivor !== undefined && merged !== null) context.rewrite({ ...survivor, before: merged })
  for (const undoRecord of [...moved, ...ofGone]) undoing.doneUndoRecords.push(undoRecord)
}

/** Makes the later job restore the survivor to its state before the merges that that job undoes. */
function handOverSurvivor(
  context: UndoContext,
  uuid: string,
  merged: UndoRecordOf<'person'>['before'],
  toJobId: number,
): void {
  const count = context.undoRecord('id_count', uuid)
  if (count !== undefined && context.undoRecordOfJob(toJobId, 'id_count', uuid) === undefined)
    context.handOver(count, toJobId)
  const ours = context.undoRecord('person', uuid)
  if (ours === undefined || merged === null) return
  // A survivor created by the job has its first id through the job.
  if (ours.before === null)
    for (const { distinctId } of context.idsOf(uuid)) {
      const mapping = context.undoRecord('mapping', distinctId)
      if (mapping !== undefined && originOf(context, mapping) === uuid) context.handOver(mapping, toJobId)
    }
  const theirs = context.undoRecordOfJob(toJobId, 'person', uuid)
  if (theirs === undefined)
    context.rewrite({ ...ours, importJobId: toJobId, after: { ...merged, version: versionOfMade } })
  else {
    const before =
      ours.before && theirs.before && revertSubject(theirs.before, ours.before, ours.after ?? merged).subject
    const isMade = ours.before !== null && theirs.after?.version === versionOfMade
    context.rewrite({ ...theirs, before, after: isMade ? withMerge(theirs.after, ours.before, merged) : theirs.after })
  }
}

/** An undo record that was made for the later job, with the effect of a further merge on the survivor. */
function withMerge(
  made: NonNullable<UndoRecordOf<'person'>['after']>,
  before: Person,
  merged: Person,
): NonNullable<UndoRecordOf<'person'>['after']> {
  const draft = new ProfileDraft({ properties: made.properties, marks: made.marks })
  for (const key of keysChanged(before, merged)) {
    if (Object.hasOwn(merged.properties, key)) draft.setProperty(key, merged.properties[key]!)
    else draft.removeProperty(key)
    if (Object.hasOwn(merged.marks, key)) draft.setMark(key, merged.marks[key]!)
    else draft.removeMark(key)
  }
  const { properties, marks } = draft.result() ?? made
  const { createdAtMs, lastSeenAtMs } = merged
  return {
    ...{ ...made, properties, marks },
    createdAtMs: made.createdAtMs === before.createdAtMs ? createdAtMs : made.createdAtMs,
    lastSeenAtMs: made.lastSeenAtMs === before.lastSeenAtMs ? lastSeenAtMs : made.lastSeenAtMs,
  }
}

function mergedBefore(
  into: UndoRecordOf<'person'>['before'],
  from: UndoRecordOf<'person'>['before'],
  uuid: string,
): UndoRecordOf<'person'>['before'] {
  if (from === null) return into
  if (into === null) return { ...from, uuid, version: versionOfMade }
  const joined = mergeProfiles(into, from)
  const { properties, marks } = exceedsPersonLimit(JSON.stringify(joined.properties)) ? trimProfile(joined) : joined
  return {
    ...into,
    properties,
    marks,
    createdAtMs: Math.min(into.createdAtMs, from.createdAtMs),
    lastSeenAtMs: Math.max(into.lastSeenAtMs, from.lastSeenAtMs),
  }
}
