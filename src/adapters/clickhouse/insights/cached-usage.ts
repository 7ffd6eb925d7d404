// Caches counts of a flag's calls per bucket. A count stays valid while the arrivals recorded for the bucket's UTC days
// equal those recorded before it was counted (`writing/flag-arrivals.ts`).

import { rankUsage, type ValueUsage } from '#core/insights/flag-usage.ts'
import { dayMs } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'
import type { CachedUsageQuery } from '#ports/events/flag-usage-upkeep.ts'
import type { ClickHouseClient, ClickHouseClients } from '../connection/clickhouse-clients.ts'
import { countFromRows } from './flag-usage-rows.ts'

/** The cached counts of one bucket. */
export interface CachedCount {
  readonly fromMs: number
  readonly endMs: number
  readonly cachedAtMs: number
  readonly values: readonly { readonly value: string; readonly calls: number; readonly persons: number }[]
  readonly rest: { readonly calls: number; readonly persons: number } | null
}

/** The most values of a bucket that are cached separately; anyone with the project's key may make up more. */
const cachedValuesMax = 100

type CachedRow = [
  ...[fromMs: number | string, endMs: number | string, cachedAtMs: number | string, arrivals: string],
  ...[values: string[], calls: (number | string)[], persons: (number | string)[]],
  ...[restCalls: number | string, restPersons: number | string],
]

/** The cached counts of these buckets that are still valid. */
export async function findCachedUsage(
  client: ClickHouseClient,
  { projectId, flagKey, buckets: { edges } }: CachedUsageQuery,
  signal: AbortSignal,
): Promise<CachedCount[]> {
  const result = await client.query({
    query: `SELECT from_ms, end_ms, toUnixTimestamp64Milli(computed_at), toString(arrivals), values, calls, persons,
        rest_calls, rest_persons
      FROM cached_flag_usage FINAL
      WHERE project_id = {project:UInt32} AND flag = {flag:String} AND from_ms >= {from:Int64} AND end_ms <= {end:Int64}`,
    query_params: { project: projectId, flag: flagKey, from: edges[0]!, end: edges.at(-1)! },
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  const ends = new Map(edges.slice(0, -1).map((fromMs, index) => [fromMs, edges[index + 1]!]))
  const rows = (await result.json<CachedRow>()).filter(([from, end]) => ends.get(Number(from)) === Number(end))
  if (rows.length === 0) return []
  const arrivals = await findArrivals(client, projectId, edges, signal)
  return rows
    .filter(([from, end, , counted]) => arrivals(Number(from), Number(end)) === counted)
    .map(([from, end, cachedAt, , values, calls, persons, restCalls, restPersons]) => ({
      fromMs: Number(from),
      endMs: Number(end),
      cachedAtMs: Number(cachedAt),
      values: values.map((value, at) => ({ value, calls: Number(calls[at]), persons: Number(persons[at]) })),
      rest: Number(restCalls) === 0 ? null : { calls: Number(restCalls), persons: Number(restPersons) },
    }))
}

/**
 * Counts these buckets from the calls, and caches the counts. Reads arrivals first, so that calls that arrive during
 * the count invalidate it.
 */
export async function cacheUsage(
  clients: ClickHouseClients,
  query: CachedUsageQuery & { readonly nowMs: number },
  signal?: AbortSignal,
): Promise<void> {
  const { projectId, flagKey, buckets, nowMs } = query
  const rows = await clients.count(async (client, stop) => {
    const arrivals = await findArrivals(client, projectId, buckets.edges, stop)
    const { values, rest } = await countFromRows(client, query, stop)
    return buckets.edges.slice(0, -1).map((fromMs, at) => {
      const pickUsage = ({ calls, persons, value = '' }: Partial<ValueUsage> & Omit<ValueUsage, 'value'>) => ({
        ...{ value, calls: [calls[at]!], persons: [persons[at]!] },
      })
      const called = values.filter(({ calls }) => calls[at]! > 0).map(pickUsage)
      const kept = rankUsage(called, rest === null ? [] : [pickUsage(rest)], cachedValuesMax)
      return {
        ...{ project_id: projectId, flag: flagKey, from_ms: fromMs, end_ms: buckets.edges[at + 1]! },
        arrivals: arrivals(fromMs, buckets.edges[at + 1]!),
        computed_at: new Date(nowMs).toISOString().slice(0, -1).replace('T', ' '),
        values: kept.values.map(({ value }) => value),
        calls: kept.values.map(({ calls }) => calls[0]!),
        persons: kept.values.map(({ persons }) => persons[0]!),
        rest_calls: kept.rest?.calls[0] ?? 0,
        rest_persons: kept.rest?.persons[0] ?? 0,
      }
    })
  }, signal)
  await clients.write((client, database) =>
    client.insert({
      table: `${database}.cached_flag_usage`,
      values: rows,
      format: 'JSONEachRow',
      clickhouse_settings: { async_insert: 0 },
    }),
  )
}

/** The sum of the arrivals on the UTC days between two times, as text. */
async function findArrivals(
  client: ClickHouseClient,
  projectId: number,
  edges: readonly number[],
  signal: AbortSignal,
): Promise<(fromMs: number, endMs: number) => string> {
  const result = await client.query({
    query: `SELECT project_id, toInt32(day), toString(sum(token)) FROM flag_call_arrivals
      WHERE project_id = 0 OR project_id = {project:UInt32} AND day BETWEEN {first_day:Date32} AND {last_day:Date32}
      GROUP BY project_id, day`,
    query_params: { project: projectId, first_day: utcDay(edges[0]!), last_day: utcDay(edges.at(-1)! - 1) },
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  const days = new Map<number, bigint>()
  let ofAll = 0n
  for (const [id, day, token] of await result.json<[number, number, string]>())
    if (id === 0) ofAll += BigInt(token)
    else days.set(day, BigInt(token))
  return (fromMs, endMs) => {
    let sum = ofAll
    for (let day = Math.floor(fromMs / dayMs); day * dayMs < endMs; day++) sum += days.get(day) ?? 0n
    return String(BigInt.asUintN(64, sum))
  }
}
