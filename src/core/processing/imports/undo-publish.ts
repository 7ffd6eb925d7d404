// Undoing what a published import job did to persons and groups, from the images that publishing kept: they go back to
// what they were, key by key where somebody else has written since. What cannot go back stays as it is and is noted. The
// images of later jobs are changed alike, so that undoing those does not bring back what this one wrote.
// Pure; `services/imports/undo-job.ts` loads and commits. Source: docs/wire/import.md §2.11.

import type { Group } from '#core/groups/group.ts'
import { type ImageOf, noImportChanges, type SubjectImage } from '#core/imports/import-changes.ts'
import type { Person } from '#core/persons/person.ts'
import { type ChunkChanges, noChunkChanges } from '#core/processing/chunk.ts'
import { keepImages } from './kept-images.ts'
import { imageWithOutranked, type Outranked, withWritesBeneath } from './outranked.ts'
import type { PublishedBatch } from './publish-shelf.ts'
import { reverted, revertedImage, withVersion } from './revert.ts'
import {
  type Found,
  noteMissing,
  noteRefusedLinks,
  personOf,
  removeMapping,
  shownIds,
  type UndoBatch,
  type Undoing,
  type UndoRefusal,
  undo,
} from './undo-batch.ts'

/** Takes persons back to what they were. @param subjects their images' names. */
export function undoPersons(batch: UndoBatch, subjects: readonly string[]): PublishedBatch {
  return undoImages(batch, subjects, imageOfPerson, (found, undoing, image) => {
    if (image.after !== null) undoPerson(found, undoing, image, image.after)
  })
}

/** Leaves persons as they are, because nobody can say what others have them for. */
export function leavePersons(batch: UndoBatch, subjects: readonly string[]): PublishedBatch {
  return undoImages(batch, subjects, imageOfPerson, (_found, undoing, { subject, after }) => {
    if (after !== null) undoing.notes.push({ reason: 'undo_left:events_not_readable', details: { personId: subject } })
  })
}

/** Leaves groups as they are, for the same reason. */
export function leaveGroups(batch: UndoBatch, subjects: readonly string[]): PublishedBatch {
  return undoImages(batch, subjects, imageOfGroup, (_found, undoing, { after }) => {
    if (after === null) return
    const details = { groupTypeIndex: after.typeIndex, groupKey: after.key }
    undoing.notes.push({ reason: 'undo_left:events_not_readable', details })
  })
}

/** Takes groups back to what they were. @param subjects their images' names. */
export function undoGroups(batch: UndoBatch, subjects: readonly string[]): PublishedBatch {
  return undoImages(batch, subjects, imageOfGroup, (found, undoing, image) => {
    if (image.after !== null) undoGroup(found, undoing, image, image.after)
  })
}

const imageOfPerson = (found: Found, subject: string) => found.image('person', subject)
const imageOfGroup = (found: Found, subject: string) => found.image('group', subject)

/** Every image that is found is done afterwards. */
function undoImages<Image extends SubjectImage>(
  batch: UndoBatch,
  subjects: readonly string[],
  imageOf: (found: Found, subject: string) => Image | undefined,
  undoOne: (found: Found, undoing: Undoing, image: Image) => void,
): PublishedBatch {
  return undo(batch, (found, undoing) => {
    for (const subject of subjects) {
      const image = imageOf(found, subject)
      if (image === undefined) continue
      undoing.doneImages.push(image)
      undoOne(found, undoing, image)
    }
  })
}

/** Notes a group type that stays, and leaves it to another job that names it to delete it. */
export function leaveGroupType(image: SubjectImage, heirId: number | null, reason: UndoRefusal): ChunkChanges {
  const { importJobId, subject } = image
  const details = { groupTypeIndex: Number(subject) }
  return {
    ...noChunkChanges,
    imports: {
      ...noImportChanges,
      rewrittenImages: heirId === null ? [] : [{ ...image, importJobId: heirId }],
      doneImages: [image],
      notes: [{ importJobId, reason, count: 1, samples: [details] }],
    },
  }
}

type PersonImage = NonNullable<ImageOf<'person'>['before']>

function undoPerson(found: Found, undoing: Undoing, image: ImageOf<'person'>, after: PersonImage): void {
  const { subject, before } = image
  const person = found.persons.get(subject) ?? found.persons.get(found.mappings.get(after.anyId)?.personUuid ?? '')
  if (person === undefined) {
    undoing.notes.push({ reason: 'undo_left:person_is_gone', details: { personId: subject } })
    return
  }
  const isSame = person.uuid === subject
  const isMade = before === null
  const ids = found.idsOf(person.uuid).map(({ distinctId }) => distinctId)
  if (isSame && (isMade || (after.isIdentified && !before.isIdentified)))
    noteRefusedLinks(found, undoing, { uuid: subject, isMade }, ids)
  if (before === null && isSame && removePerson(found, undoing, person, after)) return
  const kept = before === null && isSame ? keepPerson(found, undoing, image) : null
  if (before === null && !isSame) forgetMadePerson(found, subject, after)
  const identifiers = identifiersOf(found, person.uuid)
  const isUntouched = isSame && person.version === after.version
  const { subject: without, left } =
    isUntouched && before !== null ? { subject: personOf(before), left: [] } : reverted(person, before, after)
  const outranked = found.outrankedIn(ids)
  const later = found.laterWritesOf(ids)
  const { subject: changed, unsure, missing } = withWritesBeneath(without, person, later, outranked)
  // What the survivor of a later merge has instead, may always have been its own.
  for (const key of new Set(isSame ? [...left, ...unsure] : unsure))
    undoing.notes.push({ reason: 'undo_left:property_was_written', details: { personId: subject, key } })
  noteMissing(undoing, { personId: person.uuid }, missing)
  const createdAtMs = isSame ? changed.createdAtMs : createdAtOfMerged(found, undoing, person, before, after)
  if (isSame && createdAtMs !== person.createdAtMs && !isUntouched && found.wasMergedInto(subject))
    undoing.notes.push({ reason: 'undo_left:created_at_was_merged', details: { personId: subject } })
  const row = {
    ...changed,
    createdAtMs,
    isIdentified: changed.isIdentified || (person.isIdentified && identifiers.length > 0),
  }
  const isAsBefore = isUntouched && before !== null && changed === without && row.isIdentified === before.isIdentified
  const isChanged = isAsBefore || changed !== person || createdAtMs !== person.createdAtMs
  const rowVersion = isAsBefore ? row.version : person.version + 1
  const version = isChanged ? writePerson(found, undoing, person, { ...row, version: rowVersion }) : person.version
  const beneath = missing.length > 0 ? [] : outranked
  rebaseLaterImages(found, image, after, person, version, kept, beneath)
  keepImages(found, image, beneath, importJobId => ({
    ...{ ...row, version, anyId: found.idWrittenBy(importJobId, ids) ?? '' },
  }))
  if (row.isIdentified && !changed.isIdentified)
    handOverIdentity(found, { image, after }, { ...row, version }, identifiers)
}

/** @returns whether nobody but the job has anything of the person, so that it is removed. */
function removePerson(found: Found, undoing: Undoing, person: Person, after: PersonImage): boolean {
  const { projectId } = found
  const { uuid, version } = person
  const ids = found.idsOf(uuid)
  const made = ids.flatMap(({ distinctId }) => found.image('mapping', distinctId) ?? [])
  const areOfJob = made.length === ids.length && made.every(({ before }) => before === null)
  if (!areOfJob || ids.some(({ distinctId }) => found.usesOf(distinctId).length > 0)) return false
  const isTheJobs =
    version === after.version || Object.keys(reverted(person, null, after).subject.properties).length === 0
  if (!isTheJobs) return false
  for (const id of ids) removeMapping(undoing, id)
  undoing.doneImages.push(...made)
  undoing.removedPersons.push({ projectId, uuid, loadedVersion: version })
  found.persons.delete(uuid)
  return true
}

/**
 * Notes that a person which the job made stays. If only later jobs use it, the first of them removes it.
 * @returns that job.
 */
function keepPerson(found: Found, undoing: Undoing, image: ImageOf<'person'>): number | null {
  const { subject } = image
  const ids = found.idsOf(subject)
  undoing.notes.push({
    reason: 'undo_left:person_is_used',
    details: { personId: subject, distinctIds: shownIds(ids) },
  })
  const heir = found.heirOf(
    ids.flatMap(
      ({ distinctId }) =>
        found.bringerOf(distinctId, subject) ?? found.usesOf(distinctId).map(({ importJobId }) => importJobId),
    ),
  )
  if (heir === null) return null
  for (const { distinctId } of ids) {
    const mapping = found.image('mapping', distinctId)
    if (mapping?.before === null) found.handOver(mapping, heir)
  }
  return heir
}

/** To a later job that merged the person away, it is one that never was. */
function forgetMadePerson(found: Found, uuid: string, { anyId }: PersonImage): void {
  const home = found.mappings.get(anyId)?.personUuid ?? ''
  for (const image of found.laterImages('person', uuid)) found.rewrite({ ...image, before: null })
  for (const { distinctId } of found.idsOf(home))
    for (const image of found.laterImages('mapping', distinctId))
      if (image.before?.personUuid === uuid) found.rewrite({ ...image, before: null })
}

/** Who else has linked one of the person's ids with another one, which identifies it: ids of jobs, 0 for live data. */
function identifiersOf(found: Found, uuid: string): number[] {
  return found
    .idsOf(uuid)
    .flatMap(({ distinctId }) => found.usesOf(distinctId))
    .filter(({ otherId }) => otherId !== null)
    .map(({ importJobId }) => importJobId)
}

/** Undoing the first of the later jobs will show whether the person is still identified then. */
function handOverIdentity(
  found: Found,
  { image, after }: { image: ImageOf<'person'>; after: PersonImage },
  person: Person,
  identifiers: readonly number[],
): void {
  const heir = found.heirOf(identifiers)
  if (heir === null) return
  const { anyId } = after
  const theirs = found.imageOfJob(heir, 'person', person.uuid) ?? {
    ...image,
    importJobId: heir,
    subject: person.uuid,
    before: { ...person, anyId },
    after: { ...person, anyId },
  }
  const became = theirs.after && { ...theirs.after, isIdentified: true }
  if (theirs.before !== null)
    found.rewrite({ ...theirs, before: { ...theirs.before, isIdentified: false }, after: became })
}

/** The time of creation of a person that another one was merged into, which took over the earlier of both. */
function createdAtOfMerged(
  found: Found,
  undoing: Undoing,
  person: Person,
  before: PersonImage | null,
  after: PersonImage,
): number {
  if (person.createdAtMs !== after.createdAtMs || before?.createdAtMs === after.createdAtMs) return person.createdAtMs
  const ofMerge = found.laterImages('person', person.uuid).find(image => image.after?.createdAtMs === after.createdAtMs)
  if (ofMerge?.before != null && ofMerge.before.createdAtMs > after.createdAtMs)
    return Math.min(ofMerge.before.createdAtMs, before?.createdAtMs ?? Number.POSITIVE_INFINITY)
  undoing.notes.push({ reason: 'undo_left:created_at_was_merged', details: { personId: person.uuid } })
  return person.createdAtMs
}

/** @param version of the person as it is now. @param heir the later job for which the job's person never was. */
function rebaseLaterImages(
  found: Found,
  undone: ImageOf<'person'>,
  after: PersonImage,
  person: Person,
  version: number,
  heir: number | null,
  outranked: readonly Outranked[],
): void {
  const { subject, before } = undone
  for (const uuid of new Set([subject, person.uuid]))
    for (const image of found.laterImages('person', uuid)) {
      const rest = imageWithOutranked(image, revertedImage(image, before, after), undone, outranked, found.laterJobIds)
      const rebased = withVersion(rest, person.version, version)
      const isHeirs = image.importJobId === heir
      found.rewrite(isHeirs ? { ...rebased, before: null } : rebased)
    }
  if (heir === null || found.imageOfJob(heir, 'person', subject) !== undefined) return
  const now = found.persons.get(subject) ?? person
  const { importJobId: _, ...image } = found.image('person', subject)!
  found.rewrite({ ...image, importJobId: heir, before: null, after: { ...now, anyId: after.anyId } })
}

/** A person that is written for several images is written once, from what was loaded. @returns its version then. */
function writePerson(found: Found, undoing: Undoing, person: Person, row: Person): number {
  const known = undoing.persons.get(person.uuid)
  const version = known?.row.version ?? row.version
  undoing.persons.set(person.uuid, { row: { ...row, version }, loadedVersion: known?.loadedVersion ?? person.version })
  found.persons.set(person.uuid, { ...row, version })
  return version
}

function undoGroup(found: Found, undoing: Undoing, image: ImageOf<'group'>, after: Group): void {
  const { subject, before } = image
  const { projectId } = found
  const group = found.groups.get(subject)
  const { typeIndex, key } = after
  const details = { groupTypeIndex: typeIndex, groupKey: key }
  if (group === undefined) {
    undoing.notes.push({ reason: 'undo_left:group_is_gone', details })
    return
  }
  const { version } = group
  const isUntouched = version === after.version
  const users = found.usersOfGroup(subject)
  const heir = found.heirOf(users)
  const isTheJobs = isUntouched || Object.keys(reverted(group, before, after).subject.properties).length === 0
  if (before === null && users.length === 0 && isTheJobs) {
    undoing.removedGroups.push({ projectId, typeIndex, key, loadedVersion: version })
    return
  }
  if (before === null) undoing.notes.push({ reason: 'undo_left:group_is_used', details })
  const { subject: without, left } =
    isUntouched && before !== null ? { subject: before, left: [] } : reverted(group, before, after)
  const outranked = found.outrankedInGroup(subject)
  const { subject: changed, missing } = withWritesBeneath(without, group, [], outranked)
  for (const property of left)
    undoing.notes.push({ reason: 'undo_left:property_was_written', details: { ...details, key: property } })
  noteMissing(undoing, details, missing)
  const isAsBefore = isUntouched && changed === without
  const versionNow = changed === group || isAsBefore ? changed.version : version + 1
  if (changed !== group) undoing.groups.push({ row: { ...changed, version: versionNow }, loadedVersion: version })
  const beneath = missing.length > 0 ? [] : outranked
  for (const theirs of found.laterImages('group', subject)) {
    const rest = revertedImage(theirs, before, after)
    const rebased = imageWithOutranked(theirs, rest, image, beneath, found.laterJobIds)
    const isLast = rebased.after?.version === version
    found.rewrite({
      ...rebased,
      ...(before === null && theirs.importJobId === heir && { before: null }),
      ...(isLast && { after: { ...rebased.after!, version: versionNow } }),
    })
  }
  if (before === null && heir !== null && found.imageOfJob(heir, 'group', subject) === undefined)
    found.rewrite({ ...image, importJobId: heir, after: { ...changed, version: versionNow } })
  keepImages(found, image, beneath, () => changed)
}
