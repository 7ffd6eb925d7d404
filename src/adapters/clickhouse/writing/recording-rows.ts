// Writes a recording as a RowBinary row: the columns of the INSERT and the bytes of each.

import { isStorableTime } from '#core/events/storable-time.ts'
import type { StoredRecording } from '#core/events/stored-event.ts'
import type { RowWritten } from './event-rows.ts'
import type { RowBinaryWriter } from './row-binary.ts'

export const recordingColumns =
  'project_id, uuid, session_id, window_id, distinct_id, snapshot_source, lib, item_count, items_bytes, timestamp, ' +
  'received_at, row_version, items, erasures_before'

/** @param insertedAtMs epoch ms, not below that of an earlier call: a later copy wins. */
export function writeRecordingRow(
  to: RowBinaryWriter,
  recording: StoredRecording,
  insertedAtMs: number,
  erasures: number,
): RowWritten {
  if (!isStorableTime(recording.timestampMs)) return { refused: 'timestamp is outside the years 1900 to 2299' }
  if (!isStorableTime(recording.receivedAtMs)) return { refused: 'received_at is outside the years 1900 to 2299' }
  to.uint32(recording.projectId)
  if (!to.uuid(recording.uuid)) return { refused: 'uuid is not a UUID' }
  to.text(recording.sessionId)
  to.text(recording.windowId)
  to.text(recording.distinctId)
  to.text(recording.snapshotSource)
  to.text(recording.lib)
  to.uint32(recording.itemCount)
  to.int64(recording.itemsBytes)
  to.int64(recording.timestampMs)
  to.int64(recording.receivedAtMs)
  to.int64(insertedAtMs)
  to.byteString(recording.items)
  to.uint32(erasures)
  return 'written'
}
