// Usage, refusals and warnings of projects by UTC day. Counts of flag requests are added up. Event counts are copied from
// the event store; for a day before `frozenBeforeDay`, the first copy is final.

import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import { addCategoryAndSeverity, findWarningSamplesMax } from '#core/events/warning-types.ts'
import { integerField, type RowOf, textField } from '#core/resource.ts'
import { utcDay } from '#core/usage.ts'
import type { AccountingStore, RefusedCount, WarningSummary } from '#ports/state/accounting-store.ts'
import { readInSlices } from '../tables/read-pages.ts'
import { toResourceItem, toResourceRow } from '../tables/resource-rows.ts'
import { parseStoredJsonObject, toJsonText } from '../tables/rows.ts'
import type { StateSchema } from '../tables/schema.ts'

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

export function createAccountingQueries(db: Kysely<StateSchema>): AccountingStore {
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
              ...toResourceRow(eventCounts, usage),
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
      return rows.map(row => toResourceItem(usageOfDay, row))
    },

    async sumFlagRequests(projectIds, fromDay, toDay) {
      const rows = await sumColumns(db, ['flag_requests'], projectIds, fromDay, toDay)
      return rows.map(row => ({ projectId: Number(row.project_id), count: Number(row.flag_requests) }))
    },

    async sumUsage(projectIds, fromDay, toDay) {
      const columns = Object.values(liveCounts.fields).map(({ column }) => column)
      const rows = await sumColumns(db, columns, projectIds, fromDay, toDay)
      return rows.map(row => ({ projectId: Number(row.project_id), ...toResourceItem(liveCounts, row) }))
    },

    async addRefused(counts) {
      if (counts.length === 0) return
      // Writes the rows in the same order on all fronts, so that two fronts never wait for each other.
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
            details: parseStoredJsonObject(sample.details),
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

/**
 * The update of an existing row: sets the new counts or, with `mayNotFall`, the larger of the old and the new count for
 * each column.
 */
function buildCountUpdates(mayNotFall: boolean): {
  readonly [K in keyof RowOf<typeof eventCounts>]: RawBuilder<number>
} {
  const counted = Object.values(eventCounts.fields).map(({ column }) => {
    const [now, before] = [sql.ref<number>(`excluded.${column}`), sql.ref<number>(`usage_daily.${column}`)]
    return [column, mayNotFall ? sql<number>`CASE WHEN ${now} > ${before} THEN ${now} ELSE ${before} END` : now]
  })
  return Object.fromEntries(counted)
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

/** Counts every refusal as a warning, but keeps only a few samples, like the commit of a chunk. */
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
  if (Number(warning_count) - count >= findWarningSamplesMax(type)) return
  const details = toJsonText(addCategoryAndSeverity(type, warning!))
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
