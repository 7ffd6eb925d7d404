// Reads the activity log.

import { type Kysely, type Selectable, sql } from 'kysely'
import type { Activity, ActivityKind } from '#core/activity.ts'
import { computeAuthorNumber } from '#core/author.ts'
import type { JsonChange } from '#core/json-diff.ts'
import type { ActivityStore } from '#ports/state/activity-store.ts'
import { isAuthorOneOfSql } from '../tables/conditions.ts'
import { countFittingRows } from '../tables/read-pages.ts'
import { recordActivity } from '../tables/record-activity.ts'
import { parseStoredAuthor, parseStoredJson } from '../tables/rows.ts'
import type { ActivityTable, StateSchema } from '../tables/schema.ts'
import { toStorableText } from '../tables/wrap-methods.ts'

/**
 * The most entries that one call searches. This takes a few milliseconds, during which the search thread does nothing else.
 */
const searchedMax = 2_000

export function createActivityQueries(db: Kysely<StateSchema>): ActivityStore {
  return {
    recordActivity: (activity, change) => recordActivity(db, activity, change),

    async listActivity({ projectId, kinds, itemId, by, belowId, limit }) {
      if (kinds.length === 0) return { results: [], nextBelowId: null }
      // Uses one index, so that the engine does not scan the whole log for the entries of a small project.
      let range = db.selectFrom('activity_log')
      if (itemId !== undefined) range = range.where('item_id', '=', toStorableText(itemId))
      else if (projectId !== null) range = range.where('project_id', '=', projectId)
      if (belowId !== undefined) range = range.where('id', '<', belowId)
      range = range.orderBy('id', 'desc')
      const last = await range
        .select('id')
        .offset(searchedMax - 1)
        .limit(1)
        .executeTakeFirst()
      const endId = last === undefined ? null : Number(last.id)
      const searched = range.select(['id', 'project_id', 'kind', 'author']).limit(searchedMax)
      let found = db.selectFrom(searched.as('searched')).where('kind', 'in', kinds)
      if (projectId !== null) found = found.where('project_id', '=', projectId)
      if (by !== undefined) {
        const authors = (await found.select('author').distinct().execute()).flatMap(
          row => parseStoredAuthor(row.author) ?? [],
        )
        const chosen = authors.filter(author => by.includes(computeAuthorNumber(author)))
        found = found.where(isAuthorOneOfSql('author', chosen))
      }
      const newest = found
        .select('id')
        .orderBy('id', 'desc')
        .limit(limit + 1)
      const sizes = await db
        .selectFrom('activity_log')
        .select(['id', entryBytes])
        .where('id', 'in', newest)
        .orderBy('id', 'desc')
        .execute()
      const fitting = countFittingRows(sizes.slice(0, limit))
      if (fitting === 0) return { results: [], nextBelowId: endId }
      // Reads the entries by the ids found above: otherwise entries that were added in between would displace the oldest
      // entries.
      const ids = sizes.slice(0, fitting).map(({ id }) => id)
      const rows = await db
        .selectFrom('activity_log')
        .selectAll()
        .where('id', 'in', ids)
        .orderBy('id', 'desc')
        .execute()
      return { results: rows.map(toActivity), nextBelowId: sizes.length > fitting ? Number(ids.at(-1)!) : endId }
    },
  }
}

/** The bytes of an entry and of the two flag versions that are compared to show it: either may be the large one. */
const entryBytes = sql<number>`octet_length(changes) + coalesce((
  SELECT sum(octet_length(v.snapshot)) FROM feature_flag_version v
  WHERE v.flag_id = CASE WHEN kind = 'feature_flag' THEN CAST(item_id AS BIGINT) END
    AND v.version IN (activity_log.version, activity_log.version - 1)
), 0)`.as('bytes')

function toActivity(row: Selectable<ActivityTable>): Activity {
  return {
    id: Number(row.id),
    projectId: row.project_id === null ? null : Number(row.project_id),
    kind: row.kind as ActivityKind,
    itemId: row.item_id,
    itemName: row.item_name,
    activity: row.activity,
    changes: parseStoredJson(row.changes) as unknown as JsonChange[],
    ...(row.version === null ? {} : { version: Number(row.version) }),
    by: parseStoredAuthor(row.author),
    atMs: Number(row.created_at),
  }
}
