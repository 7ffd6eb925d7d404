// Groups and group types as the private API shows them.

import { type Kysely, sql } from 'kysely'
import type { GroupQueryStore } from '#ports/management-store.ts'
import { containsText } from './like.ts'
import { groupOf, groupTypeOf } from './rows.ts'
import type { GroupTable, StateSchema } from './schema.ts'

export function groupQueries(db: Kysely<StateSchema>): GroupQueryStore {
  return {
    async listGroupTypes(projectId) {
      const rows = await db
        .selectFrom('group_type_mapping')
        .selectAll()
        .where('project_id', '=', projectId)
        .orderBy('group_type_index')
        .execute()
      return rows.map(groupTypeOf)
    },

    async listGroups(projectId, { typeIndex, search, limit, offset }) {
      let groups = db
        .selectFrom('group')
        .selectAll()
        .where('project_id', '=', projectId)
        .where('group_type_index', '=', typeIndex)
      if (search !== undefined && search !== '') {
        groups = groups.where(
          sql<boolean>`(${containsText('group_key', search)} OR ${containsText('group_properties', search)})`,
        )
      }
      const rows = await groups
        .orderBy('created_at', 'desc')
        .orderBy('group_key')
        .limit(limit + 1)
        .offset(offset)
        .execute()
      return { results: rows.slice(0, limit).map(viewOf), hasMore: rows.length > limit }
    },

    async findStoredGroup(projectId, typeIndex, key) {
      const row = await db
        .selectFrom('group')
        .selectAll()
        .where('project_id', '=', projectId)
        .where('group_type_index', '=', typeIndex)
        .where('group_key', '=', key)
        .executeTakeFirst()
      return row === undefined ? null : viewOf(row)
    },
  }
}

function viewOf(row: GroupTable) {
  const { marks: _, ...group } = groupOf(row)
  return group
}
