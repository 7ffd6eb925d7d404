// Computes the usage of a flag from cached counts per bucket, and from the calls for buckets without a valid cached count.
// A count is valid while the arrivals recorded for the bucket's UTC days equal the arrivals recorded before it was counted
// (`writing/flag-call-days.ts`).

import { type FlagUsage, rankFlagUsage, type UsageCell } from '#core/insights/flag-usage.ts'
import { dayMs } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'
import type { FlagUsageQuery } from '#ports/events/insight-queries.ts'
import { type ClickHouseClient, type ClickHouseClients, readRows } from '../connection/clickhouse-clients.ts'
import { bucketStartSql } from './bucket-expression.ts'
import { buildFlagCallRows } from './flag-calls.ts'

/**
 * The most values of a bucket that are counted separately; all further values are counted as one, so that made-up values
 * cannot make an answer large.
 */
const countedValuesMax = 1_000
/** The most values of a bucket that are cached separately; anyone with the project's key may make up more. */
const cachedValuesMax = 100
/**
 * The most runs of buckets that are counted separately; if there are more, they are counted as one run that includes the
 * cached buckets between them.
 */
const runsMax = 10

/** See `InsightQueries.countFlagUsage`. */
export async function countFlagUsage(
  client: ClickHouseClient,
  query: FlagUsageQuery,
  signal: AbortSignal,
): Promise<FlagUsage> {
  const { edges } = query.buckets
  const starts = edges.slice(0, -1)
  const cached = new Map((await findCachedUsage(client, query, signal)).map(count => [count.fromMs, count.cells]))
  const parts: UsageCell[][] = []
  for (const { from, end } of findUncachedRuns(starts.length, index => cached.has(starts[index]!))) {
    parts.push(await countFromRows(client, { ...query, buckets: { edges: edges.slice(from, end + 1) } }, signal))
    for (const fromMs of starts.slice(from, end)) cached.delete(fromMs)
  }
  return rankFlagUsage([...parts, ...cached.values()].flat(), starts)
}

/** Finds runs of adjacent buckets without a cached count; `from` and `end` are indexes, `end` is exclusive. */
export function findUncachedRuns(count: number, isKept: (index: number) => boolean): { from: number; end: number }[] {
  const runs: { from: number; end: number }[] = []
  for (let index = 0; index < count; index++) {
    if (isKept(index)) continue
    const last = runs.at(-1)
    if (last?.end === index) last.end++
    else runs.push({ from: index, end: index + 1 })
  }
  return runs.length > runsMax ? [{ from: runs[0]!.from, end: runs.at(-1)!.end }] : runs
}

async function countFromRows(
  client: ClickHouseClient,
  query: FlagUsageQuery,
  signal: AbortSignal,
): Promise<UsageCell[]> {
  const rows = await buildFlagCallRows(client, query, signal)
  const cells = await readRows<[string | null, number, number, number]>(client, signal, {
    query: `SELECT if(rank <= {values_max:UInt32}, toNullable(toString(value)), NULL) AS named, toFloat64(cell.1) AS bucket,
        toFloat64(sum(cell.2)), toFloat64(sum(cell.3))
      FROM (
        SELECT value, cells, row_number() OVER (ORDER BY total DESC, value) AS rank
        FROM (
          SELECT value, groupArray((bucket, calls, persons)) AS cells, sum(calls) AS total
          FROM (
            SELECT value, ${bucketStartSql('timestamp')} AS bucket, count() AS calls, uniqExact(person) AS persons
            FROM (${rows.sql}) GROUP BY value, bucket
          ) GROUP BY value
        )
      ) ARRAY JOIN cells AS cell
      GROUP BY named, bucket`,
    query_params: { ...rows.params, values_max: countedValuesMax },
  })
  return cells.map(([value, fromMs, calls, persons]) => ({ value, fromMs, calls, persons }))
}

type CachedRow = [
  ...[fromMs: number, endMs: number, cachedAtMs: number, arrivals: string],
  cells: [value: string | null, calls: number, persons: number][],
]

/** The cached counts of these buckets that are still valid. */
export async function findCachedUsage(
  client: ClickHouseClient,
  { projectId, flagKey, buckets: { edges } }: FlagUsageQuery,
  signal: AbortSignal,
): Promise<{ fromMs: number; cachedAtMs: number; cells: UsageCell[] }[]> {
  const found = await readRows<CachedRow>(client, signal, {
    query: `SELECT toFloat64(from_ms), toFloat64(end_ms), toFloat64(toUnixTimestamp64Milli(computed_at)), toString(arrivals),
        arrayFilter(cell -> cell.2 > 0, arrayPushBack(
          arrayMap((v, c, p) -> (toNullable(v), toFloat64(c), toFloat64(p)), values, calls, persons),
          (NULL, toFloat64(rest_calls), toFloat64(rest_persons))))
      FROM cached_flag_usage FINAL
      WHERE project_id = {project:UInt32} AND flag = {flag:String} AND from_ms >= {from:Int64} AND end_ms <= {end:Int64}`,
    query_params: { project: projectId, flag: flagKey, from: edges[0]!, end: edges.at(-1)! },
  })
  const ends = new Map(edges.slice(0, -1).map((fromMs, index) => [fromMs, edges[index + 1]!]))
  const rows = found.filter(([fromMs, endMs]) => ends.get(fromMs) === endMs)
  if (rows.length === 0) return []
  const arrivals = await readArrivalSums(client, projectId, edges, signal)
  return rows
    .filter(([fromMs, endMs, , counted]) => arrivals(fromMs, endMs) === counted)
    .map(([fromMs, , cachedAtMs, , cells]) => ({
      ...{ fromMs, cachedAtMs },
      cells: cells.map(([value, calls, persons]) => ({ fromMs, value, calls, persons })),
    }))
}

/**
 * Counts these buckets from the calls, and caches the counts. Reads arrivals first, so that calls that arrive during
 * the count invalidate it.
 */
export async function cacheUsage(
  clients: ClickHouseClients,
  query: FlagUsageQuery & { readonly nowMs: number },
  signal?: AbortSignal,
): Promise<void> {
  const { projectId, flagKey, buckets, nowMs } = query
  const rows = await clients.count(async (client, stop) => {
    const arrivals = await readArrivalSums(client, projectId, buckets.edges, stop)
    const cellsOf = Map.groupBy(await countFromRows(client, query, stop), ({ fromMs }) => fromMs)
    return buckets.edges.slice(0, -1).map((fromMs, index) => {
      const endMs = buckets.edges[index + 1]!
      const { values, rest } = rankFlagUsage(cellsOf.get(fromMs) ?? [], [fromMs], cachedValuesMax)
      return {
        ...{ project_id: projectId, flag: flagKey, from_ms: fromMs, end_ms: endMs, arrivals: arrivals(fromMs, endMs) },
        computed_at: new Date(nowMs).toISOString().slice(0, -1).replace('T', ' '),
        values: values.map(({ value }) => value),
        calls: values.map(({ calls }) => calls[0]!),
        persons: values.map(({ persons }) => persons[0]!),
        rest_calls: rest?.calls[0] ?? 0,
        rest_persons: rest?.persons[0] ?? 0,
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

/** @returns a function that sums the arrivals on the UTC days between two times; the sum is a text of digits. */
async function readArrivalSums(
  client: ClickHouseClient,
  projectId: number,
  edges: readonly number[],
  signal: AbortSignal,
): Promise<(fromMs: number, endMs: number) => string> {
  const rows = await readRows<[number, number, string]>(client, signal, {
    query: `SELECT project_id, toInt32(day), toString(sum(token)) FROM flag_call_arrivals
      WHERE project_id = 0 OR project_id = {project:UInt32} AND day BETWEEN {first_day:Date32} AND {last_day:Date32}
      GROUP BY project_id, day`,
    query_params: { project: projectId, first_day: utcDay(edges[0]!), last_day: utcDay(edges.at(-1)! - 1) },
  })
  const days = new Map<number, bigint>()
  let ofAll = 0n
  for (const [id, day, token] of rows)
    if (id === 0) ofAll += BigInt(token)
    else days.set(day, BigInt(token))
  return (fromMs, endMs) => {
    let sum = ofAll
    for (let day = Math.floor(fromMs / dayMs); day * dayMs < endMs; day++) sum += days.get(day) ?? 0n
    return String(BigInt.asUintN(64, sum))
  }
}
