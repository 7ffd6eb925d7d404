// What the workers store for themselves (`ports/state/worker-state.ts`), and the deletion of cookieless visitors once their
// day has ended.

import { type Kysely, sql, type Transaction } from 'kysely'
import { formatDeferredCursorName } from '#core/events/log-stream.ts'
import { deduplicatedReason } from '#core/processing/deduplicate-flag-calls.ts'
import type { EventStoreMark } from '#core/processing/row-ranges.ts'
import type { ChunkOutcome } from '#ports/state/chunk-store.ts'
import type { CookielessVisitorUpkeep } from '#ports/state/cookieless-visitors.ts'
import type {
  DeferredProjects,
  EventStoreMarks,
  LogBindingStore,
  ScheduleOwners,
  TrustedTimeStore,
} from '#ports/state/worker-state.ts'
import { countRows } from '../tables/read-pages.ts'
import type { StateSchema } from '../tables/schema.ts'

export function createWorkerStateQueries(
  db: Kysely<StateSchema>,
): LogBindingStore & EventStoreMarks & ScheduleOwners & TrustedTimeStore & DeferredProjects & CookielessVisitorUpkeep {
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

    async claimSchedule({ name, ownerId, nowMs, untilMs }) {
      // One statement, so that only one of two simultaneous claims succeeds.
      const { numInsertedOrUpdatedRows } = await db
        .insertInto('schedule_lease')
        .values({ name, owner: ownerId, expires_at: untilMs })
        .onConflict(conflict =>
          conflict
            .column('name')
            .doUpdateSet({ owner: ownerId, expires_at: untilMs })
            .where(eb =>
              eb.or([eb('schedule_lease.owner', '=', ownerId), eb('schedule_lease.expires_at', '<=', nowMs)]),
            ),
        )
        .executeTakeFirstOrThrow()
      return numInsertedOrUpdatedRows === 1n
    },

    async releaseSchedule(name, ownerId) {
      await db.deleteFrom('schedule_lease').where('name', '=', name).where('owner', '=', ownerId).execute()
    },

    async findTrustedTime() {
      const row = await db.selectFrom('trusted_time').select(['at_ms', 'ahead_ms', 'stood_ms']).executeTakeFirst()
      if (row === undefined) return null
      return { atMs: Number(row.at_ms), aheadMs: Number(row.ahead_ms), stoodMs: Number(row.stood_ms) }
    },

    async saveTrustedTime({ atMs, aheadMs, stoodMs }) {
      // Rounded, since monotonic clocks and the clocks of tests return fractions.
      const row = { at_ms: Math.round(atMs), ahead_ms: Math.round(aheadMs), stood_ms: Math.round(stoodMs) }
      await db
        .insertInto('trusted_time')
        .values({ id: 1, ...row })
        .onConflict(conflict => conflict.column('id').doUpdateSet(row))
        .execute()
    },

    async findDeferral(stream) {
      // One statement, so that position and projects are consistent.
      const rows = await db
        .selectFrom('deferred_project as d')
        .innerJoin('log_position as p', join => join.on('p.stream', '=', formatDeferredCursorName(stream)))
        .select(['d.project_id', 'd.from_offset', 'p.offset'])
        .where('d.stream', '=', stream)
        .orderBy('d.project_id')
        .execute()
      if (rows.length === 0) return null
      const projects = rows.map(row => ({ projectId: Number(row.project_id), fromOffset: Number(row.from_offset) }))
      return { offset: Number(rows[0]!.offset), projects }
    },

    deferProject: (stream, ownerId, projectId, offset) =>
      db.transaction().execute(async trx => {
        if (!(await lockCursor(trx, stream, ownerId, offset))) return false
        const isFirst = (await countRows(trx.selectFrom('deferred_project').where('stream', '=', stream))) === 0
        if (isFirst) {
          const position = { owner: ownerId, offset }
          await trx
            .insertInto('log_position')
            .values({ stream: formatDeferredCursorName(stream), committed_at: null, ...position })
            .onConflict(conflict => conflict.column('stream').doUpdateSet(position))
            .execute()
        }
        await trx
          .insertInto('deferred_project')
          .values({ stream, project_id: projectId, from_offset: offset })
          .onConflict(conflict => conflict.columns(['stream', 'project_id']).doNothing())
          .execute()
        return true
      }),

    releaseProjects: (stream, ownerId, offset) =>
      db.transaction().execute(async trx => {
        if (!(await lockCursor(trx, stream, ownerId, offset))) return false
        if (!(await lockCursor(trx, formatDeferredCursorName(stream), ownerId, offset))) return false
        await trx.deleteFrom('deferred_project').where('stream', '=', stream).execute()
        return true
      }),

    async deleteVisitorsExcept({ first, last }, days, rowCountMax) {
      // The text '', which is not a day, is in the list because PostgreSQL accepts no empty list.
      const isOver = sql`(day < ${first} OR day > ${last}) AND day NOT IN (${sql.join(['', ...days])})`
      const { numAffectedRows: identifies = 0n } = await sql`
        DELETE FROM cookieless_identify WHERE (project_id, hash, log_offset) IN (
          SELECT project_id, hash, log_offset FROM cookieless_identify
          WHERE ${isOver} LIMIT ${rowCountMax})`.execute(db)
      const { numAffectedRows: sessions = 0n } = await sql`
        DELETE FROM cookieless_session WHERE (project_id, hash, identifies, log_offset) IN (
          SELECT project_id, hash, identifies, log_offset FROM cookieless_session
          WHERE ${isOver} LIMIT ${rowCountMax})`.execute(db)
      return Number(identifies + sessions)
    },
  }
}

/** Makes another worker's claim wait for the end of the transaction, so that the claim finds the new projects. */
async function lockCursor(
  trx: Transaction<StateSchema>,
  cursor: string,
  ownerId: string,
  offset: number,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('log_position')
    .set({ owner: ownerId })
    .where('stream', '=', cursor)
    .where('owner', '=', ownerId)
    .where('offset', '=', offset)
    .executeTakeFirst()
  return numUpdatedRows > 0
}
