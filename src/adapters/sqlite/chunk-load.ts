// Reads what a chunk's events may touch, within a transaction of the caller's so that it all fits together. Lists of ids
// are bound in batches of a few fixed lengths: one prepared statement per length, however many ids a chunk has.

import type { Statement } from 'better-sqlite3'
import * as text from '#adapters/sql/chunk-queries.ts'
import { groupOf, groupTypeOf, personOf, projectOf } from '#adapters/sql/rows.ts'
import type { GroupTable, ProjectTable, StateSchema } from '#adapters/sql/schema.ts'
import type { Group, GroupType } from '#core/groups/group.ts'
import type { DistinctIdMapping, Person } from '#core/persons/person.ts'
import type { ChunkSubjects, LoadedChunk } from '#ports/chunk-store.ts'
import type { SqliteDatabase } from './open-sqlite.ts'

export type ChunkLoader = (subjects: ChunkSubjects) => LoadedChunk

interface MappedPersonRow {
  readonly distinct_id: string
  readonly mapping_version: number
  readonly id: number
  readonly project_id: number
  readonly uuid: string
  readonly properties: string
  readonly property_marks: string
  readonly created_at: number
  readonly is_identified: number
  readonly version: number
  readonly last_seen_at: number
}

export function prepareChunkLoader(database: SqliteDatabase): ChunkLoader {
  const mappedPersons = listQuery<MappedPersonRow>(database, text.loadMappedPersonsText)
  const personMappings = listQuery<{ person_id: number; distinct_id: string; version: number }>(
    database,
    text.loadPersonMappingsText,
  )
  const personless = listQuery<{ distinct_id: string }>(database, text.loadPersonlessText)
  const projects = listQuery<ProjectTable>(database, text.loadProjectsText)
  const groupTypes = listQuery<StateSchema['group_type_mapping']>(database, text.loadGroupTypesText)
  const groups = listQuery<GroupTable>(database, text.loadGroupsText)

  return subjects => {
    const projectIds = [...new Set(subjects.projectIds)]
    const types = groupTypes([], projectIds).map(groupTypeOf)
    return {
      projects: projects([], projectIds).map(projectOf),
      ...loadPersons(subjects),
      groupTypes: types,
      groups: loadGroups(subjects, types),
    }
  }

  function loadPersons(
    subjects: ChunkSubjects,
  ): Pick<LoadedChunk, 'mappings' | 'persons' | 'personPropertiesJson' | 'personMappings' | 'personlessDistinctIds'> {
    const mappings: DistinctIdMapping[] = []
    const persons = new Map<number, Person>()
    const personPropertiesJson: string[] = []
    const personlessDistinctIds: { projectId: number; distinctId: string }[] = []
    for (const [projectId, uniqueIds] of idsByProject(subjects.distinctIds)) {
      const distinctIds = [...uniqueIds]
      for (const row of mappedPersons([projectId], distinctIds)) {
        mappings.push({ projectId, distinctId: row.distinct_id, personUuid: row.uuid, version: row.mapping_version })
        if (persons.has(row.id)) continue
        persons.set(row.id, personOf(row))
        personPropertiesJson.push(row.properties)
      }
      for (const row of personless([projectId], distinctIds))
        personlessDistinctIds.push({ projectId, distinctId: row.distinct_id })
    }
    const allMappings = personMappings([], personIdsOf(persons, mappings, subjects.mergingDistinctIds)).map(
      (row): DistinctIdMapping => {
        const person = persons.get(row.person_id)!
        return {
          projectId: person.projectId,
          distinctId: row.distinct_id,
          personUuid: person.uuid,
          version: row.version,
        }
      },
    )
    return {
      mappings,
      persons: [...persons.values()],
      personPropertiesJson,
      personMappings: allMappings,
      personlessDistinctIds,
    }
  }

  /** Groups of types that the project does not have yet cannot exist. */
  function loadGroups(subjects: ChunkSubjects, types: readonly GroupType[]): Group[] {
    const indexOf = new Map(types.map(type => [JSON.stringify([type.projectId, type.name]), type.index]))
    const keys = new Map<string, { projectId: number; index: number; keys: Set<string> }>()
    for (const { projectId, typeName, key } of subjects.groups) {
      const name = JSON.stringify([projectId, typeName])
      const index = indexOf.get(name)
      if (index === undefined) continue
      let wanted = keys.get(name)
      if (wanted === undefined) {
        wanted = { projectId, index, keys: new Set() }
        keys.set(name, wanted)
      }
      wanted.keys.add(key)
    }
    return [...keys.values()].flatMap(wanted => groups([wanted.projectId, wanted.index], [...wanted.keys]).map(groupOf))
  }
}

/** Row ids of the persons whose other distinct ids are wanted. */
function personIdsOf(
  persons: ReadonlyMap<number, Person>,
  mappings: readonly DistinctIdMapping[],
  merging: ChunkSubjects['mergingDistinctIds'],
): number[] {
  if (merging === undefined) return [...persons.keys()]
  const ids = idsByProject(merging)
  const wanted = new Set<string>()
  for (const { projectId, distinctId, personUuid } of mappings)
    if (ids.get(projectId)?.has(distinctId)) wanted.add(`${projectId} ${personUuid}`)
  return [...persons].filter(([, person]) => wanted.has(`${person.projectId} ${person.uuid}`)).map(([id]) => id)
}

function idsByProject(ids: ChunkSubjects['distinctIds']): Map<number, Set<string>> {
  const sets = new Map<number, Set<string>>()
  for (const { projectId, distinctId } of ids) {
    const known = sets.get(projectId)
    if (known === undefined) sets.set(projectId, new Set([distinctId]))
    else known.add(distinctId)
  }
  return sets
}

/** Lengths that statements are prepared for; a shorter list is filled up with its last id, which finds nothing twice. */
const listLengths = [1, 8, 64, 512]

function listQuery<Row>(
  database: SqliteDatabase,
  textOf: (count: number) => string,
): (fixed: readonly number[], ids: readonly (number | string)[]) => Row[] {
  const statements = new Map<number, Statement<unknown[], Row>>()
  const longest = listLengths.at(-1)!
  return (fixed, ids) => {
    let rows: Row[] = []
    for (let start = 0; start < ids.length; start += longest) {
      const some = ids.slice(start, start + longest)
      const length = listLengths.find(candidate => candidate >= some.length)!
      let statement = statements.get(length)
      if (statement === undefined) {
        statement = database.prepare<unknown[], Row>(textOf(length))
        statements.set(length, statement)
      }
      while (some.length < length) some.push(some.at(-1)!)
      const found = statement.all(...fixed, ...some)
      rows = rows.length === 0 ? found : rows.concat(found)
    }
    return rows
  }
}
