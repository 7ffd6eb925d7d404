// Turns records that never become events into rows of the reject store, so that they can still be found. A reject's id
// derives from the record's place in the log, so that a chunk that is processed again replaces its own rejects.

import { rejectBodyBytesMax, toStoredRejectBody, truncateRejectBody } from '#core/capture/reject-body.ts'
import type { CapturedEvent, CapturedRecording, CapturedReject, LogRecord } from '#core/events/captured-event.ts'
import { defaultLaneOf, type RecordPlace, type Traffic } from '#core/events/log-stream.ts'
import { removeAddress } from '#core/events/reject-source.ts'
import type { RejectedEvent } from '#core/events/stored-event.ts'
import { uuidV5 } from '#core/events/uuid-v5.ts'

export const rejectReasons = [
  'log_record_damaged',
  'processing_failed',
  'row_refused',
  'message_size_too_large',
  'import_job_closed',
] as const
export type ProcessingRejectReason = (typeof rejectReasons)[number]

/**
 * The reject of an accepted event that was not stored. Its body is the whole event, so that it can be replayed.
 * @param field a readable description of the problem.
 */
export function createRejectFromEvent(
  place: RecordPlace,
  event: CapturedEvent,
  reason: ProcessingRejectReason,
  field: string,
): RejectedEvent {
  const { protocol, ip, sentAtMs, personProcessingForcedOff } = event
  const kept = toStoredRejectBody(formatEvent(event), {
    kind: 'event',
    protocol,
    engage: false,
    ip,
    sentAtMs,
    personProcessingForcedOff,
  })
  return {
    rejectId: deriveRejectUuid(place, event.receivedAtMs),
    projectId: event.projectId,
    reason,
    field,
    lane: event.lane,
    importJobId: event.importJobId,
    uuid: event.uuid,
    event: event.name,
    distinctId: event.distinctId,
    receivedAtMs: event.receivedAtMs,
    body: kept.text,
    source: kept.source,
  }
}

/**
 * The event as a client would send it, with the number literals that it was sent with. The longest part comes last, since
 * the body may be truncated.
 */
function formatEvent({
  name,
  uuid,
  distinctId,
  timestampMs,
  propertiesJson,
  setJson,
  setOnceJson,
}: CapturedEvent): string {
  const timestamp = new Date(timestampMs).toISOString()
  const head = JSON.stringify({ event: name, uuid, distinct_id: distinctId, timestamp }).slice(0, -1)
  const set = setJson === null ? '' : `,"$set":${setJson}`
  const setOnce = setOnceJson === null ? '' : `,"$set_once":${setOnceJson}`
  return `${head}${set}${setOnce},"properties":${propertiesJson}}`
}

/** Removes the sender's address in projects that keep no addresses. */
export function anonymizeReject(reject: RejectedEvent, anonymousProjectIds: ReadonlySet<number>): RejectedEvent {
  return anonymousProjectIds.has(reject.projectId) ? { ...reject, source: removeAddress(reject.source) } : reject
}

/** The reject of a recording, without its snapshots: only their session, window, count and size are kept. */
export function createRejectFromRecording(
  place: RecordPlace,
  recording: CapturedRecording,
  reason: ProcessingRejectReason,
  field: string,
): RejectedEvent {
  const { sessionId, windowId, itemCount, itemsBytes } = recording
  return {
    rejectId: deriveRejectUuid(place, recording.receivedAtMs),
    projectId: recording.projectId,
    reason,
    field,
    lane: 'replay',
    importJobId: 0,
    uuid: recording.uuid,
    event: '$snapshot',
    distinctId: recording.distinctId,
    receivedAtMs: recording.receivedAtMs,
    body: JSON.stringify({ session_id: sessionId, window_id: windowId, items: itemCount, bytes: itemsBytes }),
    source: null,
  }
}

export function createRejectFromLogRecord(place: RecordPlace, reject: CapturedReject): RejectedEvent {
  return {
    rejectId: deriveRejectUuid(place, reject.receivedAtMs),
    projectId: reject.projectId,
    reason: reject.reason,
    field: reject.field,
    lane: reject.lane,
    importJobId: reject.importJobId,
    uuid: reject.uuid,
    event: reject.name,
    distinctId: reject.distinctId,
    receivedAtMs: reject.receivedAtMs,
    body: truncateRejectBody(reject.body),
    source: reject.source ?? null,
  }
}

/**
 * The reject of a damaged record, which names no project. Its time of receipt is the time when it was appended to the log,
 * at most seconds after it was really received.
 */
export function createRejectFromDamage(
  place: RecordPlace,
  { logId, traffic }: { readonly logId: string; readonly traffic: Traffic },
  { body, appendedAtMs }: Extract<LogRecord, { readonly kind: 'damaged' }>,
): RejectedEvent {
  return {
    rejectId: deriveDamagedRecordUuid(logId, place),
    projectId: 0,
    reason: 'log_record_damaged' satisfies ProcessingRejectReason,
    field: '',
    lane: defaultLaneOf(traffic),
    importJobId: 0,
    uuid: '',
    event: '',
    distinctId: '',
    receivedAtMs: appendedAtMs,
    body: new TextDecoder().decode(body.subarray(0, rejectBodyBytesMax)),
    source: null,
  }
}

/** Source: ours. */
const rejectNamespace = Buffer.from('5d1c2a0e0b7e4f6c9a415e0d8f6b7c33', 'hex')

/** The id of a log record's reject, the same every time the record is processed. Source: ours. */
function deriveRejectUuid({ stream, offset }: RecordPlace, receivedAtMs: number): string {
  return uuidV5(rejectNamespace, `${stream}:${offset}:${receivedAtMs}`)
}

/**
 * The id for an unreadable record. No time can be read from the record, so the log's id distinguishes it from records of
 * other logs.
 */
function deriveDamagedRecordUuid(logId: string, { stream, offset }: RecordPlace): string {
  return uuidV5(rejectNamespace, `damaged:${logId}:${stream}:${offset}`)
}
