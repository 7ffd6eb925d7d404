// How SQLite reads what a chunk's events may touch. Lists of ids are bound in batches of a few fixed lengths: one prepared
// statement per length, however many ids a chunk has.

import type { Statement } from 'better-sqlite3'
import type { Selectable } from 'kysely'
import type {
  LoadedGroupRow,
  MappedPersonRow,
  PersonMappingRow,
  PersonTextRow,
} from '#adapters/sql/processing/chunk-rows.ts'
import type { ChunkReads, ErasedIdRow, ImportJobRow, LoadedProjectRow } from '#adapters/sql/processing/load-chunk.ts'
import type { GroupTypeTable, StateSchema } from '#adapters/sql/tables/schema.ts'
import { personDistinctIdCountMax } from '#core/processing/person-merge.ts'
import { loadStatements } from './chunk-statements.ts'
import type { SqliteDatabase } from './open-sqlite.ts'

/** How many distinct ids per person the first query allows for; persons usually have few. */
const usualMappingCount = 4
const sparePersonMappings = 1_000

/** Every read is synchronous. */
export function prepareChunkReads(database: SqliteDatabase): ChunkReads {
  const mappedPersons = prepareListQuery<MappedPersonRow>(database, loadStatements.mappedPersons)
  const personTexts = prepareListQuery<PersonTextRow>(database, loadStatements.personTexts)
  const personMappings = prepareListQuery<PersonMappingRow>(database, loadStatements.personMappings)
  const personless = prepareListQuery<{ distinct_id: string; next_version: number }>(
    database,
    loadStatements.personless,
  )
  const erasedIds = prepareListQuery<ErasedIdRow>(database, loadStatements.erasedIds)
  const importJobs = prepareListQuery<ImportJobRow>(database, loadStatements.importJobs)
  const generated = prepareListQuery<StateSchema['import_generated']>(database, loadStatements.generated)
  const projects = prepareListQuery<LoadedProjectRow>(database, loadStatements.projects)
  const groupTypes = prepareListQuery<Selectable<GroupTypeTable>>(database, loadStatements.groupTypes)
  const groups = prepareListQuery<LoadedGroupRow>(database, loadStatements.groups)

  return {
    projects: ids => projects([], ids),
    groupTypes: projectIds => groupTypes([], projectIds),
    mappedPersons: (ids, textBytes) => {
      const rows = Array.from(ids, ([projectId, ofProject]) =>
        mappedPersons([textBytes, textBytes, projectId], [...ofProject]),
      )
      return rows.length === 1 ? rows[0]! : rows.flat()
    },
    personTexts: personIds => personTexts([], personIds),
    personMappings: (personIds, countMax) => {
      if (personIds.length === 0) return []
      const usualMax = Math.min(personIds.length * usualMappingCount + sparePersonMappings, countMax + 1)
      const usual = personMappings([], personIds, usualMax)
      if (usual.length < usualMax) return usual
      const rows: PersonMappingRow[] = []
      for (const personId of personIds) {
        const ofPersonMax = Math.min(personDistinctIdCountMax, countMax - rows.length) + 1
        for (const row of personMappings([], [personId], ofPersonMax)) rows.push(row)
        if (rows.length > countMax) break
      }
      return rows
    },
    personless: ids =>
      [...ids].flatMap(([projectId, ofProject]) =>
        personless([projectId], [...ofProject]).map(row => ({ project_id: projectId, ...row })),
      ),
    erasedIds: ids => [...ids].flatMap(([projectId, ofProject]) => erasedIds([projectId], [...ofProject])),
    importJobs: ids => importJobs([], ids),
    generated: events =>
      [...Map.groupBy(events, event => event.projectId)].flatMap(([projectId, ofProject]) =>
        generated(
          [projectId],
          ofProject.map(({ uuid }) => uuid),
        ),
      ),
    groups: (keys, textBytes) => {
      const types = Map.groupBy(keys, key => `${key.project_id} ${key.group_type_index}`)
      return [...types.values()].flatMap(ofType => {
        const { project_id, group_type_index } = ofType[0]!
        return groups(
          [textBytes, textBytes, project_id, group_type_index],
          ofType.map(key => key.group_key),
        )
      })
    },
  }
}

/** The list lengths with a prepared statement; a shorter list is padded with its last id, which returns no row twice. */
const listLengths = [1, 8, 64, 512]

function prepareListQuery<Row>(
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
