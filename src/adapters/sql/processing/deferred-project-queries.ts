// The projects that a worker skips in a stream, and the position of the stream's second cursor.

import type { Kysely, Transaction } from 'kysely'
import { deferredCursorOf, type LogStream } from '#core/events/log-stream.ts'
import type { DeferredProjects } from '#ports/state/worker-state.ts'
import type { StateSchema } from '../tables/schema.ts'

export function createDeferredProjectQueries(db: Kysely<StateSchema>): DeferredProjects {
  return {
    async findDeferral(stream) {
      // One statement, so that position and projects are consistent.
      const rows = await db
        .selectFrom('deferred_project as d')
        .innerJoin('log_position as p', join => join.on('p.stream', '=', deferredCursorOf(stream)))
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
        const isFirst = (await countDeferred(trx, stream)) === 0
        if (isFirst) {
          const position = { owner: ownerId, offset }
          await trx
            .insertInto('log_position')
            .values({ stream: deferredCursorOf(stream), committed_at: null, ...position })
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
        if (!(await lockCursor(trx, deferredCursorOf(stream), ownerId, offset))) return false
        await trx.deleteFrom('deferred_project').where('stream', '=', stream).execute()
        return true
      }),
  }
}

/** Makes another worker's claim wait for the end of the transaction, so that the claim finds the projects after it. */
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

async function countDeferred(trx: Transaction<StateSchema>, stream: LogStream): Promise<number> {
  const rows = await trx.selectFrom('deferred_project').select('project_id').where('stream', '=', stream).execute()
  return rows.length
}
