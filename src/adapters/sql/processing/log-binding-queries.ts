// The log that the state follows, its position in each stream, and the outcome of the records.

import type { Kysely } from 'kysely'
import { deduplicatedReason } from '#core/processing/deduplicate-flag-calls.ts'
import type { ChunkOutcome } from '#ports/state/chunk-store.ts'
import type { LogBindingStore } from '#ports/state/worker-state.ts'
import type { StateSchema } from '../tables/schema.ts'

export function createLogBindingQueries(db: Kysely<StateSchema>): LogBindingStore {
  return {
    async findLogPosition(stream) {
      const row = await db
        .selectFrom('log_position')
        .select(['offset', 'committed_at'])
        .where('stream', '=', stream)
        .executeTakeFirst()
      if (row === undefined) return { offset: 0, committedAtMs: null }
      return {
        offset: Number(row.offset),
        committedAtMs: row.committed_at === null ? null : Number(row.committed_at),
      }
    },

    async findFollowedLog() {
      const row = await db.selectFrom('followed_log').selectAll().executeTakeFirst()
      if (row === undefined) return null
      return { id: row.log_id, place: row.place, formerId: row.former_log_id, begunAt: row.begun_at }
    },

    followLog: ({ id, place, formerId, begunAt }) =>
      db.transaction().execute(async trx => {
        await trx.updateTable('log_position').set({ owner: '' }).execute()
        await trx.deleteFrom('schedule_lease').execute()
        const columns = { log_id: id, place, former_log_id: formerId, begun_at: begunAt }
        await trx
          .insertInto('followed_log')
          .values({ id: 1, ...columns })
          .onConflict(conflict => conflict.column('id').doUpdateSet(columns))
          .execute()
      }),

    async listOutcomes(projectId) {
      const rows = await db.selectFrom('chunk_outcome').selectAll().where('project_id', '=', projectId).execute()
      return rows.map(row => ({
        projectId,
        lane: row.lane as ChunkOutcome['lane'],
        outcome: row.outcome as ChunkOutcome['outcome'],
        reason: row.reason,
        count: Number(row.event_count),
      }))
    },

    async sumChargedRecords() {
      const rows = await db
        .selectFrom('chunk_outcome')
        .select(eb => ['project_id', eb.fn.sum('event_count').as('record_count')])
        .where(eb => eb.or([eb('outcome', '=', 'stored'), eb('reason', '=', deduplicatedReason)]))
        .groupBy('project_id')
        .execute()
      return rows.map(row => ({ projectId: Number(row.project_id), recordCount: Number(row.record_count) }))
    },
  }
}
