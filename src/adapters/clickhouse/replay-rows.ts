// One replay as a RowBinary row: the columns of the INSERT and the bytes under them.

import type { StoredReplay } from '#core/events/stored-event.ts'
import { isStorableTime, type RowWritten } from './event-rows.ts'
import type { RowBinaryWriter } from './row-binary.ts'

export const replayColumns =
  'project_id, uuid, session_id, window_id, distinct_id, snapshot_source, lib, item_count, items_bytes, timestamp, ' +
  'received_at, row_version, items'

/** @param insertedAtMs epoch ms, not below that of an earlier call: a later copy wins. */
export function writeReplayRow(to: RowBinaryWriter, replay: StoredReplay, insertedAtMs: number): RowWritten {
  const start = to.byteLength
  if (!isStorableTime(replay.timestampMs)) return { refused: 'timestamp is outside the years 1900 to 2299' }
  if (!isStorableTime(replay.receivedAtMs)) return { refused: 'received_at is outside the years 1900 to 2299' }
  to.uint32(replay.projectId)
  if (!to.uuid(replay.uuid)) {
    to.truncate(start)
    return { refused: 'uuid is not a UUID' }
  }
  to.text(replay.sessionId)
  to.text(replay.windowId)
  to.text(replay.distinctId)
  to.text(replay.snapshotSource)
  to.text(replay.lib)
  to.uint32(replay.itemCount)
  to.int64(replay.itemsBytes)
  to.int64(replay.timestampMs)
  to.int64(replay.receivedAtMs)
  to.int64(insertedAtMs)
  to.byteString(replay.items)
  return 'written'
}
