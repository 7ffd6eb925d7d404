// Ingestion warnings: counts are exact, samples are few (`warningSamplesPerDay` of a project, type and UTC day).

import type { Kysely } from 'kysely'
import { utcDay } from '#core/usage.ts'
import type { WarningStore, WarningSummary } from '#ports/state/accounting-store.ts'
import { jsonObjectOf } from '../tables/rows.ts'
import type { StateSchema } from '../tables/schema.ts'

export function createWarningQueries(db: Kysely<StateSchema>): WarningStore {
  return {
    async listWarnings(projectId, { sinceMs, sampleCountMax }) {
      const types = await db
        .selectFrom('ingestion_warning_day')
        .select(eb => ['type', eb.fn.sum('warning_count').as('count'), eb.fn.max('last_seen').as('last_seen')])
        .where('project_id', '=', projectId)
        .where('day', '>=', utcDay(sinceMs))
        .groupBy('type')
        .execute()
      const summaries: WarningSummary[] = []
      for (const { type, count, last_seen } of types) {
        const samples = await db
          .selectFrom('ingestion_warning')
          .select(['timestamp', 'details'])
          .where('project_id', '=', projectId)
          .where('type', '=', type)
          .where('timestamp', '>=', sinceMs)
          .orderBy('timestamp', 'desc')
          .orderBy('id', 'desc')
          .limit(sampleCountMax)
          .execute()
        summaries.push({
          type,
          count: Number(count),
          lastSeenMs: Number(last_seen),
          warnings: samples.map(sample => ({
            timestampMs: Number(sample.timestamp),
            details: jsonObjectOf(sample.details),
          })),
        })
      }
      return summaries.sort((a, b) => b.lastSeenMs - a.lastSeenMs || (a.type < b.type ? -1 : 1))
    },

    async deleteWarningsOutside(firstDay, lastDay) {
      await db.transaction().execute(async trx => {
        for (const table of ['ingestion_warning', 'ingestion_warning_day'] as const)
          await trx
            .deleteFrom(table)
            .where(eb => eb.or([eb('day', '<', firstDay), ...(lastDay === null ? [] : [eb('day', '>', lastDay)])]))
            .execute()
      })
    },
  }
}
