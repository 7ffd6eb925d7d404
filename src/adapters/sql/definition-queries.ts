// Definitions of every project that changed after a revision, read in one transaction so that they fit together.

import type { Kysely, Selectable } from 'kysely'
import type { DefinitionChanges } from '#ports/definition-store.ts'
import { readRevision } from './revision-queries.ts'
import { flagOf, groupTypeOf, projectOf } from './rows.ts'
import type { FlagTable, StateSchema } from './schema.ts'

/** Projects read per query: keeps `IN` lists bounded. */
const projectsPerQuery = 200

export async function loadDefinitionChanges(db: Kysely<StateSchema>, revision: number): Promise<DefinitionChanges> {
  return db.transaction().execute(async trx => {
    const current = await readRevision(trx)
    const changed = await trx
      .selectFrom('project')
      .selectAll()
      .where('revision', '>', revision)
      .orderBy('revision')
      .execute()
    const living = changed.filter(row => row.deleted === 0)
    const ids = living.map(row => row.id)
    let flags: Selectable<FlagTable>[] = []
    let groupTypes: StateSchema['group_type_mapping'][] = []
    for (let start = 0; start < ids.length; start += projectsPerQuery) {
      const some = ids.slice(start, start + projectsPerQuery)
      flags = flags.concat(
        await trx
          .selectFrom('feature_flag')
          .selectAll()
          .where('project_id', 'in', some)
          .where('deleted', '=', 0)
          .orderBy('id')
          .execute(),
      )
      groupTypes = groupTypes.concat(
        await trx
          .selectFrom('group_type_mapping')
          .selectAll()
          .where('project_id', 'in', some)
          .orderBy('group_type_index')
          .execute(),
      )
    }
    const flagsOf = Map.groupBy(flags, row => row.project_id)
    const groupTypesOf = Map.groupBy(groupTypes, row => row.project_id)
    return {
      revision: current,
      projects: living.map(row => ({
        project: projectOf(row),
        revision: Number(row.revision),
        flags: (flagsOf.get(row.id) ?? []).map(flagOf),
        groupTypes: (groupTypesOf.get(row.id) ?? []).map(groupTypeOf),
      })),
      deletedProjectIds: changed.filter(row => row.deleted === 1).map(row => Number(row.id)),
    }
  })
}
