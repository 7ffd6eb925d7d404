// Finds where the time range "all" begins.

import type { EventScope } from '#ports/events/event-queries.ts'
import { type ClickHouseClient, readRows } from '../connection/clickhouse-clients.ts'
import { buildVisibleEventSources } from '../queries/event-sources.ts'
import { epochMsSql } from './bucket-expression.ts'

/**
 * The earliest start of the range "all"; PostHog uses the same day. Anyone with the public key can send an event dated
 * 1900, from which the range would otherwise have too many buckets.
 */
const firstDay = '2015-01-01'

/**
 * See `InsightQueries.findFirstEventTime`. The sort key alone gives the first day; only that day is deduplicated, since
 * another copy of an event may be earlier than the copy that counts.
 */
export async function findFirstEventTime(
  client: ClickHouseClient,
  scope: EventScope,
  signal: AbortSignal,
): Promise<number | null> {
  const { once, copies } = buildVisibleEventSources(scope)
  const rows = await readRows<[number | string, number | string]>(client, signal, {
    query: `SELECT ${epochMsSql('min(timestamp)')}, count() FROM ${once}
      WHERE project_id = {project:UInt32} AND toDate32(timestamp) = (
        SELECT min(toDate32(timestamp)) FROM ${copies}
        WHERE project_id = {project:UInt32} AND toDate32(timestamp) >= '${firstDay}'
      )`,
    query_params: { project: scope.projectId },
  })
  const [[firstMs, count] = [0, 0]] = rows
  return Number(count) === 0 ? null : Number(firstMs)
}
