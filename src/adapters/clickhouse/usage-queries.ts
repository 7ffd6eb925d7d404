// Counts that people pay by: events per day of charge, each identity once.

import type { UsageDay } from '#ports/event-store.ts'
import type { ClickHouseClient } from './clickhouse-clients.ts'

/**
 * A copy that arrived in another month may be the one that counts, so every copy of the days concerned takes part and
 * the day of charge is looked at afterwards (`defer_partition_pruning_after_final`). Which days of events those are, is
 * what the inner query finds by two columns; identities never cross a day. No row is charged for a day after that of
 * its arrival, so the months of arrival before `fromDay` need not be looked at for that.
 * @param fromDay, toDay inclusive, `YYYY-MM-DD`.
 */
export async function countUsage(
  client: ClickHouseClient,
  projectId: number,
  fromDay: string,
  toDay: string,
  signal: AbortSignal,
): Promise<UsageDay[]> {
  const fromTime = `toDateTime64({from_day:Date32}, 3, 'UTC')`
  const charged = `charged_at >= ${fromTime} AND charged_at < toDateTime64({to_day:Date32} + 1, 3, 'UTC')`
  const result = await client.query({
    query: `SELECT toString(toDate32(charged_at)) AS day, toFloat64(countIf(import_job_id = 0)), toFloat64(countIf(import_job_id > 0))
      FROM events FINAL
      WHERE project_id = {project:UInt32} AND ${charged} AND toDate32(timestamp) IN (
        SELECT DISTINCT toDate32(timestamp) FROM events
        WHERE project_id = {project:UInt32} AND captured_at >= ${fromTime} AND ${charged}
      )
      GROUP BY day ORDER BY day`,
    query_params: { project: projectId, from_day: fromDay, to_day: toDay },
    abort_signal: signal,
    format: 'JSONCompactEachRow',
  })
  const rows = await result.json<[string, number, number]>()
  return rows.map(([day, eventsCharged, eventsImported]) => ({ day, eventsCharged, eventsImported }))
}
