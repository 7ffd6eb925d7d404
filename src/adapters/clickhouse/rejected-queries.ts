// Lists of what was accepted and could not be stored, newest first.

import type { Lane } from '#core/events/captured-event.ts'
import type { RejectedEvent } from '#core/events/stored-event.ts'
import type { RejectedQuery } from '#ports/event-store.ts'
import type { ClickHouseClient } from './clickhouse-clients.ts'

export async function listRejected(
  client: ClickHouseClient,
  query: RejectedQuery,
  signal: AbortSignal,
): Promise<RejectedEvent[]> {
  const conditions = ['project_id = {project:UInt32}']
  if (query.reason !== undefined) conditions.push('reason = {reason:String}')
  if (query.afterMs !== undefined) conditions.push(`received_at > fromUnixTimestamp64Milli({after:Int64}, 'UTC')`)
  const result = await client.query({
    query: `SELECT reject_id, project_id, toUnixTimestamp64Milli(received_at), reason, field, lane, import_job_id, uuid,
        event, distinct_id, body
      FROM rejected_events FINAL WHERE ${conditions.join(' AND ')}
      ORDER BY received_at DESC, reject_id LIMIT {rows:UInt32}`,
    query_params: { project: query.projectId, reason: query.reason, after: query.afterMs, rows: query.limit },
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  const rows = await result.json<RejectedRow>()
  return rows.map(
    ([rejectId, projectId, receivedAtMs, reason, field, lane, importJobId, uuid, event, distinctId, body]) => ({
      rejectId,
      projectId,
      receivedAtMs: Number(receivedAtMs),
      reason,
      field,
      lane,
      importJobId,
      uuid,
      event,
      distinctId,
      body,
    }),
  )
}

type RejectedRow = [
  ...[rejectId: string, projectId: number, receivedAtMs: string | number, reason: string, field: string, lane: Lane],
  ...[importJobId: number, uuid: string, event: string, distinctId: string, body: string],
]
