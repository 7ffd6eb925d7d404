// Carries out undos, repairs and splits by one rule: where the stored persons and groups are what one fold of their events
// gives, they become what another fold gives. What the first fold does not explain stays, and is noted. Therefore applying
// the rule again changes nothing more. Pure.

import type { PersonIdOverride } from '#core/events/stored-event.ts'
import type { Group } from '#core/groups/group.ts'
import {
  type Assignments,
  type AssignmentsRecord,
  type ImportChanges,
  noImportChanges,
  type UndoRefusal,
} from '#core/imports/import-changes.ts'
import { getOwnValue, type JsonObject } from '#core/json.ts'
import { isSameJson } from '#core/json-equal.ts'
import type { DistinctIdMapping, Person, PropertyMark } from '#core/persons/person.ts'
import { personUuid } from '#core/persons/person-uuid.ts'
import { type Profile, ProfileDraft } from '#core/persons/profile.ts'
import { type ChunkChanges, noChunkChanges, type Versioned } from '#core/processing/chunk.ts'
import { openChunkState, type ProjectState, type WorkingPerson } from '#core/processing/chunk-state.ts'
import type { JobBatch, JobNote, PublishedBatch } from '#core/processing/imports/publish-staging.ts'
import { LinkedIds } from './linked-ids.ts'

export interface DifferenceBatch extends JobBatch {
  /**
   * The fold that the stored persons and groups result from; values that this fold does not explain stay. If absent,
   * `wanted` replaces everything.
   */
  readonly was?: ProjectState
  readonly wanted: ProjectState
  /**
   * The distinct ids with events. An id without events is only named by an event's link, and that link does not count if
   * the id was deleted since.
   */
  readonly idsWithEvents: ReadonlySet<string>
  /** Distinct ids whose persons this batch must not change. */
  readonly openIds?: ReadonlySet<unknown>
  /** Flag assignments and static cohorts that the job's merges moved, which return to persons that exist again. */
  readonly assignments?: readonly AssignmentsRecord[]
}

/** The note for a person or group that its events do not explain completely. */
const incomplete: UndoRefusal = 'undo_left:history_is_incomplete'
const shownIdsMax = 20

/** @returns what to commit, and notes about values left unchanged; `changes` does not contain these notes. */
export function applyHistoryDifference(
  batch: DifferenceBatch,
): PublishedBatch & { readonly notes: readonly JobNote[] } {
  const work = new Difference(batch)
  for (const component of work.components()) work.changePersons(component)
  for (const group of work.groups()) work.changeGroup(group)
  work.replaceUncommitted()
  return work.result()
}

class Difference {
  readonly #batch: DifferenceBatch
  readonly #was: ProjectState
  readonly #persons: ReadonlyMap<string, Person>
  readonly #mappings: ReadonlyMap<string, DistinctIdMapping>
  /** The version of an id's next mapping, for ids without a person. */
  readonly #nextVersions: ReadonlyMap<string, number>
  /** The highest version of an id's override that an uncommitted try has published. */
  readonly #published: ReadonlyMap<string, number>
  readonly #writtenPersons: Versioned<Person>[] = []
  readonly #writtenMappings: Versioned<DistinctIdMapping>[] = []
  readonly #writtenGroups: Versioned<Group>[] = []
  readonly #overrides: PersonIdOverride[] = []
  readonly #mergedPersons: ChunkChanges['deletedPersons'][number][] = []
  readonly #removedPersons: ImportChanges['removedPersons'][number][] = []
  readonly #removedMappings: ImportChanges['removedMappings'][number][] = []
  readonly #removedGroups: ImportChanges['removedGroups'][number][] = []
  readonly #nextMappings: ImportChanges['nextVersions'][number][] = []
  readonly #restored: string[] = []
  readonly #notes: JobNote[] = []

  constructor(batch: DifferenceBatch) {
    const { projectId, loaded, publishedOverrides = [] } = batch
    const ofProject = <Row extends { readonly projectId: number }>(rows: readonly Row[]) =>
      rows.filter(row => row.projectId === projectId)
    this.#batch = batch
    this.#was = batch.was ?? openChunkState(loaded).get(projectId)!
    this.#persons = new Map(ofProject(loaded.persons).map(row => [row.uuid, row]))
    const mappings = ofProject([...loaded.personMappings, ...loaded.mappings])
    this.#mappings = new Map(mappings.map(row => [row.distinctId, row]))
    const personless = ofProject(loaded.personlessDistinctIds)
    this.#nextVersions = new Map(personless.map(({ distinctId, nextVersion = 1 }) => [distinctId, nextVersion]))
    this.#published = new Map(Array.from(publishedOverrides, each => [each.distinctId, each.version]))
  }

  /** The sets of distinct ids whose persons may affect each other. */
  components(): Iterable<readonly string[]> {
    const { wanted, idsWithEvents } = this.#batch
    const linked = new LinkedIds()
    const idOfPerson = new Map<string, string>()
    for (const id of new Set([...this.#mappings.keys(), ...this.#was.mappings.keys(), ...wanted.mappings.keys()])) {
      const isDeleted = !this.#mappings.has(id) && !idsWithEvents.has(id)
      if (isDeleted) continue
      linked.add(id)
      for (const uuid of [this.#mappings.get(id)?.personUuid, findUuid(this.#was, id), findUuid(wanted, id)])
        if (uuid !== undefined) linked.link(idOfPerson.getOrInsert(uuid, id), id)
    }
    return linked.sets()
  }

  groups(): readonly Group[] {
    const { projectId, loaded } = this.#batch
    return loaded.groups.filter(row => row.projectId === projectId)
  }

  changePersons(component: readonly string[]): void {
    const { projectId, wanted, openIds } = this.#batch
    const was = this.#was
    if (component.some(id => openIds?.has(id) === true)) return
    const note = () => this.#note({ distinctIds: component.toSorted().slice(0, shownIdsMax) })
    const uuidOf = { was: this.#uuidsIn(was, component), wanted: this.#uuidsIn(wanted, component) }
    const isAsIn = (uuids: ReadonlyMap<string, string>) =>
      component.every(id => this.#mappings.get(id)?.personUuid === uuids.get(id))
    if (!isAsIn(uuidOf.was)) {
      const isGone = component.every(id => !this.#mappings.has(id))
      if (!isAsIn(uuidOf.wanted) && !isGone) note()
      return
    }
    const rows = new Set(component.flatMap(id => this.#persons.get(this.#mappings.get(id)?.personUuid ?? '') ?? []))
    const nextVersion = Math.max(-1, ...Array.from(rows, row => row.version)) + 1
    const before = indexPersons(was, uuidOf.was)
    const after = indexPersons(wanted, uuidOf.wanted)
    const removed = Array.from(rows).filter(({ uuid }) => !after.has(uuid))
    if (!removed.every(row => isSameProfile(row, before.get(row.uuid)!))) {
      note()
      return
    }
    for (const { uuid, version: loadedVersion } of removed) {
      const ids = component.filter(id => this.#mappings.get(id)?.personUuid === uuid)
      const survivors = ids.map(id => uuidOf.wanted.get(id))
      const survivorUuid = survivors.includes(undefined) ? undefined : survivors[0]
      // A link that was refused only because of the job's events is now made, so assignments move as in any merge.
      if (survivorUuid !== undefined) this.#mergedPersons.push({ projectId, uuid, survivorUuid, loadedVersion })
      else this.#removedPersons.push({ projectId, uuid, loadedVersion })
    }
    for (const [uuid, person] of after) {
      const now = this.#persons.get(uuid)
      if (now !== undefined) this.#changePerson(now, before.get(uuid)!, person)
      else {
        const { properties, marks, createdAtMs, isIdentified, lastSeenAtMs } = person
        const row = { projectId, uuid, properties, marks, createdAtMs, isIdentified, lastSeenAtMs }
        this.#writtenPersons.push({ row: { ...row, version: nextVersion }, loadedVersion: null })
        this.#restored.push(uuid)
      }
    }
    for (const id of component) this.#changeMapping(id, uuidOf.wanted.get(id))
  }

  /**
   * The person uuids of ids in a rebuilt state. The uuid of a person derives from one of its ids. Which of its ids that is
   * may depend on something that the events do not show, such as an import that was undone since: then the person keeps the
   * uuid that it has.
   */
  #uuidsIn(state: ProjectState, component: readonly string[]): ReadonlyMap<string, string> {
    const { wanted, was: rebuilt = wanted } = this.#batch
    const nowOf = new Map<string | undefined, Set<string | undefined>>()
    const rebuiltOf = new Map<string | undefined, Set<string | undefined>>()
    const native = new Set<string | undefined>()
    for (const id of component) {
      const now = this.#mappings.get(id)?.personUuid
      nowOf.getOrInsertComputed(findUuid(rebuilt, id), () => new Set()).add(now)
      rebuiltOf.getOrInsertComputed(now, () => new Set()).add(findUuid(rebuilt, id))
      native.add(findUuid(state, id))
    }
    const toCurrentUuid = (uuid: string) => {
      const [now, ...others] = nowOf.get(uuid) ?? []
      const isOne = now !== undefined && others.length === 0 && rebuiltOf.get(now)?.size === 1
      return isOne && !native.has(now) ? now : uuid
    }
    return new Map(
      component.flatMap(id => {
        const uuid = findUuid(state, id)
        return uuid === undefined ? [] : [[id, toCurrentUuid(uuid)]]
      }),
    )
  }

  #changePerson(now: Person, was: WorkingPerson, wanted: WorkingPerson): void {
    const subject = { personId: now.uuid }
    const { properties, marks } = this.#changeProfile(now, was, wanted, subject)
    const choose = <Value>(field: string, of: (person: Omit<Person, 'projectId'>) => Value): Value => {
      if (of(now) === of(was)) return of(wanted)
      if (of(was) !== of(wanted) && of(now) !== of(wanted)) this.#note({ ...subject, field })
      return of(now)
    }
    const createdAtMs = choose('created_at', person => person.createdAtMs)
    const isIdentified = choose('is_identified', person => person.isIdentified)
    // A different `lastSeenAtMs` stays without a note: no response shows it, and each copy of an event moves it forward. A
    // rebuild keeps a later time, since it may come from an event that has been deleted since.
    const isLeft =
      now.lastSeenAtMs !== was.lastSeenAtMs || (this.#batch.was === undefined && now.lastSeenAtMs > wanted.lastSeenAtMs)
    const lastSeenAtMs = isLeft ? now.lastSeenAtMs : wanted.lastSeenAtMs
    const isSame =
      properties === now.properties &&
      createdAtMs === now.createdAtMs &&
      isIdentified === now.isIdentified &&
      lastSeenAtMs === now.lastSeenAtMs
    if (isSame) return
    const row = { ...now, properties, marks, createdAtMs, isIdentified, lastSeenAtMs, version: now.version + 1 }
    this.#writtenPersons.push({ row, loadedVersion: now.version })
  }

  #changeMapping(distinctId: string, uuid: string | undefined): void {
    const { projectId, wanted } = this.#batch
    const now = this.#mappings.get(distinctId)
    if (now?.personUuid === uuid) return
    const published = this.#published.get(distinctId)
    const lowest = now === undefined ? Math.max(1, this.#nextVersions.get(distinctId) ?? 1) : now.version + 1
    const version = Math.max(lowest, (published ?? -1) + 1)
    if (uuid !== undefined) {
      const row = { projectId, distinctId, personUuid: uuid, version }
      this.#writtenMappings.push({ row, loadedVersion: now?.version ?? null })
      this.#overrides.push({ projectId, distinctId, personId: uuid, version })
      return
    }
    this.#removedMappings.push({ projectId, distinctId, loadedVersion: now!.version })
    const ownUuid = personUuid(projectId, distinctId)
    const haveRowsOwnUuid = now!.personUuid === ownUuid || !this.#batch.idsWithEvents.has(distinctId)
    if (now!.version === 0 && published === undefined && haveRowsOwnUuid) {
      // A person that the id gets later needs an override to get the id's rows without a person.
      if (wanted.hasPersonlessRows(distinctId)) this.#nextMappings.push({ projectId, distinctId, version: 1 })
      return
    }
    // The id's rows get their original person; the next mapping of the id wins over this override.
    this.#overrides.push({ projectId, distinctId, personId: ownUuid, version })
    this.#nextMappings.push({ projectId, distinctId, version: version + 1 })
  }

  /**
   * Replaces overrides that a try published before it conflicted: they give the ids' rows persons that may no longer be
   * wanted.
   */
  replaceUncommitted(): void {
    const written = new Set([...this.#writtenMappings.map(({ row }) => row), ...this.#removedMappings].map(idOf))
    for (const now of this.#mappings.values()) {
      const published = this.#published.get(now.distinctId) ?? -1
      if (published <= now.version || written.has(now.distinctId)) continue
      const { projectId, distinctId, personUuid: personId } = now
      const version = published + 1
      this.#writtenMappings.push({ row: { ...now, version }, loadedVersion: now.version })
      this.#overrides.push({ projectId, distinctId, personId, version })
    }
  }

  changeGroup(now: Group): void {
    const { projectId, typeIndex, key, version } = now
    const was = this.#was.findGroup(typeIndex, key)
    const wanted = this.#batch.wanted.findGroup(typeIndex, key)
    const subject = { groupTypeIndex: typeIndex, groupKey: key }
    if (was === null || (wanted === null && !isSameProfile(now, was))) {
      if (wanted === null || !isSameProfile(now, wanted)) this.#note(subject)
      return
    }
    if (wanted === null) {
      this.#removedGroups.push({ projectId, typeIndex, key, loadedVersion: version })
      return
    }
    const { properties, marks } = this.#changeProfile(now, was, wanted, subject)
    const createdAtMs = now.createdAtMs === was.createdAtMs ? wanted.createdAtMs : now.createdAtMs
    if (properties === now.properties && createdAtMs === now.createdAtMs) return
    const row = { ...now, properties, marks, createdAtMs, version: version + 1 }
    this.#writtenGroups.push({ row, loadedVersion: version })
  }

  /** @returns the same properties and marks if nothing changes. */
  #changeProfile(now: Profile, was: Profile, wanted: Profile, subject: JsonObject): Profile {
    if (isSameProfile(now, wanted)) return now
    if (isSameProfile(now, was)) return { properties: wanted.properties, marks: wanted.marks }
    const draft = new ProfileDraft(now)
    for (const key of new Set([now, was, wanted].flatMap(listKeys))) {
      if (isSameKey(now, wanted, key)) continue
      const isAsBefore = isSameKey(now, was, key)
      // A mark that names the job shows that the value is the job's, even when the job's event was not stored.
      const isOfJob = getMark(now, key)?.importJobId === this.#batch.importJobId
      if (!isAsBefore && (isOfJob || !isSameKey(was, wanted, key))) this.#note({ ...subject, key })
      if (!isAsBefore && !isOfJob) continue
      const value = getOwnValue(wanted.properties, key)
      if (value === undefined) draft.removeProperty(key)
      else draft.setProperty(key, value)
      const mark = getMark(wanted, key)
      if (mark === undefined) draft.removeMark(key)
      else draft.setMark(key, mark)
    }
    return draft.result() ?? now
  }

  #note(details: JsonObject): void {
    this.#notes.push({ reason: incomplete, details })
  }

  result(): PublishedBatch & { readonly notes: readonly JobNote[] } {
    return {
      notes: this.#notes,
      overrides: this.#overrides,
      changes: {
        ...noChunkChanges,
        persons: this.#writtenPersons,
        deletedPersons: this.#mergedPersons,
        mappings: this.#writtenMappings,
        groups: this.#writtenGroups,
        imports: {
          ...noImportChanges,
          removedPersons: this.#removedPersons,
          removedMappings: this.#removedMappings,
          removedGroups: this.#removedGroups,
          nextVersions: this.#nextMappings,
          returnedAssignments: this.#returnedAssignments(),
        },
      },
    }
  }

  /** A person that exists again gets its own assignments back; the survivors keep their own. */
  #returnedAssignments(): ImportChanges['returnedAssignments'] {
    const { projectId, assignments = [] } = this.#batch
    const recordOf = new Map(assignments.map(record => [record.uuid, record]))
    return this.#restored.flatMap(uuid => {
      const record = recordOf.get(uuid)
      if (record === undefined) return []
      const gotByMerges = assignments.filter(({ survivorUuid }) => survivorUuid === uuid).map(({ taken }) => taken)
      const own = gotByMerges.reduce(subtractAssignments, record.own)
      // If the job also merged the survivor away, a later survivor may have got some of the assignments.
      let { taken: given, survivorUuid } = record
      for (let next = recordOf.get(survivorUuid); next !== undefined; next = recordOf.get(survivorUuid)) {
        if (this.#persons.has(survivorUuid)) break
        given = subtractAssignments(given, subtractAssignments(given, next.taken))
        survivorUuid = next.survivorUuid
      }
      return { projectId, uuid, assignments: own, survivorUuid, given }
    })
  }
}

function findUuid(state: ProjectState, distinctId: string): string | undefined {
  return state.mappings.get(distinctId)?.person.uuid
}

function indexPersons(state: ProjectState, uuidOf: ReadonlyMap<string, string>): ReadonlyMap<string, WorkingPerson> {
  return new Map(Array.from(uuidOf, ([id, uuid]) => [uuid, state.mappings.get(id)!.person]))
}

function listKeys({ properties, marks }: Profile): string[] {
  return [...Object.keys(properties), ...Object.keys(marks)]
}

function idOf({ distinctId }: { readonly distinctId: string }): string {
  return distinctId
}

function getMark({ marks }: Profile, key: string): PropertyMark | undefined {
  return Object.hasOwn(marks, key) ? marks[key] : undefined
}

function isSameKey(a: Profile, b: Profile, key: string): boolean {
  return (
    isSameJson(getOwnValue(a.properties, key), getOwnValue(b.properties, key)) &&
    isSameJson({ ...getMark(a, key) }, { ...getMark(b, key) })
  )
}

function isSameProfile(a: Profile, b: Profile): boolean {
  return listKeys(a).length === listKeys(b).length && listKeys(a).every(key => isSameKey(a, b, key))
}

function subtractAssignments({ hashKeys, cohortIds }: Assignments, other: Assignments): Assignments {
  const others = new Set(other.hashKeys.map(row => row.join('\0')))
  return {
    hashKeys: hashKeys.filter(row => !others.has(row.join('\0'))),
    cohortIds: cohortIds.filter(id => !other.cohortIds.includes(id)),
  }
}
