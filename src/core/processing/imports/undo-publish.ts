// Undoing a published import job from the images that publishing kept: merges are split, then persons and groups go back
// to what they were, key by key where somebody else has written since. What cannot go back stays as it is and is noted.
// Pure; `services/imports/undo-job.ts` loads and commits. Source: docs/wire/import.md §2.11.

import type { PersonIdOverride } from '#core/events/stored-event.ts'
import type { Group } from '#core/groups/group.ts'
import { type ImageOf, type ImportChanges, noImportChanges, type SubjectImage } from '#core/imports/import-changes.ts'
import { type JsonObject, type JsonValue, ownValue } from '#core/json.ts'
import { isSameJson } from '#core/json-equal.ts'
import type { DistinctIdMapping, Person } from '#core/persons/person.ts'
import { personUuid } from '#core/persons/person-uuid.ts'
import { emptyProfile, type Profile, ProfileDraft } from '#core/persons/profile.ts'
import { noChunkChanges, type Versioned } from '#core/processing/chunk.ts'
import { groupSubject } from './before-images.ts'
import { countedNotes, type JobBatch, type PublishedBatch } from './publish-shelf.ts'

/** What is left as it is, and why. The names are those of the job's notes. */
export type UndoRefusal =
  /** Somebody has linked or unlinked ids of the merged person since. */
  | 'undo_left:merge_was_built_on'
  /** A later value of somebody else. */
  | 'undo_left:property_was_written'
  /** The job made it, and other events use it. */
  | 'undo_left:person_is_used'
  | 'undo_left:link_is_used'
  | 'undo_left:group_is_used'
  /** Merged away, or deleted. */
  | 'undo_left:person_is_gone'
  | 'undo_left:group_is_gone'

/** What undoing collects: rows to write and to remove, images that are done, and notes. */
interface Undoing {
  /** By uuid: two images may be of what is one person today. */
  readonly persons: Map<string, Versioned<Person>>
  readonly mappings: Versioned<DistinctIdMapping>[]
  readonly groups: Versioned<Group>[]
  readonly overrides: PersonIdOverride[]
  readonly removedPersons: ImportChanges['removedPersons'][number][]
  readonly removedMappings: ImportChanges['removedMappings'][number][]
  readonly removedGroups: ImportChanges['removedGroups'][number][]
  readonly nextVersions: ImportChanges['nextVersions'][number][]
  readonly doneImages: SubjectImage[]
  readonly notes: { readonly reason: UndoRefusal; readonly details: JsonObject }[]
}

export interface UndoBatch extends JobBatch {
  /** The images of all subjects in `loaded`, as far as the job has any. */
  readonly images: readonly SubjectImage[]
  /** The distinct ids in `loaded` with rows that are not the job's; their persons and links stay. */
  readonly usedIds: ReadonlySet<string>
}

/** What was loaded of the project, and the images, by name. */
class Found {
  readonly projectId: number
  readonly usedIds: ReadonlySet<string>
  /** As far as it is undone. */
  readonly persons: Map<string, Person>
  readonly mappings: ReadonlyMap<string, DistinctIdMapping>
  readonly groups: ReadonlyMap<string, Group>
  readonly #idsOf: Map<string, DistinctIdMapping[]>
  readonly #images: ReadonlyMap<string, SubjectImage>

  constructor({ projectId, loaded, images, usedIds }: UndoBatch) {
    const isOurs = (row: { readonly projectId: number }) => row.projectId === projectId
    this.projectId = projectId
    this.usedIds = usedIds
    this.persons = new Map(loaded.persons.filter(isOurs).map(row => [row.uuid, row]))
    const mappings = [...loaded.personMappings, ...loaded.mappings].filter(isOurs)
    this.mappings = new Map(mappings.map(row => [row.distinctId, row]))
    this.#idsOf = Map.groupBy(this.mappings.values(), row => row.personUuid)
    this.groups = new Map(loaded.groups.filter(isOurs).map(row => [groupSubject(row), row]))
    this.#images = new Map(images.map(image => [`${image.kind} ${image.subject}`, image]))
  }

  idsOf(uuid: string): readonly DistinctIdMapping[] {
    return this.#idsOf.get(uuid) ?? []
  }

  image<Kind extends SubjectImage['kind']>(kind: Kind, subject: string): ImageOf<Kind> | undefined {
    return this.#images.get(`${kind} ${subject}`) as ImageOf<Kind> | undefined
  }
}

/**
 * Splits the persons that the job merged and takes back the ids that it linked. `loaded` has every id of each person.
 * @param survivorUuids the persons to look at: those that have ids of the job now.
 */
export function undoMerges(batch: UndoBatch, survivorUuids: readonly string[]): PublishedBatch {
  return undo(batch, (found, undoing) => {
    for (const uuid of survivorUuids) undoMergesInto(found, undoing, uuid)
  })
}

/** Takes persons back to what they were. @param subjects their images' names. */
export function undoPersons(batch: UndoBatch, subjects: readonly string[]): PublishedBatch {
  return undo(batch, (found, undoing) => {
    for (const subject of subjects) {
      const image = found.image('person', subject)
      if (image === undefined) continue
      undoing.doneImages.push(image)
      if (image.after !== null) undoPerson(found, undoing, image, image.after)
    }
  })
}

/** Takes groups back to what they were. @param subjects their images' names. */
export function undoGroups(batch: UndoBatch, subjects: readonly string[]): PublishedBatch {
  return undo(batch, (found, undoing) => {
    for (const subject of subjects) {
      const image = found.image('group', subject)
      if (image === undefined) continue
      undoing.doneImages.push(image)
      if (image.after !== null) undoGroup(found, undoing, image, image.after)
    }
  })
}

function undoMergesInto(found: Found, undoing: Undoing, uuid: string): void {
  const { projectId, usedIds } = found
  const ids = found.idsOf(uuid)
  const images = ids.flatMap(({ distinctId }) => found.image('mapping', distinctId) ?? [])
  const count = found.image('id_count', uuid)
  if (count !== undefined) undoing.doneImages.push(count)
  const moved = images.filter(({ before }) => before !== null && before.personUuid !== uuid)
  const isAsLeft =
    (count === undefined || count.after!.count === ids.length) &&
    images.every(({ subject, after }) => {
      const now = ids.find(({ distinctId }) => distinctId === subject)!
      return after !== null && after.version === now.version && after.personUuid === now.personUuid
    })
  undoing.doneImages.push(...moved)
  if (!isAsLeft) {
    if (moved.length > 0 || ids.length === 0)
      undoing.notes.push({
        reason: 'undo_left:merge_was_built_on',
        details: { personId: uuid, distinctIds: shownIds(moved) },
      })
    // The persons that were merged away stay so.
    for (const gone of new Set(moved.map(({ before }) => before!.personUuid))) {
      const image = found.image('person', gone)
      if (image !== undefined) undoing.doneImages.push(image)
    }
    return
  }
  for (const gone of new Set(moved.map(({ before }) => before!.personUuid))) {
    const image = found.image('person', gone)
    if (image === undefined) continue
    undoing.doneImages.push(image)
    const { before } = image
    if (before !== null && !found.persons.has(gone))
      undoing.persons.set(gone, { row: personOf(before), loadedVersion: null })
  }
  for (const { subject: distinctId, before } of images) {
    const now = ids.find(id => id.distinctId === distinctId)!
    if (before !== null && before.personUuid !== uuid) moveBack(undoing, now, before.personUuid)
    else if (before === null && uuid !== personUuid(projectId, distinctId)) {
      if (usedIds.has(distinctId)) undoing.notes.push({ reason: 'undo_left:link_is_used', details: { distinctId } })
      else removeMapping(undoing, now)
    }
  }
}

function undoPerson(
  found: Found,
  undoing: Undoing,
  image: ImageOf<'person'>,
  after: NonNullable<ImageOf<'person'>['after']>,
): void {
  const { projectId, usedIds } = found
  const { subject, before } = image
  const person = found.persons.get(subject) ?? found.persons.get(found.mappings.get(after.anyId)?.personUuid ?? '')
  if (person === undefined) {
    undoing.notes.push({ reason: 'undo_left:person_is_gone', details: { personId: subject } })
    return
  }
  const isSame = person.uuid === subject
  const isUntouched = isSame && person.version === after.version
  if (before === null && isSame) {
    const ids = found.idsOf(subject)
    const areOfJob = ids.every(({ distinctId, version }) => {
      const made = found.image('mapping', distinctId)
      return made !== undefined && made.before === null && made.after?.version === version
    })
    if (isUntouched && areOfJob && !ids.some(({ distinctId }) => usedIds.has(distinctId))) {
      for (const id of ids) {
        removeMapping(undoing, id)
        undoing.doneImages.push(found.image('mapping', id.distinctId)!)
      }
      undoing.removedPersons.push({ projectId, uuid: subject, loadedVersion: person.version })
      found.persons.delete(subject)
      return
    }
    undoing.notes.push({
      reason: 'undo_left:person_is_used',
      details: { personId: subject, distinctIds: shownIds(ids) },
    })
  }
  if (isUntouched && before !== null) {
    writePerson(found, undoing, person, personOf(before))
    return
  }
  const { profile, left } = revertedProfile(person, before ?? emptyProfile, after)
  for (const key of left)
    undoing.notes.push({ reason: 'undo_left:property_was_written', details: { personId: person.uuid, key } })
  const createdAtMs =
    before !== null && person.createdAtMs === after.createdAtMs ? before.createdAtMs : person.createdAtMs
  if (profile === null && createdAtMs === person.createdAtMs) return
  const { properties, marks } = profile ?? person
  writePerson(found, undoing, person, { ...person, properties, marks, createdAtMs, version: person.version + 1 })
}

/** A person that is written for several images is written once, from what was loaded. */
function writePerson(found: Found, undoing: Undoing, person: Person, row: Person): void {
  const known = undoing.persons.get(person.uuid)
  const version = known?.row.version ?? row.version
  undoing.persons.set(person.uuid, { row: { ...row, version }, loadedVersion: known?.loadedVersion ?? person.version })
  found.persons.set(person.uuid, { ...row, version })
}

function undoGroup(
  { groups, projectId }: Found,
  undoing: Undoing,
  { subject, before }: ImageOf<'group'>,
  after: Group,
): void {
  const group = groups.get(subject)
  const { typeIndex, key } = after
  if (group === undefined) {
    undoing.notes.push({ reason: 'undo_left:group_is_gone', details: { groupTypeIndex: typeIndex, groupKey: key } })
    return
  }
  const { version } = group
  if (version === after.version) {
    if (before === null) undoing.removedGroups.push({ projectId, typeIndex, key, loadedVersion: version })
    else undoing.groups.push({ row: before, loadedVersion: version })
    return
  }
  if (before === null)
    undoing.notes.push({ reason: 'undo_left:group_is_used', details: { groupTypeIndex: typeIndex, groupKey: key } })
  const createdAtMs =
    before !== null && group.createdAtMs === after.createdAtMs ? before.createdAtMs : group.createdAtMs
  const { profile, left } = revertedProfile(group, before ?? emptyProfile, after)
  for (const property of left)
    undoing.notes.push({
      reason: 'undo_left:property_was_written',
      details: { groupTypeIndex: typeIndex, groupKey: key, key: property },
    })
  if (profile === null && createdAtMs === group.createdAtMs) return
  const { properties, marks } = profile ?? group
  undoing.groups.push({
    row: { ...group, properties, marks, createdAtMs, version: version + 1 },
    loadedVersion: version,
  })
}

/**
 * The profile without what the job did to it: a key that is still as the job left it becomes what it was before.
 * @returns null for a profile that stays as it is, and the keys that somebody else has written since.
 */
export function revertedProfile(
  now: Profile,
  before: Profile,
  after: Profile,
): { profile: Profile | null; left: string[] } {
  const draft = new ProfileDraft({ properties: now.properties, marks: now.marks })
  const left: string[] = []
  const keys = new Set(
    [before, after].flatMap(({ properties, marks }) => [...Object.keys(properties), ...Object.keys(marks)]),
  )
  for (const key of keys) {
    const [was, became, is] = [before, after, now].map(profile => keyIn(profile, key)) as [KeyState, KeyState, KeyState]
    if (isSameKey(was, became) || isSameKey(is, was)) continue
    if (!isSameKey(is, became)) {
      left.push(key)
      continue
    }
    if (was.value === undefined) draft.removeProperty(key)
    else draft.setProperty(key, was.value)
    if (was.mark === undefined) draft.removeMark(key)
    else draft.setMark(key, was.mark)
  }
  return { profile: draft.result(), left }
}

interface KeyState {
  readonly value: JsonValue | undefined
  readonly mark: Profile['marks'][string] | undefined
}

function keyIn({ properties, marks }: Profile, key: string): KeyState {
  return { value: ownValue(properties, key), mark: Object.hasOwn(marks, key) ? marks[key] : undefined }
}

function isSameKey(a: KeyState, b: KeyState): boolean {
  return isSameJson(a.value, b.value) && isSameJson(a.mark as JsonValue | undefined, b.mark as JsonValue | undefined)
}

function undo(batch: UndoBatch, apply: (found: Found, undoing: Undoing) => void): PublishedBatch {
  const undoing: Undoing = {
    persons: new Map(),
    mappings: [],
    groups: [],
    overrides: [],
    removedPersons: [],
    removedMappings: [],
    removedGroups: [],
    nextVersions: [],
    doneImages: [],
    notes: [],
  }
  apply(new Found(batch), undoing)
  const { persons, mappings, groups, overrides, doneImages, notes, ...removed } = outvoted(undoing, batch)
  return {
    overrides,
    changes: {
      ...noChunkChanges,
      persons: [...persons.values()],
      mappings,
      groups,
      imports: { ...noImportChanges, ...removed, doneImages, notes: countedNotes(batch.importJobId, notes) },
    },
  }
}

/** Raises versions above those of overrides that an earlier try may have left in the event store. */
function outvoted(undoing: Undoing, { told = [] }: UndoBatch): Undoing {
  const toldVersions = new Map(Array.from(told, override => [override.distinctId, override.version]))
  const raise = (distinctId: string, version: number) => Math.max(version, (toldVersions.get(distinctId) ?? -1) + 1)
  return {
    ...undoing,
    mappings: undoing.mappings.map(({ row, loadedVersion }) => ({
      row: { ...row, version: raise(row.distinctId, row.version) },
      loadedVersion,
    })),
    overrides: undoing.overrides.map(row => ({ ...row, version: raise(row.distinctId, row.version) })),
    nextVersions: undoing.nextVersions.map(row => ({ ...row, version: raise(row.distinctId, row.version - 1) + 1 })),
  }
}

function moveBack(undoing: Undoing, now: DistinctIdMapping, personId: string): void {
  const { projectId, distinctId } = now
  const version = now.version + 1
  undoing.mappings.push({ row: { projectId, distinctId, personUuid: personId, version }, loadedVersion: now.version })
  undoing.overrides.push({ projectId, distinctId, personId, version })
}

/** What taking an id from its person needs. @param toldVersion of an override that an earlier try has written. */
export function removedMapping(
  { projectId, distinctId, version: loadedVersion }: DistinctIdMapping,
  toldVersion: number | undefined,
) {
  const mapping = { projectId, distinctId, loadedVersion }
  if (loadedVersion === 0 && toldVersion === undefined) return { mapping, override: null, nextVersion: null }
  const version = Math.max(loadedVersion, toldVersion ?? 0) + 1
  return {
    mapping,
    override: { projectId, distinctId, personId: personUuid(projectId, distinctId), version },
    nextVersion: { projectId, distinctId, version: version + 1 },
  }
}

/** Where an id had an override, a higher one has to say that its rows have the person derived from the id again. */
function removeMapping(undoing: Undoing, { projectId, distinctId, version }: DistinctIdMapping): void {
  undoing.removedMappings.push({ projectId, distinctId, loadedVersion: version })
  if (version === 0) return
  const personId = personUuid(projectId, distinctId)
  undoing.overrides.push({ projectId, distinctId, personId, version: version + 1 })
  undoing.nextVersions.push({ projectId, distinctId, version: version + 2 })
}

/** The person without what only its image has. */
function personOf({ anyId: _, ...person }: Person & { readonly anyId?: string }): Person {
  return person
}

const shownIdsMax = 20

function shownIds(ids: readonly ({ readonly distinctId: string } | { readonly subject: string })[]): string[] {
  return ids.slice(0, shownIdsMax).map(id => ('subject' in id ? id.subject : id.distinctId))
}
