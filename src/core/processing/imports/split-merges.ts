// Splits the persons that a job merged and takes back the ids that it linked. The ids of a survivor fall into pieces, each
// of which was a person of its own before the job. A piece goes back unless live data or another job holds it: by a link
// of its own between the pieces, or by having changed the survivor's ids. What a later job holds, that job undoes.
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
import { keysChanged, reverted, withLaterWrites } from './revert.ts'
import { versionOfMade } from './shadowed.ts'
import type { Found, UndoBatch } from './undo-batch.ts'
import {
  moveBack,
  noteRefusedLinks,
  personOf,
  removeMapping,
  shownIds,
  type Undoing,
  type UndoRefusal,
  undo,
} from './undoing.ts'

/** The ids of one person of before, as the job's undo records name them. */
type Piece = readonly UndoRecordOf<'mapping'>[]

/** Why a piece stays, and the later job that undoes it; null when none does. */
interface Hold {
  readonly reason: UndoRefusal
  readonly byJobId: number | null
}

/** `loaded` has every id of each person. @param survivorUuids the persons to look at: those that got ids of the job. */
export function undoMerges(batch: UndoBatch, survivorUuids: readonly string[]): PublishedBatch {
  return undo(batch, (found, undoing) => {
    for (const uuid of survivorUuids) undoMergesInto(found, undoing, uuid)
  })
}

/** Leaves the merges into these persons as they are, because nobody can say what others have the persons for. */
export function leaveMerges(batch: UndoBatch, survivorUuids: readonly string[]): PublishedBatch {
  const unreadable: Hold = { reason: 'undo_left:events_not_readable', byJobId: null }
  return undo(batch, (found, undoing) => {
    for (const uuid of survivorUuids) undoMergesInto(found, undoing, uuid, unreadable)
  })
}

/** @param ofAll holds all pieces, whatever else does. */
function undoMergesInto(found: Found, undoing: Undoing, uuid: string, ofAll?: Hold): void {
  const count = found.undoRecord('id_count', uuid)
  if (count?.after == null) return
  undoing.doneUndoRecords.push(count)
  const { anyId = '' } = count.after
  const home = found.persons.has(uuid) ? uuid : found.mappings.get(anyId)?.personUuid
  if (home === undefined) return
  const ids = found.idsOf(home)
  const undoRecords = ids.flatMap(({ distinctId }) => found.undoRecord('mapping', distinctId) ?? [])
  const moved = undoRecords.filter(
    undoRecord => undoRecord.after?.personUuid === uuid && originOf(found, undoRecord) !== uuid,
  )
  if (moved.length === 0) return
  const pieces = Map.groupBy(moved, undoRecord => originOf(found, undoRecord))
  if (ofAll !== undefined) {
    leave(found, undoing, uuid, [moved], ofAll)
    return
  }
  if (home !== uuid) {
    const taker = found.laterUndoRecords('person', uuid).find(({ after }) => after === null)
    leave(found, undoing, uuid, [moved], {
      reason: 'undo_left:merge_was_built_on',
      byJobId: taker?.importJobId ?? null,
    })
    return
  }
  const ofLaterJobs = new Set(ids.filter(({ distinctId }) => found.bringerOf(distinctId, uuid) !== null))
  if (ids.length - ofLaterJobs.size !== count.after.count) {
    leave(found, undoing, uuid, [moved], { reason: 'undo_left:merge_was_built_on', byJobId: null })
    return
  }
  const holds = holdsOf(found, ids, moved)
  const held = Array.from(pieces, ([origin, piece]) => ({
    piece,
    hold: holds.get(origin) ?? ownHold(found, undoing, piece),
  }))
  // Jobs that get some of them have their counts when the others go.
  for (const { piece, hold } of held) if (hold !== null) leave(found, undoing, uuid, [piece], hold)
  for (const { piece, hold } of held) if (hold === null) split(found, undoing, uuid, piece)
}

/** The person that had the id before the job; a name of its own for an id without one. */
function originOf({ projectId }: Found, { subject, before, after }: UndoRecordOf<'mapping'>): string {
  if (before !== null) return before.personUuid
  const derived = personUuid(projectId, subject)
  return derived === after?.personUuid ? derived : `id ${subject}`
}

/** The pieces that are linked with other ids of the survivor by later events of somebody else, by origin. */
function holdsOf(
  found: Found,
  ids: readonly { readonly distinctId: string }[],
  moved: Piece,
): ReadonlyMap<string, Hold> {
  const holds = new Map<string, Hold>()
  const originOfId = new Map(moved.map(undoRecord => [undoRecord.subject, originOf(found, undoRecord)]))
  const isOfSurvivor = new Set(ids.map(({ distinctId }) => distinctId))
  for (const { distinctId } of ids)
    for (const { otherId, isLater, importJobId } of found.usesOf(distinctId)) {
      if (otherId === null || !isLater || !isOfSurvivor.has(otherId)) continue
      const origins = [originOfId.get(distinctId), originOfId.get(otherId)]
      if (origins[0] === origins[1]) continue
      for (const origin of origins)
        if (origin !== undefined) hold(found, holds, origin, importJobId === 0 ? null : importJobId)
    }
  return holds
}

/** Live data holds for good; of several jobs the one that was published first undoes it. */
function hold({ laterJobIds }: Found, holds: Map<string, Hold>, origin: string, byJobId: number | null): void {
  const known = holds.get(origin)
  if (known?.byJobId === null) return
  const isFirst =
    byJobId === null || known === undefined || laterJobIds.indexOf(byJobId) < laterJobIds.indexOf(known.byJobId)
  if (isFirst) holds.set(origin, { reason: 'undo_left:link_was_confirmed', byJobId })
}

/** Why a piece stays although nobody links it. */
function ownHold(found: Found, undoing: Undoing, piece: Piece): Hold | null {
  const [{ subject, before }] = piece as [UndoRecordOf<'mapping'>]
  if (before !== null) {
    const isThere = found.persons.has(before.personUuid) || undoing.persons.has(before.personUuid)
    const canReturn = isThere || found.undoRecord('person', before.personUuid)?.before != null
    return canReturn ? null : { reason: 'undo_left:merge_was_built_on', byJobId: null }
  }
  const uses = found.usesOf(subject)
  if (uses.length === 0) return null
  return { reason: 'undo_left:link_is_used', byJobId: found.heirOf(uses.map(({ importJobId }) => importJobId)) }
}

function split(found: Found, undoing: Undoing, survivorUuid: string, piece: Piece): void {
  const origin = piece[0]!.before?.personUuid ?? null
  for (const undoRecord of piece) {
    undoing.doneUndoRecords.push(undoRecord)
    const { subject } = undoRecord
    const now = found.mappings.get(subject)!
    if (origin === null) removeMapping(undoing, now)
    else moveBack(undoing, now, origin)
  }
  for (const undoRecord of found.laterUndoRecords('id_count', survivorUuid))
    if (undoRecord.after !== null)
      found.rewrite({ ...undoRecord, after: { ...undoRecord.after, count: undoRecord.after.count - piece.length } })
  const person = origin === null ? undefined : found.undoRecord('person', origin)
  if (person?.before?.isIdentified !== true)
    noteRefusedLinks(
      found,
      undoing,
      { uuid: survivorUuid, isMade: origin === null },
      piece.map(({ subject }) => subject),
    )
  if (origin === null) return
  if (person?.before != null && !found.persons.has(origin)) {
    const ids = piece.map(({ subject }) => subject)
    const { properties } = person.before
    // What was set stays with the survivor, and is noted; what the survivor's values kept from being set, is nowhere. What
    // was unset is still in the undo record.
    const isNowhere = ({ op, key }: LaterWrite) =>
      op !== 'set' || (filteredProperties.has(key) && !Object.hasOwn(properties, key))
    const laterWrites = found.laterWritesOf(ids).filter(isNowhere)
    // What the survivor has today came to it and not to this person, so an `$unset` takes whatever the undo record has.
    const survivor = found.persons.get(survivorUuid)!
    const { subject } = withLaterWrites(personOf(person.before), survivor, laterWrites, emptyProfile)
    const identifiers = identifiersOf(found, ids)
    // The earlier time of the survivor has hidden these.
    const hidden = found.shadowedIn(ids).filter(({ firstMs }) => !hasLowered(found, survivorUuid, firstMs))
    const createdAtMs = hidden.reduce((first, { firstMs }) => Math.min(first, firstMs), subject.createdAtMs)
    const row = { ...subject, createdAtMs, isIdentified: subject.isIdentified || identifiers.length > 0 }
    undoing.persons.set(origin, { row, loadedVersion: null })
    addUndoRecords(found, { ...person, after: { ...person.before, createdAtMs } }, hidden, importJobId => ({
      ...{ ...row, anyId: found.idWrittenBy(importJobId, ids) ?? ids[0]! },
    }))
    if (row.isIdentified && !subject.isIdentified)
      handOverIdentity(found, person, { ...row, anyId: ids[0]! }, identifiers)
  }
  if (person !== undefined && person.after === null) undoing.doneUndoRecords.push(person)
  returnAssignments(found, undoing, origin, survivorUuid)
  noteValuesThatStay(found, undoing, survivorUuid, piece)
}

/**
 * What the person had for itself; the survivor keeps its own. Where the job had merged it into one that it merged away
 * later, the last survivor may have got some of it.
 */
function returnAssignments(found: Found, undoing: Undoing, uuid: string, survivorUuid: string): void {
  const kept = found.undoRecord('assignments', uuid)
  if (kept?.before == null || kept.after === null) return
  undoing.doneUndoRecords.push(kept)
  const assignments = found.assignmentsGivenTo(uuid).reduce<Assignments>(without, kept.before)
  let given: Assignments = kept.after
  for (let holder = kept.after.personUuid; holder !== survivorUuid; ) {
    const next = found.undoRecord('assignments', holder)?.after
    if (next == null) break
    given = without(given, without(given, next))
    holder = next.personUuid
  }
  undoing.returnedAssignments.push({ projectId: found.projectId, uuid, assignments, survivorUuid, given })
}

function without({ hashKeys, cohortIds }: Assignments, other: Assignments): Assignments {
  const others = new Set(other.hashKeys.map(row => row.join('\0')))
  return {
    hashKeys: hashKeys.filter(row => !others.has(row.join('\0'))),
    cohortIds: cohortIds.filter(id => !other.cohortIds.includes(id)),
  }
}

/** Whether an import's first event may have lowered the time of creation that the survivor has. */
function hasLowered(found: Found, survivorUuid: string, firstMs: number): boolean {
  const survivor = found.persons.get(survivorUuid)
  return survivor !== undefined && firstMs <= survivor.createdAtMs
}

function noteValuesThatStay(found: Found, undoing: Undoing, survivorUuid: string, piece: Piece): void {
  const isEarlier = (id: string) =>
    found.shadowedIn([id]).some(({ firstMs }) => hasLowered(found, survivorUuid, firstMs))
  const writers = piece.filter(
    ({ subject }) => found.usesOf(subject).some(({ writes }) => writes) || isEarlier(subject),
  )
  if (writers.length > 0)
    undoing.notes.push({
      reason: 'undo_left:values_stay_with_survivor',
      details: { personId: survivorUuid, distinctIds: shownIds(writers) },
    })
}

/**
 * Leaves pieces with the survivor, which keeps what it got from them: it goes back to what the merges alone would have made
 * of it.
 */
function leave(
  found: Found,
  undoing: Undoing,
  survivorUuid: string,
  pieces: readonly Piece[],
  { reason, byJobId }: Hold,
): void {
  const moved = pieces.flat()
  undoing.notes.push({ reason, details: { personId: survivorUuid, distinctIds: shownIds(moved) } })
  const gone = [...new Set(moved.flatMap(({ before }) => before?.personUuid ?? []))]
  const ofGone = gone
    .flatMap(uuid => [found.undoRecord('person', uuid) ?? [], found.undoRecord('assignments', uuid) ?? []])
    .flat()
  const survivor = found.undoRecord('person', survivorUuid)
  const merged = gone.reduce<UndoRecordOf<'person'>['before']>(
    (into, uuid) => mergedBefore(into, found.undoRecord('person', uuid)?.before ?? null, survivorUuid),
    survivor?.before ?? null,
  )
  if (byJobId !== null) {
    for (const undoRecord of [...moved, ...ofGone]) found.handOver(undoRecord, byJobId)
    handOverSurvivor(found, survivorUuid, merged, byJobId)
  }
  if (survivor !== undefined && merged !== null) found.rewrite({ ...survivor, before: merged })
  for (const undoRecord of [...moved, ...ofGone]) undoing.doneUndoRecords.push(undoRecord)
}

/** The later job will take the survivor back to what it was before the merges that it undoes. */
function handOverSurvivor(found: Found, uuid: string, merged: UndoRecordOf<'person'>['before'], toJobId: number): void {
  const count = found.undoRecord('id_count', uuid)
  if (count !== undefined && found.undoRecordOfJob(toJobId, 'id_count', uuid) === undefined)
    found.handOver(count, toJobId)
  const ours = found.undoRecord('person', uuid)
  if (ours === undefined || merged === null) return
  // A survivor that the job made has an id to begin with.
  if (ours.before === null)
    for (const { distinctId } of found.idsOf(uuid)) {
      const mapping = found.undoRecord('mapping', distinctId)
      if (mapping !== undefined && originOf(found, mapping) === uuid) found.handOver(mapping, toJobId)
    }
  const theirs = found.undoRecordOfJob(toJobId, 'person', uuid)
  if (theirs === undefined)
    found.rewrite({ ...ours, importJobId: toJobId, after: { ...merged, version: versionOfMade } })
  else {
    const before = ours.before && theirs.before && reverted(theirs.before, ours.before, ours.after ?? merged).subject
    const isMade = ours.before !== null && theirs.after?.version === versionOfMade
    found.rewrite({ ...theirs, before, after: isMade ? withMerge(theirs.after, ours.before, merged) : theirs.after })
  }
}

/** An undo record that was made for the later job, with what one more merge makes of the survivor. */
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
