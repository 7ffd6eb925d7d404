// The state's record of the event store, and the data it can send to the event store again.

import { type Kysely, sql } from 'kysely'
import type { EventStoreMark } from '#core/processing/held-rows.ts'
import type { EventStoreMarks } from '#ports/state/worker-state.ts'
import type { StateSchema } from '../tables/schema.ts'

export function createEventStoreMarkQueries(db: Kysely<StateSchema>): EventStoreMarks {
  return {
    async findEventStoreMark() {
      const row = await db.selectFrom('event_store_mark').select('mark').executeTakeFirst()
      return row === undefined ? null : (JSON.parse(row.mark) as EventStoreMark)
    },

    async saveEventStoreMark(mark) {
      const text = JSON.stringify(mark)
      await db
        .insertInto('event_store_mark')
        .values({ id: 1, mark: text })
        .onConflict(conflict => conflict.column('id').doUpdateSet({ mark: text }))
        .execute()
    },

    async listOverrides(after, limit) {
      const rows = await db
        .selectFrom('person_distinct_id as d')
        .innerJoin('person as p', 'p.id', 'd.person_id')
        .leftJoin('project', 'project.id', 'd.project_id')
        .select(['d.project_id', 'd.distinct_id', 'd.version', 'p.uuid', 'project.erasures'])
        .where('d.project_id', '>', 0) // not the staging overlays of pending imports
        .$if(after !== null, query =>
          query.where(sql<boolean>`(d.project_id, d.distinct_id) > (${after!.projectId}, ${after!.distinctId})`),
        )
        .orderBy('d.project_id')
        .orderBy('d.distinct_id')
        .limit(limit)
        .execute()
      return rows.map(row => ({
        projectId: Number(row.project_id),
        distinctId: row.distinct_id,
        personId: row.uuid,
        version: Number(row.version),
        erasures: Number(row.erasures ?? 0),
      }))
    },
  }
}
