// The whole management store over one Kysely connection, whatever the engine. What differs between engines is how a
// failure of theirs becomes a PortError.

import type { Kysely } from 'kysely'
import type { ChunkOutcome } from '#ports/chunk-store.ts'
import type { ManagementStore } from '#ports/management-store.ts'
import { cohortQueries } from './cohort-queries.ts'
import { earlyAccessQueries } from './early-access-queries.ts'
import { eventStoreMarkQueries } from './event-store-mark-queries.ts'
import { experimentQueries } from './experiment-queries.ts'
import { flagOwnerQueries } from './flag-owner-queries.ts'
import { flagQueries } from './flag-queries.ts'
import { groupQueries } from './group-queries.ts'
import { personQueries } from './person-queries.ts'
import { personalKeyQueries } from './personal-key-queries.ts'
import { projectQueries } from './project-queries.ts'
import { refusedQueries } from './refused-queries.ts'
import { rethrowing } from './rethrowing.ts'
import type { StateSchema } from './schema.ts'
import { secretKeyQueries } from './secret-key-queries.ts'
import { withStorableTexts } from './storable-text.ts'
import { surveyQueries } from './survey-queries.ts'
import { usageQueries } from './usage-queries.ts'
import { warningQueries } from './warning-queries.ts'

/** `toPortError` makes a PortError of a failure of the engine's, and gives back anything else as it is. */
export function sqlManagementStore(db: Kysely<StateSchema>, toPortError: (cause: unknown) => unknown): ManagementStore {
  const methods = withStorableTexts<ManagementStore>({
    ...projectQueries(db),
    ...personalKeyQueries(db),
    ...secretKeyQueries(db),
    ...flagQueries(db),
    ...cohortQueries(db),
    ...earlyAccessQueries(db),
    ...surveyQueries(db),
    ...experimentQueries(db),
    ...flagOwnerQueries(db),
    ...personQueries(db),
    ...groupQueries(db),
    ...usageQueries(db),
    ...refusedQueries(db),
    ...warningQueries(db),
    ...eventStoreMarkQueries(db),

    async findLogPosition(lane) {
      const row = await db
        .selectFrom('log_position')
        .select(['offset', 'committed_at'])
        .where('lane', '=', lane)
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

    close: () => db.destroy(),
  })
  return rethrowing(methods, toPortError)
}
