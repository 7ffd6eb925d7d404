// Events that fronts refused, by UTC day and reason; their warnings are stored with the warnings of processing.

import { type Kysely, sql, type Transaction } from 'kysely'
import { addCategoryAndSeverity, warningSamplesPerDay } from '#core/events/warning-types.ts'
import type { RefusedCount, RefusedStore } from '#ports/state/accounting-store.ts'
import { jsonText } from '../tables/rows.ts'
import type { StateSchema } from '../tables/schema.ts'

export function createRefusedQueries(db: Kysely<StateSchema>): RefusedStore {
  return {
    async addRefused(counts) {
      if (counts.length === 0) return
      // In the same order on all fronts, so that two never wait for each other.
      const inOrder = counts.toSorted(
        (a, b) => a.projectId - b.projectId || compare(a.day, b.day) || compare(a.reason, b.reason),
      )
      await db.transaction().execute(async trx => {
        for (const count of inOrder) await addCount(trx, count)
        for (const count of inOrder) if (count.warning !== null) await addWarning(trx, count)
      })
    },

    async listRefused(projectId, fromDay) {
      const rows = await db
        .selectFrom('refused_daily')
        .select(eb => ['reason', eb.fn.sum('refused_count').as('count'), eb.fn.max('last_seen').as('last_seen')])
        .where('project_id', '=', projectId)
        .where('day', '>=', fromDay)
        .groupBy('reason')
        .orderBy('reason')
        .execute()
      return rows.map(({ reason, count, last_seen }) => ({
        reason,
        count: Number(count),
        lastSeenMs: Number(last_seen),
      }))
    },

    async deleteRefusedOutside(firstDay, lastDay) {
      await db
        .deleteFrom('refused_daily')
        .where(eb => eb.or([eb('day', '<', firstDay), ...(lastDay === null ? [] : [eb('day', '>', lastDay)])]))
        .execute()
    },
  }
}

async function addCount(trx: Transaction<StateSchema>, counted: RefusedCount): Promise<void> {
  const { projectId, day, reason, count, lastSeenMs } = counted
  await trx
    .insertInto('refused_daily')
    .values({ project_id: projectId, day, reason, refused_count: count, last_seen: lastSeenMs })
    .onConflict(conflict =>
      conflict.columns(['project_id', 'day', 'reason']).doUpdateSet({
        refused_count: sql<number>`refused_daily.refused_count + excluded.refused_count`,
        last_seen: laterSeenSql('refused_daily'),
      }),
    )
    .execute()
}

/** As in a chunk's commit: counts are exact, samples are few. */
async function addWarning(trx: Transaction<StateSchema>, counted: RefusedCount): Promise<void> {
  const { projectId, day, reason: type, count, lastSeenMs, warning } = counted
  const { warning_count } = await trx
    .insertInto('ingestion_warning_day')
    .values({ project_id: projectId, type, day, warning_count: count, last_seen: lastSeenMs })
    .onConflict(conflict =>
      conflict.columns(['project_id', 'type', 'day']).doUpdateSet({
        warning_count: sql<number>`ingestion_warning_day.warning_count + excluded.warning_count`,
        last_seen: laterSeenSql('ingestion_warning_day'),
      }),
    )
    .returning('warning_count')
    .executeTakeFirstOrThrow()
  if (Number(warning_count) - count >= warningSamplesPerDay(type)) return
  const details = jsonText(addCategoryAndSeverity(type, warning!))
  await trx
    .insertInto('ingestion_warning')
    .values({ project_id: projectId, type, day, timestamp: lastSeenMs, details })
    .execute()
}

function laterSeenSql(table: 'refused_daily' | 'ingestion_warning_day') {
  const stored = sql.ref(`${table}.last_seen`)
  return sql<number>`CASE WHEN excluded.last_seen > ${stored} THEN excluded.last_seen ELSE ${stored} END`
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
