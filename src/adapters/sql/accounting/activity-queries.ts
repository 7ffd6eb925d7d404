// Reads the activity log.

import { type Kysely, type Selectable, sql } from 'kysely'
import type { Activity, ActivityKind } from '#core/activity.ts'
import type { JsonChange } from '#core/json-diff.ts'
import type { ActivityStore } from '#ports/state/activity-store.ts'
import { isByOneOf } from '../tables/conditions.ts'
import { countFittingRows } from '../tables/fitting-rows.ts'
import { recordActivity } from '../tables/record-activity.ts'
import { authorOf, jsonOf } from '../tables/rows.ts'
import type { ActivityTable, StateSchema } from '../tables/schema.ts'
import { toStorableText } from '../tables/storable-text.ts'

export function createActivityQueries(db: Kysely<StateSchema>): ActivityStore {
  return {
    recordActivity: (activity, change) => recordActivity(db, activity, change),

    async listActivity({ projectId, kinds, itemId, by, belowId, limit }) {
      if (kinds.length === 0) return { results: [], hasMore: false }
      let entries = db.selectFrom('activity_log').where('kind', 'in', kinds)
      if (projectId !== null) entries = entries.where('project_id', '=', projectId)
      if (itemId !== undefined) entries = entries.where('item_id', '=', toStorableText(itemId))
      if (by !== undefined) entries = entries.where(isByOneOf('author', by))
      if (belowId !== undefined) entries = entries.where('id', '<', belowId)
      const sizes = await entries
        .select(['id', entryBytes])
        .orderBy('id', 'desc')
        .limit(limit + 1)
        .execute()
      const fitting = countFittingRows(sizes.slice(0, limit))
      if (fitting === 0) return { results: [], hasMore: false }
      // By id: entries that were added in between would take the places of the oldest ones.
      const ids = sizes.slice(0, fitting).map(({ id }) => id)
      const rows = await db
        .selectFrom('activity_log')
        .selectAll()
        .where('id', 'in', ids)
        .orderBy('id', 'desc')
        .execute()
      return { results: rows.map(activityOf), hasMore: sizes.length > fitting }
    },

    async listActivityAuthors(projectId) {
      let entries = db.selectFrom('activity_log').select('author').distinct().where('author', 'is not', null)
      if (projectId !== null) entries = entries.where('project_id', '=', projectId)
      return (await entries.execute()).map(({ author }) => authorOf(author)!)
    },
  }
}

/** Counts the version of a flag with its entry, since whoever shows the entry compares it with the one before. */
const entryBytes = sql<number>`octet_length(changes) + coalesce((
  SELECT octet_length(v.snapshot) FROM feature_flag_version v
  WHERE v.flag_id = CASE WHEN kind = 'feature_flag' THEN CAST(item_id AS BIGINT) END AND v.version = activity_log.version
), 0)`.as('bytes')

function activityOf(row: Selectable<ActivityTable>): Activity {
  return {
    id: Number(row.id),
    projectId: row.project_id === null ? null : Number(row.project_id),
    kind: row.kind as ActivityKind,
    itemId: row.item_id,
    itemName: row.item_name,
    activity: row.activity,
    changes: jsonOf(row.changes) as unknown as JsonChange[],
    ...(row.version === null ? {} : { version: Number(row.version) }),
    by: authorOf(row.author),
    atMs: Number(row.created_at),
  }
}
