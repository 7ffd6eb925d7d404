// Lists recordings, and reads one with its items. Items are only ever read for a single row.

import type { RecordingCursor, RecordingQuery, RecordingView } from '#ports/events/recording-store.ts'
import { createIncompleteAnswerError, readRowCount } from '../connection/checked-answers.ts'
import { type ClickHouseClient, readRows } from '../connection/clickhouse-clients.ts'
import { timeParamSql } from '../parameters/time-param.ts'

const viewColumns = `project_id, uuid, session_id, window_id, distinct_id, snapshot_source, lib, item_count, items_bytes,
  toUnixTimestamp64Milli(timestamp), toUnixTimestamp64Milli(received_at)`

export async function listRecordings(
  client: ClickHouseClient,
  query: RecordingQuery,
  signal: AbortSignal,
): Promise<{ recordings: RecordingView[]; next: RecordingCursor | null }> {
  const conditions = ['project_id = {project:UInt32}']
  if (query.sessionId !== undefined) conditions.push('session_id = {session:String}')
  if (query.distinctId !== undefined) conditions.push('distinct_id = {id:String}')
  if (query.afterMs !== undefined) conditions.push(`timestamp > ${timeParamSql('after')}`)
  if (query.beforeMs !== undefined) conditions.push(`timestamp < ${timeParamSql('before')}`)
  if (query.after !== undefined) conditions.push(`(timestamp, uuid) < (${timeParamSql('last')}, {last_uuid:UUID})`)
  const found = await readRows<RecordingRow>(client, signal, {
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
  })
  const rows = found.map(toRecordingView)
  const recordings = rows.slice(0, query.limit)
  const last = recordings.at(-1)
  const hasMore = rows.length > query.limit && last !== undefined
  return { recordings, next: hasMore ? { timestampMs: last.timestampMs, uuid: last.uuid } : null }
}

/** No client should use a uuid in two sessions; if it happens, the latest recording is returned. */
export async function findRecording(
  client: ClickHouseClient,
  projectId: number,
  uuid: string,
  signal: AbortSignal,
): Promise<{ recording: RecordingView; items: Uint8Array | null } | null> {
  // The inner query reads all rows of the project, so it reads only narrow columns.
  const [row] = await readRows<RecordingRow>(client, signal, {
    query: `SELECT ${viewColumns} FROM replay_messages FINAL
      WHERE project_id = {project:UInt32} AND session_id IN (
        SELECT session_id FROM replay_messages WHERE project_id = {project:UInt32} AND uuid = {uuid:UUID} LIMIT 1000
      ) AND uuid = {uuid:UUID} ORDER BY timestamp DESC LIMIT 1`,
    query_params: { project: projectId, uuid },
  })
  if (row === undefined) return null
  const recording = toRecordingView(row)
  const items = await readItems(client, recording, signal)
  return { recording, items: items.length === 0 ? null : items }
}

/** Reads raw bytes, chunk by chunk: parsing a text of many megabytes would block the event loop. */
async function readItems(client: ClickHouseClient, recording: RecordingView, signal: AbortSignal): Promise<Uint8Array> {
  const { stream, response_headers: headers } = await client.exec({
    query: `SELECT items FROM replay_messages FINAL
      WHERE project_id = {project:UInt32} AND session_id = {session:String} AND uuid = {uuid:UUID} FORMAT RawBLOB`,
    query_params: { project: recording.projectId, session: recording.sessionId, uuid: recording.uuid },
    abort_signal: signal,
  })
  const pieces: Buffer[] = []
  for await (const piece of stream) pieces.push(piece as Buffer)
  const items = Buffer.concat(pieces)
  // If the server reports no row either, the recording has expired since it was found. Truncated items are detected when
  // unpacked.
  if (items.length === 0 && (readRowCount(headers) ?? 0) > 0)
    throw createIncompleteAnswerError('a recording came without its items')
  return items
}

type RecordingRow = [
  ...[projectId: number, uuid: string, sessionId: string, windowId: string, distinctId: string],
  ...[snapshotSource: 'mobile' | 'web', lib: string, itemCount: number, itemsBytes: string | number],
  ...[timestampMs: string | number, receivedAtMs: string | number],
]

function toRecordingView(row: RecordingRow): RecordingView {
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
