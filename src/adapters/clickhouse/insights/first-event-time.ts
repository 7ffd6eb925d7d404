// Finds where a range of "all" times begins.

import type { ClickHouseClient } from '../connection/clickhouse-clients.ts'
import { epochMsSql } from './bucket-expression.ts'

/**
 * As in PostHog. Any holder of the public key can send an event of 1900, after which "all" would always have too many
 * buckets.
 */
const firstDay = '2015-01-01'

/**
 * See `InsightQueries.findFirstEventTime`. The sort key alone gives the first day; only that day is deduplicated, since
 * another copy of an event may be earlier than the one that counts.
 */
export async function findFirstEventTime(
  client: ClickHouseClient,
  projectId: number,
  signal: AbortSignal,
): Promise<number | null> {
  const result = await client.query({
    query: `SELECT ${epochMsSql('min(timestamp)')}, count() FROM events FINAL
      WHERE project_id = {project:UInt32} AND toDate32(timestamp) = (
        SELECT min(toDate32(timestamp)) FROM events
        WHERE project_id = {project:UInt32} AND toDate32(timestamp) >= '${firstDay}'
      )`,
    query_params: { project: projectId },
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  const [[firstMs, count] = [0, 0]] = await result.json<[number | string, number | string]>()
  return Number(count) === 0 ? null : Number(firstMs)
}
