// Lists events that were accepted but could not be stored. It takes two steps, because the body of an event may have 64
// KiB: find the page by narrow columns, then read as many of its rows as fit an answer.

import type { Lane } from '#core/events/captured-event.ts'
import { decodeRejectSource } from '#core/events/reject-source.ts'
import type { RejectedCursor, RejectedFilter, RejectedQuery, RejectedView } from '#ports/events/reject-store.ts'
import { type ClickHouseClient, readRows } from '../connection/clickhouse-clients.ts'
import { timeParamSql } from '../parameters/time-param.ts'
import { readRowsInSlices } from './rows-in-slices.ts'

/** The most bytes of bodies on one page; only a single first body may exceed this. */
const pageBytesMax = 8 * 1024 * 1024

interface Place {
  readonly receivedAtMs: number
  readonly rejectId: string
}

export async function listRejectedEvents(
  client: ClickHouseClient,
  query: RejectedQuery,
  signal: AbortSignal,
): Promise<{ rejected: RejectedView[]; next: RejectedCursor | null }> {
  const places = await findPlaces(client, query, signal)
  const page = places.slice(0, query.limit)
  if (page.length === 0) return { rejected: [], next: null }
  const rows = await readRejects(client, query, page, signal)
  const replayedTimes = await findReplayedTimes(client, query.projectId, page, signal)
  const rejected = rows.map(row => toRejectedView(row, replayedTimes))
  const last = rejected.at(-1)
  const hasMore = last !== undefined && (rejected.length < page.length || places.length > page.length)
  return { rejected, next: hasMore ? { receivedAtMs: last.receivedAtMs, rejectId: last.rejectId } : null }
}

export async function countRejectedEvents(
  client: ClickHouseClient,
  filter: RejectedFilter,
  signal: AbortSignal,
): Promise<number> {
  const { conditions, params } = buildConditions(filter)
  const [row] = await readRows<[string | number]>(client, signal, {
    query: `SELECT count() FROM rejected_events FINAL WHERE ${conditions.join(' AND ')}`,
    query_params: params,
  })
  return Number(row?.[0] ?? 0)
}

/** Finds the rows of a page, and one more row if there is any, which shows that another page follows. */
async function findPlaces(client: ClickHouseClient, query: RejectedQuery, signal: AbortSignal): Promise<Place[]> {
  const { conditions, params } = buildConditions(query)
  const order = query.oldestFirst === true ? 'ASC' : 'DESC'
  const rows = await readRows<[receivedAtMs: string | number, rejectId: string]>(client, signal, {
    query: `SELECT toUnixTimestamp64Milli(received_at), reject_id FROM rejected_events FINAL
      WHERE ${conditions.join(' AND ')} ORDER BY received_at ${order}, reject_id ${order} LIMIT {rows:UInt32}`,
    query_params: { ...params, rows: query.limit + 1 },
  })
  return rows.map(([receivedAtMs, rejectId]) => ({ receivedAtMs: Number(receivedAtMs), rejectId }))
}

async function readRejects(
  client: ClickHouseClient,
  { projectId, oldestFirst }: RejectedQuery,
  page: readonly Place[],
  signal: AbortSignal,
): Promise<RejectedRow[]> {
  const times = page.map(({ receivedAtMs }) => receivedAtMs)
  const order = oldestFirst === true ? 'ASC' : 'DESC'
  const orderBy = `ORDER BY received_at ${order}, reject_id ${order}`
  const result = await client.query({
    query: `SELECT reject_id, project_id, toUnixTimestamp64Milli(received_at), reason, field, lane, import_job_id, uuid,
        event, distinct_id, body, source
      FROM (
        SELECT *, sum(length(body)) OVER (${orderBy} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS bytes_so_far
        FROM rejected_events FINAL
        WHERE project_id = {project:UInt32} AND reject_id IN {ids:Array(String)}
          AND received_at BETWEEN ${timeParamSql('from')} AND ${timeParamSql('to')}
      ) WHERE bytes_so_far - length(body) < {bytes:UInt64} ${orderBy}`,
    query_params: {
      project: projectId,
      ids: page.map(({ rejectId }) => rejectId),
      from: Math.min(...times),
      to: Math.max(...times),
      bytes: pageBytesMax,
    },
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  return readRowsInSlices<RejectedRow>(result)
}

async function findReplayedTimes(
  client: ClickHouseClient,
  projectId: number,
  page: readonly Place[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const rows = await readRows<[rejectId: string, replayedAtMs: string | number]>(client, signal, {
    query: `SELECT reject_id, toUnixTimestamp64Milli(max(replayed_at)) FROM replayed_rejects
      WHERE project_id = {project:UInt32} AND reject_id IN {ids:Array(String)} GROUP BY reject_id`,
    query_params: { project: projectId, ids: page.map(({ rejectId }) => rejectId) },
  })
  return new Map(rows.map(([rejectId, replayedAtMs]) => [rejectId, Number(replayedAtMs)]))
}

function buildConditions(filter: RejectedFilter): { conditions: string[]; params: Record<string, unknown> } {
  const conditions = ['project_id = {project:UInt32}']
  const params: Record<string, unknown> = { project: filter.projectId }
  const addCondition = (name: string, value: unknown, condition: string) => {
    if (value === undefined) return
    params[name] = value
    conditions.push(condition)
  }
  addCondition('ids', filter.ids, 'reject_id IN {ids:Array(String)}')
  addCondition('reason', filter.reason, 'reason = {reason:String}')
  // The stored name of an item's field begins with the item's index, so the filter also matches the end of a name.
  addCondition('field', filter.field, `(field = {field:String} OR endsWith(field, concat('.', {field:String})))`)
  addCondition('event', filter.event, 'event = {event:String}')
  addCondition('distinct', filter.distinctId, 'distinct_id = {distinct:String}')
  addCondition('uuid', filter.uuid, 'uuid = {uuid:String}')
  addCondition('lane', filter.lane, 'lane = {lane:String}')
  addCondition('after', filter.afterMs, `received_at > ${timeParamSql('after')}`)
  addCondition('before', filter.beforeMs, `received_at < ${timeParamSql('before')}`)
  addCondition('search', filter.search, 'positionCaseInsensitiveUTF8(body, {search:String}) > 0')
  if (filter.replayed !== undefined) {
    const replayed = 'SELECT reject_id FROM replayed_rejects WHERE project_id = {project:UInt32}'
    conditions.push(`reject_id ${filter.replayed ? 'IN' : 'NOT IN'} (${replayed})`)
  }
  if (filter.beyond !== undefined) {
    params.last = filter.beyond.receivedAtMs
    params.last_id = filter.beyond.rejectId
    const operator = filter.oldestFirst === true ? '>' : '<'
    conditions.push(`(received_at, reject_id) ${operator} (${timeParamSql('last')}, {last_id:String})`)
  }
  return { conditions, params }
}

type RejectedRow = [
  ...[rejectId: string, projectId: number, receivedAtMs: string | number, reason: string, field: string, lane: Lane],
  ...[importJobId: number, uuid: string, event: string, distinctId: string, body: string, source: string],
]

function toRejectedView(row: RejectedRow, replayedTimes: ReadonlyMap<string, number>): RejectedView {
  const [rejectId, projectId, receivedAtMs, reason, field, lane, importJobId, uuid, event, distinctId, body, source] =
    row
  return {
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
    source: decodeRejectSource(source),
    replayedAtMs: replayedTimes.get(rejectId) ?? null,
  }
}
