// Lists of replays, and one with its items. Items are read by their one row only.

import type { ReplayCursor, ReplayQuery, ReplayView } from '#ports/event-store.ts'
import type { ClickHouseClient } from './clickhouse-clients.ts'

const viewColumns = `project_id, uuid, session_id, window_id, distinct_id, snapshot_source, lib, item_count, items_bytes,
  toUnixTimestamp64Milli(timestamp), toUnixTimestamp64Milli(received_at)`

const timeParam = (name: string) => `fromUnixTimestamp64Milli({${name}:Int64}, 'UTC')`

export async function listReplays(
  client: ClickHouseClient,
  query: ReplayQuery,
  signal: AbortSignal,
): Promise<{ replays: ReplayView[]; next: ReplayCursor | null }> {
  const conditions = ['project_id = {project:UInt32}']
  if (query.sessionId !== undefined) conditions.push('session_id = {session:String}')
  if (query.distinctId !== undefined) conditions.push('distinct_id = {id:String}')
  if (query.afterMs !== undefined) conditions.push(`timestamp > ${timeParam('after')}`)
  if (query.beforeMs !== undefined) conditions.push(`timestamp < ${timeParam('before')}`)
  if (query.after !== undefined) conditions.push(`(timestamp, uuid) < (${timeParam('last')}, {last_uuid:UUID})`)
  const result = await client.query({
    query: `SELECT ${viewColumns} FROM replay_messages FINAL WHERE ${conditions.join(' AND ')}
      ORDER BY timestamp DESC, uuid DESC LIMIT {rows:UInt32}`,
    query_params: {
      project: query.projectId,
      session: query.sessionId,
      id: query.distinctId,
      after: query.afterMs,
      before: query.beforeMs,
      last: query.after?.timestampMs,
      last_uuid: query.after?.uuid,
      rows: query.limit + 1,
    },
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  const rows = (await result.json<ReplayRow>()).map(viewOfRow)
  const replays = rows.slice(0, query.limit)
  const last = replays.at(-1)
  const hasMore = rows.length > query.limit && last !== undefined
  return { replays, next: hasMore ? { timestampMs: last.timestampMs, uuid: last.uuid } : null }
}

/** No client gives two sessions the same uuid; should it happen, the latest one is returned. */
export async function findReplay(
  client: ClickHouseClient,
  projectId: number,
  uuid: string,
  signal: AbortSignal,
): Promise<{ replay: ReplayView; items: Uint8Array | null } | null> {
  // The inner query reads narrow columns of the project.
  const result = await client.query({
    query: `SELECT ${viewColumns} FROM replay_messages FINAL
      WHERE project_id = {project:UInt32} AND session_id IN (
        SELECT session_id FROM replay_messages WHERE project_id = {project:UInt32} AND uuid = {uuid:UUID} LIMIT 1000
      ) AND uuid = {uuid:UUID} ORDER BY timestamp DESC LIMIT 1`,
    query_params: { project: projectId, uuid },
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  const [row] = await result.json<ReplayRow>()
  if (row === undefined) return null
  const replay = viewOfRow(row)
  const items = await readItems(client, replay, signal)
  return { replay, items: items.length === 0 ? null : items }
}

/** As raw bytes, piece by piece: as a text of many megabytes they would hold the event loop. */
async function readItems(client: ClickHouseClient, replay: ReplayView, signal: AbortSignal): Promise<Uint8Array> {
  const { stream } = await client.exec({
    query: `SELECT items FROM replay_messages FINAL
      WHERE project_id = {project:UInt32} AND session_id = {session:String} AND uuid = {uuid:UUID} FORMAT RawBLOB`,
    query_params: { project: replay.projectId, session: replay.sessionId, uuid: replay.uuid },
    abort_signal: signal,
  })
  const pieces: Buffer[] = []
  for await (const piece of stream) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

type ReplayRow = [
  ...[projectId: number, uuid: string, sessionId: string, windowId: string, distinctId: string],
  ...[snapshotSource: 'mobile' | 'web', lib: string, itemCount: number, itemsBytes: string | number],
  ...[timestampMs: string | number, receivedAtMs: string | number],
]

function viewOfRow(row: ReplayRow): ReplayView {
  const [projectId, uuid, sessionId, windowId, distinctId, snapshotSource, lib, itemCount, bytes, time, received] = row
  return {
    projectId,
    uuid,
    sessionId,
    windowId,
    distinctId,
    snapshotSource,
    lib,
    itemCount,
    itemsBytes: Number(bytes),
    timestampMs: Number(time),
    receivedAtMs: Number(received),
  }
}
