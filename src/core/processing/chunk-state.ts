// The working copy of a chunk's loaded state, which its events read and change. It is made for one call of `processChunk`
// and discarded afterwards. It keeps persons, mappings and groups consistent; callers decide what changes.

import type { Group, GroupType } from '../groups/group.ts'
import { groupTypeCountMax } from '../groups/group.ts'
import type { ImportLink } from '../imports/import-changes.ts'
import { isJobPending, toStagingProjectId } from '../imports/import-job.ts'
import type { PropertyBag } from '../json.ts'
import type { DistinctIdMapping, Person, PropertyMarks } from '../persons/person.ts'
import { personUuid } from '../persons/person-uuid.ts'
import type { Profile } from '../persons/profile.ts'
import type { Project } from '../project.ts'
import type { LoadedChunk, Versioned } from './chunk.ts'

export interface WorkingPerson {
  readonly uuid: string
  properties: PropertyBag
  /** `properties` were made for this working copy, so they may be changed in place. */
  ownsProperties: boolean
  marks: PropertyMarks
  createdAtMs: number
  isIdentified: boolean
  version: number
  lastSeenAtMs: number
  /** Null for a person that this chunk creates. */
  readonly loadedVersion: number | null
  changed: boolean
  mergedInto: WorkingPerson | null
  /** Persons merged into this one, in order; null when there are none, as for nearly every person. */
  absorbed: WorkingPerson[] | null
  mappings: WorkingMapping[]
  /** JSON text of `properties`; null if it must be rebuilt. */
  propertiesJson: string | null
}

export interface WorkingMapping {
  readonly distinctId: string
  person: WorkingPerson
  version: number
  readonly loadedVersion: number | null
  changed: boolean
}

export interface RefusedGroupType {
  readonly name: string
  /**
   * `too_many`: all five types are taken; `frozen`: the project allows no new types; `being_deleted`: the type was
   * deleted and its groups still exist.
   */
  readonly reason: 'too_many' | 'frozen' | 'being_deleted'
}

interface WorkingGroup {
  group: Group
  readonly loadedVersion: number | null
  changed: boolean
}

/** The part of the working copy of one project, or of a pending job's staging overlay, which has separate persons and groups. */
export class ProjectState {
  readonly project: Project
  /** The project id under which its persons and groups are stored: the project's id, or the staging overlay's. */
  readonly subjectsId: number
  /** The project whose events the staging overlay holds; null for a project itself. */
  readonly #stagedProject: ProjectState | null
  /** Whether an import of the project is being undone. */
  readonly #isUndone: boolean
  /** Links to be made when the job is published. */
  readonly links: Omit<ImportLink, 'importJobId'>[] = []
  /** Group types that events of the staging overlay added to the project. */
  readonly addedGroupTypes: GroupType[] = []
  readonly persons: WorkingPerson[] = []
  readonly mappings = new Map<string, WorkingMapping>()
  readonly newPersonlessIds = new Set<string>()
  /**
   * Ids that were attached to a person whose uuid derives from another id, before any event had used them without a person.
   */
  readonly neverPersonlessIds: string[] = []
  readonly newGroupTypes: GroupType[] = []
  /** Characters of property text that events wrote to groups, counting each write. */
  groupTextLength = 0
  /** For each id that events have used without a person: the version of its next mapping. */
  readonly #personlessIds = new Map<string, number>()
  readonly #groupTypes = new Map<string, number>()
  /** Indexes of the group types that events of the staging overlay name, by name. */
  readonly #stagedTypes = new Map<string, number>()
  readonly #takenIndexes = new Set<number>()
  readonly #typesBeingDeleted = new Set<string>()
  #refusedGroupType: RefusedGroupType | null = null
  readonly #groups = new Map<string, WorkingGroup>()
  readonly #uuids = new Map<string, string>()

  constructor(project: Project, staging?: { readonly id: number; readonly of: ProjectState }, isUndone = false) {
    this.project = project
    this.subjectsId = staging?.id ?? project.id
    this.#stagedProject = staging?.of ?? null
    this.#isUndone = isUndone
  }

  /** Whether this is the staging overlay of a pending job. */
  get isStaging(): boolean {
    return this.#stagedProject !== null
  }

  /**
   * While an import is undone, finding a person counts as a change: the undo first checks a person's uses, then removes the
   * person.
   */
  findPerson(distinctId: string): WorkingPerson | undefined {
    const person = this.mappings.get(distinctId)?.person
    if (this.#isUndone && person !== undefined && !person.changed) {
      person.version += 1
      person.changed = true
    }
    return person
  }

  /**
   * The person uuid that derives from a distinct id: for events without a person, and for a person that the id creates.
   */
  uuidOf(distinctId: string): string {
    let uuid = this.#uuids.get(distinctId)
    if (uuid === undefined) {
      uuid = personUuid(this.project.id, distinctId)
      this.#uuids.set(distinctId, uuid)
    }
    return uuid
  }

  /** Makes the id create its person with this uuid instead of the derived one. */
  replaceUuid(distinctId: string, uuid: string): void {
    this.#uuids.set(distinctId, uuid)
  }

  createPerson(uuid: string, profile: Profile, timestampMs: number, isIdentified: boolean): WorkingPerson {
    const person: WorkingPerson = {
      uuid,
      properties: profile.properties,
      ownsProperties: false,
      marks: profile.marks,
      createdAtMs: timestampMs,
      isIdentified,
      version: 0,
      lastSeenAtMs: timestampMs,
      loadedVersion: null,
      changed: true,
      mergedInto: null,
      absorbed: null,
      mappings: [],
      propertiesJson: null,
    }
    this.persons.push(person)
    return person
  }

  /**
   * Maps a distinct id without a mapping to a person.
   * @param version the result of `nextVersionOf` or of `versionFor`.
   */
  attach(distinctId: string, person: WorkingPerson, version: number): void {
    const mapping = { distinctId, person, version, loadedVersion: null, changed: true }
    this.mappings.set(distinctId, mapping)
    person.mappings.push(mapping)
    if (version === 0 && !this.isStaging && person.uuid !== this.uuidOf(distinctId))
      this.neverPersonlessIds.push(distinctId)
  }

  /** Maps every distinct id of `other` to `survivor` and marks `other` as merged away. */
  moveDistinctIds(other: WorkingPerson, survivor: WorkingPerson): void {
    for (const mapping of other.mappings) {
      mapping.person = survivor
      mapping.version += 1
      mapping.changed = true
      survivor.mappings.push(mapping)
    }
    other.mappings = []
    other.mergedInto = survivor
    survivor.absorbed ??= []
    survivor.absorbed.push(other)
  }

  /** The version of a new mapping: 0 if no event has used the id without a person, so that no override is needed. */
  nextVersionOf(distinctId: string): number {
    return this.#personlessIds.get(distinctId) ?? 0
  }

  /**
   * Whether the id has rows without a person; such rows carry the uuid derived from the id. False once an import that gave
   * the id to another person was undone: then an override maps the id's rows to that uuid, whether or not any row was
   * personless.
   */
  hasPersonlessRows(distinctId: string): boolean {
    return this.nextVersionOf(distinctId) === 1
  }

  /**
   * The version of the new mapping of an id to the person with this uuid: 0 if the id's rows without a person have that
   * uuid.
   */
  versionFor(distinctId: string, uuid: string): number {
    const isTheirs = this.hasPersonlessRows(distinctId) && uuid === this.uuidOf(distinctId)
    return isTheirs ? 0 : this.nextVersionOf(distinctId)
  }

  rememberPersonless(distinctId: string): void {
    if (this.#personlessIds.has(distinctId)) return
    this.#personlessIds.set(distinctId, 1)
    this.newPersonlessIds.add(distinctId)
  }

  /**
   * The index of a group type. A new name takes the lowest free index; undefined if it is refused (`takeRefusedGroupType`).
   */
  groupTypeIndex(name: string): number | undefined {
    if (this.#stagedProject !== null) return this.#stagedTypeIndex(this.#stagedProject, name)
    const known = this.#groupTypes.get(name)
    if (known !== undefined) return known
    const reason = this.#typesBeingDeleted.has(name)
      ? 'being_deleted'
      : this.project.ingestion.groupTypesFrozen
        ? 'frozen'
        : null
    for (let index = 0; reason === null && index < groupTypeCountMax; index++) {
      if (this.#takenIndexes.has(index)) continue
      this.#takenIndexes.add(index)
      this.#groupTypes.set(name, index)
      this.newGroupTypes.push({ projectId: this.project.id, name, index })
      return index
    }
    this.#refusedGroupType ??= { name, reason: reason ?? 'too_many' }
    return undefined
  }

  /** A staging overlay shares the types of its project, because its rows use the same columns. */
  #stagedTypeIndex(of: ProjectState, name: string): number | undefined {
    const typeCount = of.newGroupTypes.length
    const index = of.groupTypeIndex(name)
    if (of.newGroupTypes.length > typeCount) this.addedGroupTypes.push(of.newGroupTypes.at(-1)!)
    if (index !== undefined) this.#stagedTypes.set(name, index)
    return index
  }

  /** Returns the first type that was refused since the last call. */
  takeRefusedGroupType(): RefusedGroupType | null {
    if (this.#stagedProject !== null) return this.#stagedProject.takeRefusedGroupType()
    const refused = this.#refusedGroupType
    if (refused !== null) this.#refusedGroupType = null
    return refused
  }

  /** The existing types of the groups to write; for a staging overlay, all existing types that its events name. */
  usedGroupTypes(): GroupType[] {
    const used = new Set(this.#stagedTypes.values())
    for (const { group, changed } of this.#groups.values()) if (changed) used.add(group.typeIndex)
    return this.#groupTypesAt(used, (this.#stagedProject ?? this).newGroupTypes)
  }

  /** The types that a staging overlay's events name but did not add; other events of the chunk may have added them. */
  namedGroupTypes(): GroupType[] {
    return this.#groupTypesAt(new Set(this.#stagedTypes.values()), this.addedGroupTypes)
  }

  #groupTypesAt(indexes: Set<number>, except: readonly GroupType[]): GroupType[] {
    for (const { index } of except) indexes.delete(index)
    if (indexes.size === 0) return []
    return [...(this.#stagedProject ?? this).#groupTypes]
      .filter(([, index]) => indexes.has(index))
      .map(([name, index]) => ({ projectId: this.project.id, name, index }))
  }

  /** Undefined for an index without a type, or whose type is being deleted. */
  nameOfGroupType(typeIndex: number): string | undefined {
    return this.#groupTypes.entries().find(([, index]) => index === typeIndex)?.[0]
  }

  findGroup(typeIndex: number, key: string): Group | null {
    return this.#groups.get(`${typeIndex}:${key}`)?.group ?? null
  }

  saveGroup(group: Group): void {
    const key = `${group.typeIndex}:${group.key}`
    const loadedVersion = this.#groups.get(key)?.loadedVersion ?? null
    this.#groups.set(key, { group, loadedVersion, changed: true })
  }

  /** A separate working copy, without persons that were merged away. */
  copy(): ProjectState {
    const copy = new ProjectState(this.project)
    for (const person of this.persons) {
      if (person.mergedInto !== null) continue
      // If its properties were changed in place, they would change in both copies.
      person.ownsProperties = false
      const copied: WorkingPerson = { ...person, absorbed: null, mappings: [] }
      copy.persons.push(copied)
      for (const mapping of person.mappings) {
        const copiedMapping = { ...mapping, person: copied }
        copied.mappings.push(copiedMapping)
        copy.mappings.set(mapping.distinctId, copiedMapping)
      }
    }
    for (const [id, uuid] of this.#uuids) copy.#uuids.set(id, uuid)
    for (const [id, version] of this.#personlessIds) copy.#personlessIds.set(id, version)
    for (const [name, index] of this.#groupTypes) copy.#groupTypes.set(name, index)
    for (const index of this.#takenIndexes) copy.#takenIndexes.add(index)
    for (const name of this.#typesBeingDeleted) copy.#typesBeingDeleted.add(name)
    for (const [key, group] of this.#groups) copy.#groups.set(key, { ...group })
    return copy
  }

  loadPerson(row: Person, propertiesJson: string | null): WorkingPerson {
    const { uuid, properties, marks, createdAtMs, isIdentified, version, lastSeenAtMs } = row
    const kept = { uuid, properties, marks, createdAtMs, isIdentified, version, lastSeenAtMs }
    return {
      ...kept,
      ownsProperties: false,
      loadedVersion: version,
      changed: false,
      mergedInto: null,
      absorbed: null,
      mappings: [],
      propertiesJson,
    }
  }

  loadMapping(row: DistinctIdMapping, person: WorkingPerson): void {
    if (this.mappings.has(row.distinctId)) return
    const { distinctId, version } = row
    const mapping = { distinctId, person, version, loadedVersion: version, changed: false }
    this.mappings.set(distinctId, mapping)
    person.mappings.push(mapping)
  }

  loadPersonless(distinctId: string, nextVersion: number): void {
    this.#personlessIds.set(distinctId, nextVersion)
  }

  loadGroupType({ name, index, isBeingDeleted }: GroupType): void {
    this.#takenIndexes.add(index)
    if (isBeingDeleted === true) this.#typesBeingDeleted.add(name)
    else this.#groupTypes.set(name, index)
  }

  loadGroup(group: Group): void {
    this.#groups.set(`${group.typeIndex}:${group.key}`, { group, loadedVersion: group.version, changed: false })
  }

  changedGroups(): Versioned<Group>[] {
    const changed: Versioned<Group>[] = []
    for (const { group, loadedVersion, changed: isChanged } of this.#groups.values())
      if (isChanged) changed.push({ row: group, loadedVersion })
    return changed
  }
}

/** Creates the working copy: a `ProjectState` for each project id. Never changes `loaded`. */
export function openChunkState(loaded: LoadedChunk): ReadonlyMap<number, ProjectState> {
  const projects = new Map(
    loaded.projects.map(project => [
      project.id,
      new ProjectState(project, undefined, loaded.importUndos?.get(project.id)?.isRunning),
    ]),
  )
  for (const job of loaded.importJobs ?? []) {
    const of = projects.get(job.projectId)
    const id = toStagingProjectId(job.id)
    if (of !== undefined && isJobPending(job)) projects.set(id, new ProjectState(of.project, { id, of }))
  }
  const persons = new Map<string, WorkingPerson>()
  for (const [index, row] of loaded.persons.entries()) {
    const project = projects.get(row.projectId)
    if (project === undefined) continue
    const person = project.loadPerson(row, loaded.personPropertiesJson?.[index] ?? null)
    project.persons.push(person)
    persons.set(`${row.projectId}:${row.uuid}`, person)
  }
  for (const rows of [loaded.personMappings, loaded.mappings])
    for (const row of rows) {
      const person = persons.get(`${row.projectId}:${row.personUuid}`)
      if (person !== undefined) projects.get(row.projectId)?.loadMapping(row, person)
    }
  for (const { projectId, distinctId, nextVersion = 1 } of loaded.personlessDistinctIds)
    projects.get(projectId)?.loadPersonless(distinctId, nextVersion)
  for (const type of loaded.groupTypes) projects.get(type.projectId)?.loadGroupType(type)
  for (const group of loaded.groups) projects.get(group.projectId)?.loadGroup(group)
  return projects
}
