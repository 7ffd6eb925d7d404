// A project's usage per UTC day. Flag requests are added up. Event counts are copied from the event store; for a day
// before the freezing line, the first copy is final.

import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { LiveUsage } from '#core/usage.ts'
import type { UsageStore } from '#ports/state/accounting-store.ts'
import type { StateSchema } from '../tables/schema.ts'

/** Projects read per query: keeps `IN` lists bounded. */
const projectsPerQuery = 500

export function createUsageQueries(db: Kysely<StateSchema>): UsageStore {
  return {
    async addFlagRequests(counts) {
      if (counts.length === 0) return
      await db.transaction().execute(async trx => {
        for (const { projectId, day, count } of counts)
          await trx
            .insertInto('usage_daily')
            .values({
              project_id: projectId,
              day,
              events_charged: 0,
              events_imported: 0,
              flag_requests: count,
              events_frozen: 0,
            })
            .onConflict(conflict =>
              conflict
                .columns(['project_id', 'day'])
                .doUpdateSet({ flag_requests: sql<number>`usage_daily.flag_requests + excluded.flag_requests` }),
            )
            .execute()
      })
    },

    async saveEventCounts(projectId, days, frozenBeforeDay, lostDays = []) {
      if (days.length === 0) return
      await db.transaction().execute(async trx => {
        for (const usage of days)
          await trx
            .insertInto('usage_daily')
            .values({
              project_id: projectId,
              day: usage.day,
              events_charged: usage.eventsCharged,
              events_imported: usage.eventsImported,
              exceptions: usage.exceptions,
              llm_events: usage.llmEvents,
              survey_responses: usage.surveyResponses,
              recordings: usage.recordings,
              flag_requests: 0,
              events_frozen: usage.day < frozenBeforeDay ? 1 : 0,
            })
            .onConflict(conflict =>
              conflict
                .columns(['project_id', 'day'])
                .doUpdateSet({
                  ...buildCountUpdates(lostDays.includes(usage.day)),
                  events_frozen: sql<number>`excluded.events_frozen`,
                })
                .where('usage_daily.events_frozen', '=', 0),
            )
            .execute()
      })
    },

    async listUsage(projectId, fromDay, toDay) {
      const rows = await db
        .selectFrom('usage_daily')
        .selectAll()
        .where('project_id', '=', projectId)
        .where('day', '>=', fromDay)
        .where('day', '<=', toDay)
        .orderBy('day')
        .execute()
      return rows.map(row => ({
        day: row.day,
        eventsCharged: Number(row.events_charged),
        exceptions: Number(row.exceptions),
        llmEvents: Number(row.llm_events),
        surveyResponses: Number(row.survey_responses),
        recordings: Number(row.recordings),
        eventsImported: Number(row.events_imported),
        flagRequests: Number(row.flag_requests),
      }))
    },

    async sumFlagRequests(projectIds, fromDay, toDay) {
      const sums: { projectId: number; count: number }[] = []
      for (let start = 0; start < projectIds.length; start += projectsPerQuery) {
        const rows = await db
          .selectFrom('usage_daily')
          .select(eb => ['project_id', eb.fn.sum('flag_requests').as('flag_requests')])
          .where('project_id', 'in', projectIds.slice(start, start + projectsPerQuery))
          .where('day', '>=', fromDay)
          .where('day', '<=', toDay)
          .groupBy('project_id')
          .execute()
        for (const row of rows) sums.push({ projectId: Number(row.project_id), count: Number(row.flag_requests) })
      }
      return sums
    },

    async sumUsage(projectIds, fromDay, toDay) {
      const sums: (LiveUsage & { projectId: number })[] = []
      for (let start = 0; start < projectIds.length; start += projectsPerQuery) {
        const rows = await db
          .selectFrom('usage_daily')
          .select(eb => [
            'project_id',
            eb.fn.sum('events_charged').as('events_charged'),
            eb.fn.sum('exceptions').as('exceptions'),
            eb.fn.sum('llm_events').as('llm_events'),
            eb.fn.sum('survey_responses').as('survey_responses'),
            eb.fn.sum('recordings').as('recordings'),
          ])
          .where('project_id', 'in', projectIds.slice(start, start + projectsPerQuery))
          .where('day', '>=', fromDay)
          .where('day', '<=', toDay)
          .groupBy('project_id')
          .execute()
        for (const row of rows)
          sums.push({
            projectId: Number(row.project_id),
            eventsCharged: Number(row.events_charged),
            exceptions: Number(row.exceptions),
            llmEvents: Number(row.llm_events),
            surveyResponses: Number(row.survey_responses),
            recordings: Number(row.recordings),
          })
      }
      return sums
    },
  }
}

const countColumns = [
  'events_charged',
  'events_imported',
  'exceptions',
  'llm_events',
  'survey_responses',
  'recordings',
] as const

/** The update of an existing row: the new counts, or the larger of both. */
function buildCountUpdates(mayNotFall: boolean): Record<(typeof countColumns)[number], RawBuilder<number>> {
  const counted = countColumns.map(column => {
    const [now, before] = [sql.ref<number>(`excluded.${column}`), sql.ref<number>(`usage_daily.${column}`)]
    return [column, mayNotFall ? sql<number>`CASE WHEN ${now} > ${before} THEN ${now} ELSE ${before} END` : now]
  })
  return Object.fromEntries(counted)
}
