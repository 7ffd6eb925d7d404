// Groups and group types as the private API shows them.

import { type Kysely, sql } from 'kysely'
import { err, ok } from '#core/result.ts'
import type { GroupQueryStore, GroupView } from '#ports/management-store.ts'
import { fittingRows } from './fitting-rows.ts'
import { containsText } from './like.ts'
import { bumpRevision } from './revision-queries.ts'
import { groupTypeOf } from './rows.ts'
import type { GroupTable, StateSchema } from './schema.ts'

/** Without what is not shown: marks may be as long as the properties. */
const shownColumns = [
  ...(['project_id', 'group_type_index', 'group_key'] as const),
  ...(['group_properties', 'created_at', 'version'] as const),
]

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

    startDeletingGroupType: (projectId, typeIndex) =>
      db.transaction().execute(async trx => {
        const { numUpdatedRows } = await trx
          .updateTable('group_type_mapping')
          .set({ removed: 1 })
          .where('project_id', '=', projectId)
          .where('group_type_index', '=', typeIndex)
          .executeTakeFirstOrThrow()
        if (numUpdatedRows === 0n) return err('not_found')
        return ok({ value: null, revision: await bumpRevision(trx, projectId) })
      }),

    deleteGroupsOfType: (projectId, typeIndex, countMax) =>
      db.transaction().execute(async trx => {
        // A write, so that it holds the row to the end: another call may free the index meanwhile, and what takes it then
        // is not being deleted.
        const { numUpdatedRows } = await trx
          .updateTable('group_type_mapping')
          .set({ removed: 1 })
          .where('project_id', '=', projectId)
          .where('group_type_index', '=', typeIndex)
          .where('removed', '=', 1)
          .executeTakeFirstOrThrow()
        if (numUpdatedRows === 0n) return false
        const keys = trx
          .selectFrom('group')
          .select('group_key')
          .where('project_id', '=', projectId)
          .where('group_type_index', '=', typeIndex)
          .orderBy('group_key')
          .limit(countMax)
        const { numDeletedRows } = await trx
          .deleteFrom('group')
          .where('project_id', '=', projectId)
          .where('group_type_index', '=', typeIndex)
          .where('group_key', 'in', keys)
          .executeTakeFirstOrThrow()
        if (Number(numDeletedRows) >= countMax) return true
        await trx
          .deleteFrom('group_type_mapping')
          .where('project_id', '=', projectId)
          .where('group_type_index', '=', typeIndex)
          .execute()
        return false
      }),

    async listGroups(projectId, { typeIndex, search, limit, offset }) {
      let groups = db.selectFrom('group').where('project_id', '=', projectId).where('group_type_index', '=', typeIndex)
      if (search !== undefined && search !== '') {
        groups = groups.where(
          sql<boolean>`(${containsText('group_key', search)} OR ${containsText('group_properties', search)})`,
        )
      }
      const sizes = await groups
        .select(['group_key', sql<number>`octet_length(group_properties) + octet_length(group_key)`.as('bytes')])
        .orderBy('created_at', 'desc')
        .orderBy('group_key')
        .limit(limit + 1)
        .offset(offset)
        .execute()
      const keys = sizes.slice(0, fittingRows(sizes.slice(0, limit))).map(row => row.group_key)
      if (keys.length === 0) return { results: [], hasMore: false }
      const rows = await db
        .selectFrom('group')
        .select(shownColumns)
        .where('project_id', '=', projectId)
        .where('group_type_index', '=', typeIndex)
        .where('group_key', 'in', keys)
        .orderBy('created_at', 'desc')
        .orderBy('group_key')
        .execute()
      return { results: rows.map(viewOf), hasMore: sizes.length > keys.length }
    },

    async findStoredGroup(projectId, typeIndex, key) {
      const row = await db
        .selectFrom('group')
        .select(shownColumns)
        .where('project_id', '=', projectId)
        .where('group_type_index', '=', typeIndex)
        .where('group_key', '=', key)
        .executeTakeFirst()
      return row === undefined ? null : viewOf(row)
    },
  }
}

function viewOf(row: Pick<GroupTable, (typeof shownColumns)[number]>): GroupView {
  return {
    projectId: Number(row.project_id),
    typeIndex: Number(row.group_type_index),
    key: row.group_key,
    propertiesJson: row.group_properties,
    createdAtMs: Number(row.created_at),
    version: Number(row.version),
  }
}
