// Counts the calls of a flag by value and bucket, from the calls as they are stored.

import type { FlagUsage, ValueUsage } from '#core/insights/flag-usage.ts'
import type { FlagUsageQuery } from '#ports/events/insight-queries.ts'
import type { ClickHouseClient } from '../connection/clickhouse-clients.ts'
import { bucketStartSql } from './bucket-expression.ts'
import { buildFlagCallRows } from './flag-calls.ts'

/**
 * The most values of a bucket that are counted separately; all others count as one, so that made-up values cannot make
 * an answer large.
 */
const countedValuesMax = 1_000

/** Counts the calls of the buckets; the values are in no order. */
export async function countFromRows(
  client: ClickHouseClient,
  query: FlagUsageQuery,
  signal: AbortSignal,
): Promise<FlagUsage> {
  const rows = await buildFlagCallRows(client, query, signal)
  const result = await client.query({
    query: `SELECT rank <= {values_max:UInt32} AS is_named, if(is_named, value, '') AS named, cell.1 AS bucket,
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
      GROUP BY is_named, named, bucket`,
    query_params: { ...rows.params, values_max: countedValuesMax },
    use_multipart_params: true,
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  const bucketCount = query.buckets.edges.length - 1
  const indexOf = new Map(query.buckets.edges.map((ms, index) => [ms, index]))
  const counts = new Map<string | null, Counted>()
  for (const row of await result.json<[0 | 1 | boolean, string, number | string, number, number]>()) {
    const [isNamed, value, start, calls, persons] = row
    const bucket = indexOf.get(Number(start))!
    const key = isNamed ? value : null
    const counted = counts.get(key) ?? createZeroCounts(value, bucketCount)
    counts.set(key, counted)
    counted.calls[bucket] = calls
    counted.persons[bucket] = persons
  }
  const rest = counts.get(null) ?? null
  counts.delete(null)
  return { values: [...counts.values()], rest }
}

interface Counted extends ValueUsage {
  readonly calls: number[]
  readonly persons: number[]
}

function createZeroCounts(value: string, bucketCount: number): Counted {
  const emptyCounts = () => new Array<number>(bucketCount).fill(0)
  return { value, calls: emptyCounts(), persons: emptyCounts() }
}
