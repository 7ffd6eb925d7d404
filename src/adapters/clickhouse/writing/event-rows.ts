// Writes a stored event, override or reject as a RowBinary row. The columns of each INSERT and the code that writes their
// bytes are kept together. A value that its column cannot hold is refused here, before the engine sees it.

import { encodeRejectSource } from '#core/events/reject-source.ts'
import { isStorableTime } from '#core/events/storable-time.ts'
import type { PersonIdOverride, RejectedEvent, StoredEvent, StoredRecording } from '#core/events/stored-event.ts'
import type { ReplayedReject } from '#ports/events/reject-store.ts'
import { versionsPerErasure } from '../parameters/override-version.ts'
import type { RowBinaryWriter } from './row-binary.ts'

/** `written`, or why the row cannot be stored. */
export type RowWriteResult = 'written' | { readonly refused: string }

export const eventColumns =
  'project_id, uuid, event, distinct_id, timestamp, captured_at, charged_at, created_at, lane, ' +
  'historical_migration, import_job_id, import_partition, row_version, properties, flags, elements_chain, person_id, person_created_at, ' +
  'person_properties, person_mode, `$group_0`, `$group_1`, `$group_2`, `$group_3`, `$group_4`, `$session_id`, `$window_id`, flag_called, flag_response, erasures_before, ' +
  'log_stream, log_offset, sent_later_ms, linked_id'

/** 2^62 and 2^61, as the upper half of a 64-bit number. */
const liveVersionHighWord = 2 ** 30
const restoredVersionHighWord = 2 ** 29

/**
 * Writes one event's fields in the order of `eventColumns`. `row_version` = (live ? 2^62 : 0) + insertedAtMs: a live row
 * wins over an imported row, and a later copy over an earlier copy. A restored row has a lower version than every other row
 * of its kind (live 2^61 + insertedAtMs, imported 0): it has the person of today, so it counts only if the original row is
 * gone.
 * @param insertedAtMs epoch ms, at least the value of any earlier call.
 */
export function writeEventRow(
  to: RowBinaryWriter,
  event: StoredEvent,
  insertedAtMs: number,
  { isRestored = false, erasures = 0 }: { readonly isRestored?: boolean; readonly erasures?: number } = {},
): RowWriteResult {
  const refuse = (reason: string): RowWriteResult => ({ refused: reason })
  if (!isUint32(event.projectId)) return refuse('project_id is not a 32-bit number')
  if (!isUint32(event.importJobId)) return refuse('import_job_id is not a 32-bit number')
  if (!isStorableTime(event.timestampMs)) return refuse('timestamp is outside the years 1900 to 2299')
  if (!isStorableTime(event.capturedAtMs)) return refuse('captured_at is outside the years 1900 to 2299')
  if (!isStorableTime(event.chargedAtMs)) return refuse('charged_at is outside the years 1900 to 2299')
  if (!isStorableTime(event.personCreatedAtMs)) return refuse('person_created_at is outside the years 1900 to 2299')
  to.uint32(event.projectId)
  if (!to.uuid(event.uuid)) return refuse('uuid is not a UUID')
  to.text(event.event)
  to.text(event.distinctId)
  to.int64(event.timestampMs * 1000)
  to.int64(event.capturedAtMs)
  to.int64(event.chargedAtMs)
  to.int64(insertedAtMs)
  to.text(event.lane)
  to.uint8(event.historicalMigration ? 1 : 0)
  to.uint32(event.importJobId)
  to.uint32(event.importPartition ?? event.importJobId) // 0 live, 1 implicit jobs, else the job
  if (event.importJobId !== 0) to.int64(isRestored ? 0 : insertedAtMs)
  else to.int64(insertedAtMs, isRestored ? restoredVersionHighWord : liveVersionHighWord)
  to.text(event.propertiesJson)
  to.map(event.flags)
  to.text(event.elementsChain)
  if (!to.uuid(event.personId)) return refuse('person_id is not a UUID')
  to.int64(event.personCreatedAtMs)
  to.text(event.personPropertiesJson)
  to.text(event.personMode)
  for (let index = 0; index < 5; index++) to.text(event.groups[index]!)
  to.text(event.sessionId)
  to.text(event.windowId)
  to.text(event.flagCalled)
  to.text(event.flagResponse)
  to.uint32(erasures)
  to.text(event.logStream)
  to.int64(event.logOffset)
  to.int64(event.sentLaterMs ?? 0)
  to.text(event.linkedId)
  return 'written'
}

export const overrideColumns = 'project_id, distinct_id, person_id, version, stored_at'

export function writeOverrideRow(
  to: RowBinaryWriter,
  override: PersonIdOverride,
  insertedAtMs: number,
  erasures: number,
): RowWriteResult {
  to.uint32(override.projectId)
  to.text(override.distinctId)
  if (!to.uuid(override.personId)) return { refused: 'person_id is not a UUID' }
  to.int64(erasures * versionsPerErasure + override.version)
  to.int64(insertedAtMs)
  return 'written'
}

export const rejectedColumns =
  'reject_id, project_id, received_at, reason, field, lane, import_job_id, uuid, event, distinct_id, body, source, ' +
  'erasures_before'

export function writeRejectedRow(to: RowBinaryWriter, rejected: RejectedEvent, erasures: number): RowWriteResult {
  to.text(rejected.rejectId)
  to.uint32(rejected.projectId)
  to.int64(rejected.receivedAtMs)
  to.text(rejected.reason)
  to.text(rejected.field)
  to.text(rejected.lane)
  to.uint32(rejected.importJobId)
  to.text(rejected.uuid)
  to.text(rejected.event)
  to.text(rejected.distinctId)
  to.text(rejected.body)
  to.text(encodeRejectSource(rejected.source))
  to.uint32(erasures)
  return 'written'
}

export const replayedColumns = 'project_id, reject_id, received_at, replayed_at'

export function writeReplayedRow(to: RowBinaryWriter, replayed: ReplayedReject): RowWriteResult {
  to.uint32(replayed.projectId)
  to.text(replayed.rejectId)
  to.int64(replayed.receivedAtMs)
  to.int64(replayed.replayedAtMs)
  return 'written'
}

function isUint32(value: number): boolean {
  return value >>> 0 === value
}

export const recordingColumns =
  'project_id, uuid, session_id, window_id, distinct_id, snapshot_source, lib, item_count, items_bytes, timestamp, ' +
  'received_at, row_version, items, erasures_before'

/** @param insertedAtMs epoch ms, at least the value of any earlier call, so that a later copy wins. */
export function writeRecordingRow(
  to: RowBinaryWriter,
  recording: StoredRecording,
  insertedAtMs: number,
  erasures: number,
): RowWriteResult {
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
