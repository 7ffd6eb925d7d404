// How PostgreSQL reads what a chunk's events may touch: one statement for each list, however many ids a chunk has.

import type { ChunkReads } from '#adapters/sql/processing/load-chunk.ts'
import { personDistinctIdCountMax } from '#core/processing/person-merge.ts'
import { loadTexts } from './chunk-texts.ts'
import type { Session } from './open-postgres.ts'

/** Each read throws what the driver throws. */
export function createChunkReads(session: Session): ChunkReads {
  /** Empty lists find nothing, without a statement. */
  const readRows = async <Row extends object>(
    statement: string,
    lists: readonly (readonly unknown[])[],
    ...limits: readonly number[]
  ): Promise<Row[]> => (lists[0]!.length === 0 ? [] : (await session.query<Row>(statement, [...lists, ...limits])).rows)
  const listsOf = (ids: ReadonlyMap<number, ReadonlySet<string>>) => {
    const pairs = [...ids].flatMap(([projectId, ofProject]) => Array.from(ofProject, id => [projectId, id] as const))
    return [pairs.map(([projectId]) => projectId), pairs.map(([, id]) => id)]
  }
  return {
    projects: ids => readRows(loadTexts.projects, [ids]),
    groupTypes: projectIds => readRows(loadTexts.groupTypes, [projectIds]),
    mappedPersons: (ids, textBytes) => readRows(loadTexts.mappedPersons, listsOf(ids), textBytes),
    personTexts: personIds => readRows(loadTexts.personTexts, [personIds]),
    personMappings: (personIds, countMax) =>
      readRows(loadTexts.personMappings, [personIds], personDistinctIdCountMax + 1, countMax + 1),
    personless: ids => readRows(loadTexts.personless, listsOf(ids)),
    erasedIds: ids => readRows(loadTexts.erasedIds, listsOf(ids)),
    importJobs: ids => readRows(loadTexts.importJobs, [ids]),
    generated: events =>
      readRows(loadTexts.generated, [events.map(({ projectId }) => projectId), events.map(({ uuid }) => uuid)]),
    groups: (keys, textBytes) => {
      const lists = [
        keys.map(key => key.project_id),
        keys.map(key => key.group_type_index),
        keys.map(key => key.group_key),
      ]
      return readRows(loadTexts.groups, lists, textBytes)
    },
  }
}
