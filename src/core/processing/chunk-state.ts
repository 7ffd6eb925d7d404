// What a chunk's events read and change while they are applied: a working copy of what was loaded, made for one call of
// `processChunk` and thrown away after it. Knows how persons, mappings and groups hang together, not why they change.

import type { PersonIdOverride } from '../events/stored-event.ts'
import type { Group, GroupType } from '../groups/group.ts'
import { groupTypeCountMax } from '../groups/group.ts'
import type { PropertyBag } from '../json.ts'
import type { DistinctIdMapping, Person, PropertyMarks } from '../persons/person.ts'
import { personUuid } from '../persons/person-uuid.ts'
import type { Profile } from '../persons/profile.ts'
import type { Project } from '../project.ts'
import type { ChunkChanges, LoadedChunk, Versioned } from './chunk.ts'

export interface WorkingPerson {
  readonly uuid: string
  properties: PropertyBag
  /** `properties` were made for this working copy, and are changed in place from then on. */
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
  /** Persons merged into this one, in order; null while there is none, as nearly always. */
  absorbed: WorkingPerson[] | null
  mappings: WorkingMapping[]
  /** JSON text of `properties`; null when it has to be made again. */
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
  /** All five are taken; the project wants no more of them; the name was deleted and its groups are not gone yet. */
  readonly why: 'too_many' | 'frozen' | 'being_deleted'
}

interface WorkingGroup {
  group: Group
  readonly loadedVersion: number | null
  changed: boolean
}

/** One project's part of the working copy. */
export class ProjectState {
  readonly project: Project
  readonly persons: WorkingPerson[] = []
  readonly mappings = new Map<string, WorkingMapping>()
  readonly newPersonlessIds = new Set<string>()
  /** Ids that were attached to a person of another name as ones that were never personless. */
  readonly neverPersonlessIds: string[] = []
  readonly newGroupTypes: GroupType[] = []
  private readonly personlessIds = new Set<string>()
  private readonly groupTypes = new Map<string, number>()
  private readonly takenIndexes = new Set<number>()
  private readonly typesBeingDeleted = new Set<string>()
  private refusedGroupType: RefusedGroupType | null = null
  private readonly groups = new Map<string, WorkingGroup>()
  private readonly uuids = new Map<string, string>()

  constructor(project: Project) {
    this.project = project
  }

  findPerson(distinctId: string): WorkingPerson | undefined {
    return this.mappings.get(distinctId)?.person
  }

  /** The person id of a distinct id that no person has, or that creates one. */
  uuidOf(distinctId: string): string {
    let uuid = this.uuids.get(distinctId)
    if (uuid === undefined) {
      uuid = personUuid(this.project.id, distinctId)
      this.uuids.set(distinctId, uuid)
    }
    return uuid
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

  /** Leads a distinct id that leads nowhere yet to a person; the version says whether it was personless before. */
  attach(distinctId: string, person: WorkingPerson, version: 0 | 1): void {
    const mapping = { distinctId, person, version, loadedVersion: null, changed: true }
    this.mappings.set(distinctId, mapping)
    person.mappings.push(mapping)
    if (version === 0 && person.uuid !== this.uuidOf(distinctId)) this.neverPersonlessIds.push(distinctId)
  }

  /** Leads every distinct id of `other` to `survivor` and marks `other` as merged away. */
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

  isPersonless(distinctId: string): boolean {
    return this.personlessIds.has(distinctId)
  }

  rememberPersonless(distinctId: string): void {
    if (this.personlessIds.has(distinctId)) return
    this.personlessIds.add(distinctId)
    this.newPersonlessIds.add(distinctId)
  }

  /**
   * The index of a group type, taking the lowest free one for a new name; undefined when it gets none, which
   * `takeRefusedGroupType` tells of.
   */
  groupTypeIndex(name: string): number | undefined {
    const known = this.groupTypes.get(name)
    if (known !== undefined) return known
    const why = this.typesBeingDeleted.has(name)
      ? 'being_deleted'
      : this.project.ingestion.groupTypesFrozen
        ? 'frozen'
        : null
    for (let index = 0; why === null && index < groupTypeCountMax; index++) {
      if (this.takenIndexes.has(index)) continue
      this.takenIndexes.add(index)
      this.groupTypes.set(name, index)
      this.newGroupTypes.push({ projectId: this.project.id, name, index })
      return index
    }
    this.refusedGroupType ??= { name, why: why ?? 'too_many' }
    return undefined
  }

  /** The first type that was refused since this was last called. */
  takeRefusedGroupType(): RefusedGroupType | null {
    const refused = this.refusedGroupType
    if (refused !== null) this.refusedGroupType = null
    return refused
  }

  /** The types, known before, under which groups are written. */
  usedGroupTypes(): GroupType[] {
    const used = new Set<number>()
    for (const { group, changed } of this.groups.values()) if (changed) used.add(group.typeIndex)
    for (const { index } of this.newGroupTypes) used.delete(index)
    if (used.size === 0) return []
    return [...this.groupTypes]
      .filter(([, index]) => used.has(index))
      .map(([name, index]) => ({ projectId: this.project.id, name, index }))
  }

  findGroup(typeIndex: number, key: string): Group | null {
    return this.groups.get(`${typeIndex}:${key}`)?.group ?? null
  }

  saveGroup(group: Group): void {
    const key = `${group.typeIndex}:${group.key}`
    const loadedVersion = this.groups.get(key)?.loadedVersion ?? null
    this.groups.set(key, { group, loadedVersion, changed: true })
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

  loadPersonless(distinctId: string): void {
    this.personlessIds.add(distinctId)
  }

  loadGroupType({ name, index, isBeingDeleted }: GroupType): void {
    this.takenIndexes.add(index)
    if (isBeingDeleted === true) this.typesBeingDeleted.add(name)
    else this.groupTypes.set(name, index)
  }

  loadGroup(group: Group): void {
    this.groups.set(`${group.typeIndex}:${group.key}`, { group, loadedVersion: group.version, changed: false })
  }

  changedGroups(): Versioned<Group>[] {
    const changed: Versioned<Group>[] = []
    for (const { group, loadedVersion, changed: isChanged } of this.groups.values())
      if (isChanged) changed.push({ row: group, loadedVersion })
    return changed
  }
}

/** The working copy, by project id. Nothing of `loaded` is changed later. */
export function openChunkState(loaded: LoadedChunk): ReadonlyMap<number, ProjectState> {
  const projects = new Map(loaded.projects.map(project => [project.id, new ProjectState(project)]))
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
  for (const { projectId, distinctId } of loaded.personlessDistinctIds)
    projects.get(projectId)?.loadPersonless(distinctId)
  for (const type of loaded.groupTypes) projects.get(type.projectId)?.loadGroupType(type)
  for (const group of loaded.groups) projects.get(group.projectId)?.loadGroup(group)
  return projects
}

type StateChanges = Omit<ChunkChanges, 'warnings' | 'outcomes'>

/**
 * Everything that differs from what was loaded, and the overrides that the event store has to learn.
 * @param told overrides that the event store got from earlier tries of the chunk, which were not committed.
 */
export function closeChunkState(
  projects: ReadonlyMap<number, ProjectState>,
  told: Iterable<PersonIdOverride> = [],
): {
  changes: StateChanges
  overrides: PersonIdOverride[]
} {
  for (const override of told) outvote(projects.get(override.projectId)?.mappings.get(override.distinctId), override)
  const persons: Versioned<Person>[] = []
  const deletedPersons: StateChanges['deletedPersons'][number][] = []
  const mappings: Versioned<DistinctIdMapping>[] = []
  const personlessDistinctIds: { projectId: number; distinctId: string }[] = []
  const neverPersonlessDistinctIds: { projectId: number; distinctId: string }[] = []
  const groupTypes: GroupType[] = []
  const usedGroupTypes: GroupType[] = []
  const groups: Versioned<Group>[] = []
  const overrides: PersonIdOverride[] = []
  for (const [projectId, state] of projects) {
    for (const person of state.persons) {
      if (person.mergedInto !== null) continue
      addMergedAway(projectId, person, deletedPersons)
      if (person.changed) {
        const { uuid, properties, marks, createdAtMs, isIdentified, version, lastSeenAtMs, loadedVersion } = person
        const row = { projectId, uuid, properties, marks, createdAtMs, isIdentified, version, lastSeenAtMs }
        persons.push({ row, loadedVersion })
      }
    }
    for (const { distinctId, person, version, loadedVersion, changed } of state.mappings.values()) {
      if (!changed) continue
      mappings.push({ row: { projectId, distinctId, personUuid: person.uuid, version }, loadedVersion })
      if (version > 0) overrides.push({ projectId, distinctId, personId: person.uuid, version })
    }
    for (const distinctId of state.newPersonlessIds) personlessDistinctIds.push({ projectId, distinctId })
    for (const distinctId of state.neverPersonlessIds) neverPersonlessDistinctIds.push({ projectId, distinctId })
    groupTypes.push(...state.newGroupTypes)
    usedGroupTypes.push(...state.usedGroupTypes())
    groups.push(...state.changedGroups())
  }
  return {
    changes: {
      persons,
      deletedPersons,
      mappings,
      personlessDistinctIds,
      neverPersonlessDistinctIds,
      groupTypes,
      usedGroupTypes,
      groups,
    },
    overrides,
  }
}

/**
 * Another worker's commit may have led the id elsewhere since the event store was told: of overrides the highest version
 * counts, so the mapping's goes above the one that never came to be.
 */
function outvote(mapping: WorkingMapping | undefined, told: PersonIdOverride): void {
  if (mapping === undefined || mapping.version > told.version) return
  if (mapping.version === told.version && mapping.person.uuid === told.personId) return
  mapping.version = told.version + 1
  mapping.changed = true
}

/**
 * Whoever was merged away, nearest to the survivor first: of two flag assignments the nearer one's stays, as it would
 * had each merge been a chunk of its own.
 */
function addMergedAway(
  projectId: number,
  { uuid: survivorUuid, absorbed }: WorkingPerson,
  to: StateChanges['deletedPersons'][number][],
): void {
  if (absorbed === null) return
  const waiting = absorbed.toReversed()
  for (let person = waiting.pop(); person !== undefined; person = waiting.pop()) {
    const { uuid, loadedVersion } = person
    if (loadedVersion !== null) to.push({ projectId, uuid, survivorUuid, loadedVersion })
    if (person.absorbed !== null) waiting.push(...person.absorbed.toReversed())
  }
}
