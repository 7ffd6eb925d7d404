// A project's usage per UTC day. Flag requests are added up. Event counts are copied from the event store; for a day
// before the freezing line, the first copy is final.

import { type Kysely, type RawBuilder, sql } from 'kysely'
import { integerField, type RowOf, textField } from '#core/resource.ts'
import type { UsageStore } from '#ports/state/accounting-store.ts'
import { itemOf, rowOf } from '../tables/resource-rows.ts'
import type { StateSchema } from '../tables/schema.ts'
import { readInSlices } from '../tables/slices.ts'

const liveCounts = {
  fields: {
    eventsCharged: integerField('events_charged'),
    exceptions: integerField('exceptions'),
    llmEvents: integerField('llm_events'),
    surveyResponses: integerField('survey_responses'),
    recordings: integerField('recordings'),
  },
}
const eventCounts = { fields: { ...liveCounts.fields, eventsImported: integerField('events_imported') } }
const usageOfDay = {
  fields: { day: textField('day'), ...eventCounts.fields, flagRequests: integerField('flag_requests') },
}

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
              ...rowOf(eventCounts, usage),
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
      return rows.map(row => itemOf(usageOfDay, row))
    },

    async sumFlagRequests(projectIds, fromDay, toDay) {
      const rows = await sumColumns(db, ['flag_requests'], projectIds, fromDay, toDay)
      return rows.map(row => ({ projectId: Number(row.project_id), count: Number(row.flag_requests) }))
    },

    async sumUsage(projectIds, fromDay, toDay) {
      const columns = Object.values(liveCounts.fields).map(({ column }) => column)
      const rows = await sumColumns(db, columns, projectIds, fromDay, toDay)
      return rows.map(row => ({ projectId: Number(row.project_id), ...itemOf(liveCounts, row) }))
    },
  }
}

type CountColumn = keyof RowOf<typeof eventCounts> | 'flag_requests'

/** By project. */
function sumColumns<C extends CountColumn>(
  db: Kysely<StateSchema>,
  columns: readonly C[],
  projectIds: readonly number[],
  fromDay: string,
  toDay: string,
): Promise<({ readonly project_id: number } & { readonly [K in C]: number })[]> {
  const sums = db
    .selectFrom('usage_daily')
    .select(({ fn }) => ['project_id' as const, ...columns.map(column => fn.sum<number>(column).as(column))])
    .where('day', '>=', fromDay)
    .where('day', '<=', toDay)
    .groupBy('project_id')
  return readInSlices(projectIds, some => sums.where('project_id', 'in', some).execute() as Promise<never[]>)
}

/** The update of an existing row: the new counts, or the larger of both. */
function buildCountUpdates(mayNotFall: boolean): {
  readonly [K in keyof RowOf<typeof eventCounts>]: RawBuilder<number>
} {
  const counted = Object.values(eventCounts.fields).map(({ column }) => {
    const [now, before] = [sql.ref<number>(`excluded.${column}`), sql.ref<number>(`usage_daily.${column}`)]
    return [column, mayNotFall ? sql<number>`CASE WHEN ${now} > ${before} THEN ${now} ELSE ${before} END` : now]
  })
  return Object.fromEntries(counted)
}
