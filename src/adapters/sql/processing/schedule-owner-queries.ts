// The leases of schedules. Each claim is one statement, so that only one of two simultaneous claims succeeds.

import type { Kysely } from 'kysely'
import type { ScheduleOwners } from '#ports/state/worker-state.ts'
import type { StateSchema } from '../tables/schema.ts'

export function createScheduleOwnerQueries(db: Kysely<StateSchema>): ScheduleOwners {
  return {
    async claimSchedule({ name, ownerId, nowMs, untilMs }) {
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

    async leaveSchedule(name, ownerId) {
      await db.deleteFrom('schedule_lease').where('name', '=', name).where('owner', '=', ownerId).execute()
    },
  }
}
