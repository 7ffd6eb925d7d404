// The leases of schedules. Each claim is one statement, so that only one of two simultaneous claims succeeds.

import type { Kysely } from 'kysely'
import type { ScheduleOwners } from '#ports/state/schedule-owners.ts'
import type { StateSchema } from '../tables/schema.ts'

export function scheduleOwnerQueries(db: Kysely<StateSchema>): ScheduleOwners {
  return {
    async claimSchedule({ name, ownerId, nowMs, untilMs }) {
      const { numInsertedOrUpdatedRows } = await db
        .insertInto('schedule_owner')
        .values({ name, owner: ownerId, until: untilMs })
        .onConflict(conflict =>
          conflict
            .column('name')
            .doUpdateSet({ owner: ownerId, until: untilMs })
            .where(eb => eb.or([eb('schedule_owner.owner', '=', ownerId), eb('schedule_owner.until', '<=', nowMs)])),
        )
        .executeTakeFirstOrThrow()
      return numInsertedOrUpdatedRows === 1n
    },

    async leaveSchedule(name, ownerId) {
      await db.deleteFrom('schedule_owner').where('name', '=', name).where('owner', '=', ownerId).execute()
    },
  }
}
