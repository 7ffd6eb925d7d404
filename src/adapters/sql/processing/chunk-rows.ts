// What both engines share in loading a chunk: the choice of rows, and their conversion to values.

import type { Selectable } from 'kysely'
import type { Group, GroupType } from '#core/groups/group.ts'
import type { DistinctIdMapping, Person } from '#core/persons/person.ts'
import type { ChunkSubjects, LoadedChunk } from '#ports/state/chunk-store.ts'
import { toGroup, toPerson } from '../tables/rows.ts'
import type { GroupTable, PersonTable, StateSchema } from '../tables/schema.ts'

/** The limit for texts that may have any length: longer than any stored text, and within every engine's integer range. */
export const longestTextBytes = 1_000_000_000

/** The bytes of text that one load of a chunk may read. A row whose texts exceed its share is first read without them. */
export class TextBudget {
  readonly #bytesMax: number
  readonly #bytesOf = new Map<number, number>()
  #takenBytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get takenBytes(): number {
    return this.#takenBytes
  }

  /** The bytes taken so far, by project id. */
  get bytesOf(): ReadonlyMap<number, number> {
    return this.#bytesOf
  }

  get isExceeded(): boolean {
    return this.#takenBytes > this.#bytesMax
  }

  get leftBytes(): number {
    return Math.max(0, this.#bytesMax - this.#takenBytes)
  }

  take(projectId: number, bytes: number): void {
    this.#takenBytes += bytes
    this.#bytesOf.set(projectId, (this.#bytesOf.get(projectId) ?? 0) + bytes)
  }

  /** The greatest text length at which `rowCount` rows with two texts each fit into the rest of the budget. */
  textBytesOfEach(rowCount: number): number {
    return Math.min(Math.floor(this.leftBytes / (2 * Math.max(rowCount, 1))), longestTextBytes)
  }
}

type PersonRow = Selectable<PersonTable>
type Texts = 'properties' | 'property_marks' | 'group_properties'
/** A row whose texts are null if they are too long for the row's share of the budget. */
type Measured<Row> = Omit<Row, Texts> & { readonly [K in keyof Row & Texts]: string | null } & {
  readonly text_bytes: number
}

/** A distinct id with its person; a person with several ids has several rows. */
export type MappedPersonRow = Measured<PersonRow> & { readonly distinct_id: string; readonly mapping_version: number }
export type PersonTextRow = Pick<PersonRow, 'id' | 'properties' | 'property_marks'>
export type LoadedGroupRow = Measured<GroupTable>
export type PersonMappingRow = Omit<StateSchema['person_distinct_id'], 'project_id'>

export interface MappedPersons {
  /** By row id, in the order of `personPropertiesJson`. */
  readonly persons: Map<number, Person>
  readonly personPropertiesJson: string[]
  readonly mappings: readonly DistinctIdMapping[]
  /** By row id: persons read without their texts. Call `addTextsOfLargePersons` for them before any other use. */
  readonly large: ReadonlyMap<number, MappedPersonRow>
}

export function toMappedPersons(rows: Iterable<MappedPersonRow>, budget: TextBudget): MappedPersons {
  const mappings: DistinctIdMapping[] = []
  const persons = new Map<number, Person>()
  const personPropertiesJson: string[] = []
  const large = new Map<number, MappedPersonRow>()
  for (const row of rows) {
    mappings.push({
      projectId: row.project_id,
      distinctId: row.distinct_id,
      personUuid: row.uuid,
      version: row.mapping_version,
    })
    if (persons.has(row.id) || large.has(row.id)) continue
    budget.take(row.project_id, row.text_bytes)
    const { properties, property_marks } = row
    if (properties === null || property_marks === null) large.set(row.id, row)
    else addPerson({ persons, personPropertiesJson }, row, properties, property_marks)
  }
  return { persons, personPropertiesJson, mappings, large }
}

export function addTextsOfLargePersons(to: MappedPersons, texts: Iterable<PersonTextRow>): void {
  for (const { id, properties, property_marks } of texts) addPerson(to, to.large.get(id)!, properties, property_marks)
}

function addPerson(
  to: Pick<MappedPersons, 'persons' | 'personPropertiesJson'>,
  row: MappedPersonRow,
  properties: string,
  property_marks: string,
): void {
  to.persons.set(row.id, toPerson({ ...row, properties, property_marks }))
  to.personPropertiesJson.push(properties)
}

/** @returns the groups, and the rows that were read without their texts. */
export function toLoadedGroups(
  rows: Iterable<LoadedGroupRow>,
  budget: TextBudget,
): { groups: Group[]; large: LoadedGroupRow[] } {
  const groups: Group[] = []
  const large: LoadedGroupRow[] = []
  for (const row of rows) {
    budget.take(row.project_id, row.text_bytes)
    const { group_properties, property_marks } = row
    if (group_properties === null || property_marks === null) large.push(row)
    else groups.push(toGroup({ ...row, group_properties, property_marks }))
  }
  return { groups, large }
}

/** Bytes of a loaded mapping, its id included, counted as text. */
const mappingBytes = 256

/** How many more mappings of distinct ids fit into the budget. */
export function countMappingsThatFit(budget: TextBudget): number {
  return Math.min(Math.floor(budget.leftBytes / mappingBytes), longestTextBytes)
}

export function chargeMappingsToBudget(
  budget: TextBudget,
  rows: readonly PersonMappingRow[],
  { persons }: MappedPersons,
): void {
  for (const row of rows) budget.take(persons.get(row.person_id)!.projectId, mappingBytes)
}

/** Row ids of the persons whose other distinct ids the chunk needs. */
export function selectPersonIds(
  { persons, mappings }: MappedPersons,
  merging: ChunkSubjects['mergingDistinctIds'],
): number[] {
  if (merging === undefined) return [...persons.keys()]
  const ids = groupIdsByProject(merging)
  const wanted = new Set<string>()
  for (const { projectId, distinctId, personUuid } of mappings)
    if (ids.get(projectId)?.has(distinctId)) wanted.add(`${projectId} ${personUuid}`)
  return [...persons].filter(([, person]) => wanted.has(`${person.projectId} ${person.uuid}`)).map(([id]) => id)
}

export function toPersonMappings(
  rows: readonly PersonMappingRow[],
  { persons }: MappedPersons,
): LoadedChunk['personMappings'] {
  return rows.map(row => {
    const { projectId, uuid } = persons.get(row.person_id)!
    return { projectId, distinctId: row.distinct_id, personUuid: uuid, version: row.version }
  })
}

/** Each id once. */
export function groupIdsByProject(ids: ChunkSubjects['distinctIds']): Map<number, Set<string>> {
  const sets = new Map<number, Set<string>>()
  for (const { projectId, distinctId } of ids) {
    const known = sets.get(projectId)
    if (known === undefined) sets.set(projectId, new Set([distinctId]))
    else known.add(distinctId)
  }
  return sets
}

export type GroupKey = Pick<LoadedGroupRow, 'project_id' | 'group_type_index' | 'group_key'>

/** Each group once, grouped by type. Leaves out types that the project does not have, since they have no groups. */
export function listWantedGroups(groups: ChunkSubjects['groups'], types: readonly GroupType[]): GroupKey[] {
  const indexOf = new Map(
    types
      .filter(type => type.isBeingDeleted !== true)
      .map(type => [JSON.stringify([type.projectId, type.name]), type.index]),
  )
  const wanted = new Map<string, Map<string, GroupKey>>()
  for (const { projectId, typeName, key } of groups) {
    const name = JSON.stringify([projectId, typeName])
    const index = indexOf.get(name)
    if (index === undefined) continue
    let ofType = wanted.get(name)
    if (ofType === undefined) {
      ofType = new Map()
      wanted.set(name, ofType)
    }
    ofType.set(key, { project_id: projectId, group_type_index: index, group_key: key })
  }
  return [...wanted.values()].flatMap(ofType => [...ofType.values()])
}
