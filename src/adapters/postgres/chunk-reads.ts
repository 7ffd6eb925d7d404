// How PostgreSQL reads what a chunk's events may touch: one statement for each list, however many ids a chunk has.

import type { ChunkReads } from '#adapters/sql/processing/load-chunk.ts'
import { personDistinctIdCountMax } from '#core/processing/person-merge.ts'
import { chunkTexts } from './chunk-texts.ts'
import type { Session } from './open-postgres.ts'

/** Each read throws what the driver throws. */
export function chunkReads(session: Session): ChunkReads {
  /** Empty lists find nothing, without a statement. */
  const rows = async <Row extends object>(
    statement: string,
    lists: readonly (readonly unknown[])[],
    ...limits: readonly number[]
  ): Promise<Row[]> => (lists[0]!.length === 0 ? [] : (await session.query<Row>(statement, [...lists, ...limits])).rows)
  const listsOf = (ids: ReadonlyMap<number, ReadonlySet<string>>) => {
    const pairs = [...ids].flatMap(([projectId, ofProject]) => Array.from(ofProject, id => [projectId, id] as const))
    return [pairs.map(([projectId]) => projectId), pairs.map(([, id]) => id)]
  }
  return {
    projects: ids => rows(chunkTexts.loadProjects, [ids]),
    groupTypes: projectIds => rows(chunkTexts.loadGroupTypes, [projectIds]),
    mappedPersons: (ids, textBytes) => rows(chunkTexts.loadMappedPersons, listsOf(ids), textBytes),
    personTexts: personIds => rows(chunkTexts.loadPersonTexts, [personIds]),
    personMappings: (personIds, countMax) =>
      rows(chunkTexts.loadPersonMappings, [personIds], personDistinctIdCountMax + 1, countMax + 1),
    personless: ids => rows(chunkTexts.loadPersonless, listsOf(ids)),
    erasedIds: ids => rows(chunkTexts.loadErasedIds, listsOf(ids)),
    importJobs: ids => rows(chunkTexts.loadImportJobs, [ids]),
    generated: events =>
      rows(chunkTexts.loadGenerated, [events.map(({ projectId }) => projectId), events.map(({ uuid }) => uuid)]),
    groups: (keys, textBytes) => {
      const lists = [
        keys.map(key => key.project_id),
        keys.map(key => key.group_type_index),
        keys.map(key => key.group_key),
      ]
      return rows(chunkTexts.loadGroups, lists, textBytes)
    },
  }
}
