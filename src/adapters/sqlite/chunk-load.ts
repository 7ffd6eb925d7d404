// Reads what a chunk's events may touch, within a transaction of the caller's so that it all fits together. Lists of ids
// are bound in batches of a few fixed lengths: one prepared statement per length, however many ids a chunk has. Nothing is
// read beyond what a load may hold.

import type { Statement } from 'better-sqlite3'
import type { Selectable } from 'kysely'
import * as text from '#adapters/sql/chunk-queries.ts'
import {
  addLargePersons,
  idsByProject,
  type LoadedGroupRow,
  loadedGroupsOf,
  longestTextBytes,
  type MappedPersonRow,
  mappedPersonsOf,
  type PersonMappingRow,
  type PersonTextRow,
  personMappingCountMax,
  personMappingsOf,
  TextRoom,
  takeMappings,
  wantedGroups,
  wantedPersonIds,
} from '#adapters/sql/chunk-rows.ts'
import { groupTypeOf, projectOf } from '#adapters/sql/rows.ts'
import type { GroupTypeTable, ProjectTable } from '#adapters/sql/schema.ts'
import type { Group, GroupType } from '#core/groups/group.ts'
import { personDistinctIdCountMax } from '#core/processing/person-merge.ts'
import type { ChunkSubjects, LoadedChunk } from '#ports/chunk-store.ts'
import type { SqliteDatabase } from './open-sqlite.ts'

export type ChunkLoader = (subjects: ChunkSubjects, textBytesMax: number) => LoadedChunk | 'too_large'

/** Rows of other ids that are asked for at once: persons have few, as a rule. */
const usualMappingCount = 4
const sparePersonMappings = 1_000

export function prepareChunkLoader(database: SqliteDatabase): ChunkLoader {
  const mappedPersons = listQuery<MappedPersonRow>(database, text.loadMappedPersonsText)
  const personTexts = listQuery<PersonTextRow>(database, text.loadPersonTextsText)
  const personMappings = listQuery<PersonMappingRow>(database, text.loadPersonMappingsText)
  const personless = listQuery<{ distinct_id: string }>(database, text.loadPersonlessText)
  const projects = listQuery<ProjectTable>(database, text.loadProjectsText)
  const groupTypes = listQuery<Selectable<GroupTypeTable>>(database, text.loadGroupTypesText)
  const groups = listQuery<LoadedGroupRow>(database, text.loadGroupsText)

  return (subjects, textBytesMax) => {
    const room = new TextRoom(textBytesMax)
    const projectIds = [...new Set(subjects.projectIds)]
    const types = groupTypes([], projectIds).map(groupTypeOf)
    const rows: MappedPersonRow[][] = []
    const personlessDistinctIds: { projectId: number; distinctId: string }[] = []
    const textBytes = room.textBytesOfEach(subjects.distinctIds.length)
    for (const [projectId, uniqueIds] of idsByProject(subjects.distinctIds)) {
      const distinctIds = [...uniqueIds]
      rows.push(mappedPersons([textBytes, textBytes, projectId], distinctIds))
      for (const row of personless([projectId], distinctIds))
        personlessDistinctIds.push({ projectId, distinctId: row.distinct_id })
    }
    const mapped = mappedPersonsOf(rows.length === 1 ? rows[0]! : rows.flat(), room)
    if (room.isExceeded) return 'too_large'
    addLargePersons(mapped, personTexts([], [...mapped.large.keys()]))
    const mappings = loadPersonMappings(wantedPersonIds(mapped, subjects.mergingDistinctIds), room)
    if (room.isExceeded) return 'too_large'
    const loadedGroups = loadGroups(subjects.groups, types, room)
    if (room.isExceeded) return 'too_large'
    return {
      projects: projects([], projectIds).map(projectOf),
      mappings: mapped.mappings,
      persons: [...mapped.persons.values()],
      personPropertiesJson: mapped.personPropertiesJson,
      personMappings: personMappingsOf(mappings, mapped),
      textBytes: room.takenBytes,
      personlessDistinctIds,
      groupTypes: types,
      groups: loadedGroups,
    }
  }

  function loadPersonMappings(personIds: readonly number[], room: TextRoom): PersonMappingRow[] {
    if (personIds.length === 0) return []
    const usualMax = Math.min(
      personIds.length * usualMappingCount + sparePersonMappings,
      personMappingCountMax(room) + 1,
    )
    let rows = personMappings([], personIds, usualMax)
    if (rows.length >= usualMax) {
      rows = []
      for (const personId of personIds) {
        const countMax = Math.min(personDistinctIdCountMax, personMappingCountMax(room) - rows.length) + 1
        for (const row of personMappings([], [personId], countMax)) rows.push(row)
        if (rows.length > personMappingCountMax(room)) break
      }
    }
    takeMappings(room, rows.length)
    return rows
  }

  /** What is found until the room is exceeded. */
  function loadGroups(wanted: ChunkSubjects['groups'], types: readonly GroupType[], room: TextRoom): Group[] {
    const found: Group[] = []
    const large: LoadedGroupRow[] = []
    const textBytes = room.textBytesOfEach(wanted.length)
    for (const { projectId, index, keys } of wantedGroups(wanted, types)) {
      const some = loadedGroupsOf(groups([textBytes, textBytes, projectId, index], [...keys]), room)
      found.push(...some.groups)
      large.push(...some.large)
    }
    if (room.isExceeded) return found
    for (const { project_id, group_type_index, group_key } of large) {
      const whole = groups([longestTextBytes, longestTextBytes, project_id, group_type_index], [group_key])
      found.push(...loadedGroupsOf(whole, new TextRoom(longestTextBytes)).groups)
    }
    return found
  }
}

/** Lengths that statements are prepared for; a shorter list is filled up with its last id, which finds nothing twice. */
const listLengths = [1, 8, 64, 512]

function listQuery<Row>(
  database: SqliteDatabase,
  textOf: (count: number) => string,
): (fixed: readonly number[], ids: readonly (number | string)[], rowCountMax?: number) => Row[] {
  const statements = new Map<number, Statement<unknown[], Row>>()
  const longest = listLengths.at(-1)!
  return (fixed, ids, rowCountMax) => {
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
      const found =
        rowCountMax === undefined
          ? statement.all(...fixed, ...some)
          : statement.all(...fixed, ...some, rowCountMax - rows.length)
      rows = rows.length === 0 ? found : rows.concat(found)
    }
    return rows
  }
}
