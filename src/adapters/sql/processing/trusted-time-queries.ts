import type { Kysely } from 'kysely'
import type { TrustedTimeStore } from '#ports/state/worker-state.ts'
import type { StateSchema } from '../tables/schema.ts'

export function createTrustedTimeQueries(db: Kysely<StateSchema>): TrustedTimeStore {
  return {
    async findTrustedTime() {
      const row = await db.selectFrom('trusted_time').select(['at_ms', 'ahead_ms', 'stood_ms']).executeTakeFirst()
      if (row === undefined) return null
      return { atMs: Number(row.at_ms), aheadMs: Number(row.ahead_ms), stoodMs: Number(row.stood_ms) }
    },

    async saveTrustedTime({ atMs, aheadMs, stoodMs }) {
      // Clocks of tests and monotonic ones have fractions.
      const row = { at_ms: Math.round(atMs), ahead_ms: Math.round(aheadMs), stood_ms: Math.round(stoodMs) }
      await db
        .insertInto('trusted_time')
        .values({ id: 1, ...row })
        .onConflict(conflict => conflict.column('id').doUpdateSet(row))
        .execute()
    },
  }
}
