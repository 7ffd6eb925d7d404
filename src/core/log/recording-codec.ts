// Encodes and decodes the record of a recording request (`record-layout.ts`). Its run has no other records, because a
// recording may be larger than hundreds of events. Its head has these texts: token, uuid, session id, distinct id, window
// id, snapshot source, library.

import { type CapturedRecording, lanes } from '../events/captured-event.ts'
import type { EncodedRecords } from './record-codec.ts'
import { field, headerBytes, kindRecording, recordVersion } from './record-layout.ts'

const recordingLane = lanes.indexOf('replay')

/**
 * Encodes a run of one record in a separate buffer, without the checksum (`addRecordChecksums`).
 * @throws RangeError if the project id or the count is not an unsigned 32-bit integer.
 */
export function encodeRecording(recording: CapturedRecording): EncodedRecords {
  const { token, uuid, sessionId, distinctId, windowId, snapshotSource, lib, items } = recording
  const head = token + uuid + sessionId + distinctId + windowId + snapshotSource + lib
  const headSize = Buffer.byteLength(head, 'utf8')
  const bytes = new Uint8Array(headerBytes + headSize + items.length)
  const view = new DataView(bytes.buffer)
  view.setUint32(field.size, bytes.length, true)
  view.setUint8(field.version, recordVersion)
  view.setUint8(field.kind, kindRecording)
  view.setUint8(field.lane, recordingLane)
  setUint32(view, field.projectId, recording.projectId)
  setUint32(view, field.itemCount, recording.itemCount)
  view.setUint32(field.tokenLength, token.length, true)
  view.setUint32(field.uuidLength, uuid.length, true)
  view.setUint32(field.nameLength, sessionId.length, true)
  view.setUint32(field.distinctIdLength, distinctId.length, true)
  view.setUint32(field.ipLength, windowId.length, true)
  view.setUint32(field.fieldLength, snapshotSource.length, true)
  view.setUint32(field.headBytes, headSize, true)
  view.setUint32(field.bodyBytes, items.length, true)
  view.setFloat64(field.receivedAtMs, recording.receivedAtMs, true)
  view.setFloat64(field.capturedAtMs, recording.capturedAtMs, true)
  view.setFloat64(field.timestampMs, recording.timestampMs, true)
  view.setFloat64(field.itemsBytes, recording.itemsBytes, true)
  Buffer.from(bytes.buffer).write(head, headerBytes, 'utf8')
  bytes.set(items, headerBytes + headSize)
  return { bytes, recordCount: 1 }
}

/**
 * @param items not copied, since it may be megabytes.
 * @returns undefined if the lengths in the record are inconsistent.
 */
export function decodeRecording(
  view: DataView,
  start: number,
  head: string,
  items: Uint8Array,
): CapturedRecording | undefined {
  const tokenEnd = view.getUint32(start + field.tokenLength, true)
  const uuidEnd = tokenEnd + view.getUint32(start + field.uuidLength, true)
  const sessionIdEnd = uuidEnd + view.getUint32(start + field.nameLength, true)
  const distinctIdEnd = sessionIdEnd + view.getUint32(start + field.distinctIdLength, true)
  const windowIdEnd = distinctIdEnd + view.getUint32(start + field.ipLength, true)
  const sourceEnd = windowIdEnd + view.getUint32(start + field.fieldLength, true)
  const snapshotSource = head.slice(windowIdEnd, sourceEnd)
  if (sourceEnd > head.length || (snapshotSource !== 'web' && snapshotSource !== 'mobile')) return undefined
  if (view.getUint32(start + field.bodyBytes, true) !== items.length) return undefined
  return {
    projectId: view.getUint32(start + field.projectId, true),
    token: head.slice(0, tokenEnd),
    receivedAtMs: view.getFloat64(start + field.receivedAtMs, true),
    capturedAtMs: view.getFloat64(start + field.capturedAtMs, true),
    timestampMs: view.getFloat64(start + field.timestampMs, true),
    uuid: head.slice(tokenEnd, uuidEnd),
    sessionId: head.slice(uuidEnd, sessionIdEnd),
    windowId: head.slice(distinctIdEnd, windowIdEnd),
    distinctId: head.slice(sessionIdEnd, distinctIdEnd),
    snapshotSource,
    lib: head.slice(sourceEnd),
    itemCount: view.getUint32(start + field.itemCount, true),
    itemsBytes: view.getFloat64(start + field.itemsBytes, true),
    items,
  }
}

function setUint32(view: DataView, at: number, value: number): void {
  if (value >>> 0 !== value) throw new RangeError(`${value} is not an integer of 32 bits`)
  view.setUint32(at, value, true)
}
