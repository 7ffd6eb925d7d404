// Finds flags whose calls are worth counting in advance, and days whose counts a merge of persons has outdated.

import { flagCallEventName } from '#core/processing/deduplicate-flag-calls.ts'
import { dayMs } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'
import type { BusyFlag, FlagUsageUpkeep } from '#ports/events/insight-queries.ts'
import { type ClickHouseClient, readRows } from '../connection/clickhouse-clients.ts'
import { timeParamSql } from '../parameters/time-param.ts'

/** See `FlagUsageUpkeep.listBusyFlags`. Counts every copy, without FINAL: an estimate is enough. */
export async function listBusyFlags(
  client: ClickHouseClient,
  projectId: number,
  { fromMs, callsMin, limit }: Parameters<FlagUsageUpkeep['listBusyFlags']>[1],
  signal: AbortSignal,
): Promise<BusyFlag[]> {
  const since = 'project_id = {project:UInt32} AND toDate32(timestamp) >= {day:Date32}'
  const rows = await readRows<[flag: string, days: [day: number, calls: number][]]>(client, signal, {
    query: `SELECT toString(flag), groupArray((toInt32(day), toFloat64(calls))), sum(calls) AS total FROM (
        SELECT flag_called AS flag, toDate32(timestamp) AS day, count() AS calls FROM events
        WHERE ${since} AND event = {event:String} GROUP BY flag, day
        UNION ALL
        SELECT feature_flag AS flag, toDate32(timestamp) AS day, count() AS calls FROM deduplicated_flag_calls
        WHERE ${since} GROUP BY flag, day
      ) WHERE flag != '' GROUP BY flag HAVING total >= {calls_min:UInt64} ORDER BY total DESC, flag LIMIT {limit:UInt32}`,
    query_params: {
      ...{ project: projectId, day: utcDay(fromMs), event: flagCallEventName, calls_min: callsMin, limit },
    },
  })
  return rows.map(([flagKey, days]) => {
    const callsOfDay = new Map<number, number>()
    for (const [day, calls] of days) callsOfDay.set(day * dayMs, calls + (callsOfDay.get(day * dayMs) ?? 0))
    return { flagKey, callsOfDay }
  })
}

/**
 * See `FlagUsageUpkeep.listDaysOfMovedIds`. Searches only stored calls, since each deduplicated call repeats a stored call
 * with the same distinct id and day.
 */
export async function listDaysOfMovedIds(
  client: ClickHouseClient,
  projectId: number,
  movedFromMs: number,
  signal: AbortSignal,
): Promise<Map<number, number>> {
  const moved = `SELECT distinct_id, max(stored_at) AS moved_at FROM person_distinct_id_overrides
    WHERE project_id = {project:UInt32} AND stored_at >= ${timeParamSql('from')} GROUP BY distinct_id`
  const query_params = { project: projectId, from: movedFromMs, event: flagCallEventName }
  // Asks first whether there was any merge: most checks find none, and must not read all calls to find that none of them
  // moved.
  const rows = await readRows(client, signal, {
    query: `SELECT 1 FROM (${moved}) LIMIT 1`,
    query_params,
  })
  if (rows.length === 0) return new Map()
  const found = await readRows<[number, number]>(client, signal, {
    query: `SELECT toInt32(toDate32(timestamp)) AS day, toFloat64(toUnixTimestamp64Milli(max(m.moved_at)))
      FROM events AS e INNER JOIN (${moved}) AS m USING (distinct_id)
      WHERE project_id = {project:UInt32} AND event = {event:String}
        AND distinct_id IN (SELECT distinct_id FROM (${moved}))
      GROUP BY day`,
    query_params,
  })
  return new Map(found.map(([day, movedAtMs]) => [day * dayMs, movedAtMs]))
}
