// Deletes cookieless visitors of past days.

import { type Kysely, sql } from 'kysely'
import type { CookielessVisitorUpkeep } from '#ports/state/cookieless-visitors.ts'
import type { StateSchema } from '../tables/schema.ts'

export function createCookielessVisitorQueries(db: Kysely<StateSchema>): CookielessVisitorUpkeep {
  return {
    async deleteVisitorsExcept({ first, last }, days, rowCountMax) {
      // PostgreSQL takes no empty list.
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
