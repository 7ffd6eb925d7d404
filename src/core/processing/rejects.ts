// Records that never become an event, as rows of the reject store: what arrived stays findable. Ids follow from the
// record's place in the log, so that a repeated chunk replaces its own rejects.

import { cutRejectBody, keptBody, rejectBodyBytesMax } from '../capture/reject-body.ts'
import type { CapturedEvent, CapturedReject, CapturedReplay, LogLane, LogRecord } from '../events/captured-event.ts'
import { withoutAddress } from '../events/reject-source.ts'
import type { RejectedEvent } from '../events/stored-event.ts'
import { rejectUuid } from '../persons/person-uuid.ts'

export const rejectReasons = [
  'log_record_damaged',
  'processing_failed',
  'row_refused',
  'message_size_too_large',
] as const
export type RejectReason = (typeof rejectReasons)[number]

/**
 * An accepted event that was not stored: its body is the whole event, so that it can be replayed.
 * @param field what was wrong, for people.
 */
export function rejectOfEvent(
  offset: number,
  event: CapturedEvent,
  reason: RejectReason,
  field: string,
): RejectedEvent {
  const { protocol, ip, sentAtMs, personProcessingForcedOff } = event
  const kept = keptBody(eventText(event), {
    kind: 'event',
    protocol,
    engage: false,
    ip,
    sentAtMs,
    personProcessingForcedOff,
  })
  return {
    rejectId: rejectUuid(event.lane, offset, event.receivedAtMs),
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

/** As clients send an event, in its own literals; what may be long comes last. */
function eventText({
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

/** Without the address it came from, in projects that want none kept. */
export function anonymized(reject: RejectedEvent, anonymousProjectIds: ReadonlySet<number>): RejectedEvent {
  return anonymousProjectIds.has(reject.projectId) ? { ...reject, source: withoutAddress(reject.source) } : reject
}

/** Its snapshots are not kept, only what they were. */
export function rejectOfReplay(
  offset: number,
  replay: CapturedReplay,
  reason: RejectReason,
  field: string,
): RejectedEvent {
  const { sessionId, windowId, itemCount, itemsBytes } = replay
  return {
    rejectId: rejectUuid('main', offset, replay.receivedAtMs),
    projectId: replay.projectId,
    reason,
    field,
    lane: 'replay',
    importJobId: 0,
    uuid: replay.uuid,
    event: '$snapshot',
    distinctId: replay.distinctId,
    receivedAtMs: replay.receivedAtMs,
    body: JSON.stringify({ session_id: sessionId, window_id: windowId, items: itemCount, bytes: itemsBytes }),
    source: null,
  }
}

export function rejectOfReject(offset: number, reject: CapturedReject): RejectedEvent {
  return {
    rejectId: rejectUuid(reject.lane, offset, reject.receivedAtMs),
    projectId: reject.projectId,
    reason: reject.reason,
    field: reject.field,
    lane: reject.lane,
    importJobId: reject.importJobId,
    uuid: reject.uuid,
    event: reject.name,
    distinctId: reject.distinctId,
    receivedAtMs: reject.receivedAtMs,
    body: cutRejectBody(reject.body),
    source: reject.source ?? null,
  }
}

/** A damaged record names no project. It counts as received when it was appended, which is at most seconds later. */
export function rejectOfDamage(
  offset: number,
  lane: LogLane,
  { body, appendedAtMs }: Extract<LogRecord, { readonly kind: 'damaged' }>,
): RejectedEvent {
  return {
    rejectId: rejectUuid(lane, offset, 0),
    projectId: 0,
    reason: 'log_record_damaged' satisfies RejectReason,
    field: '',
    lane,
    importJobId: 0,
    uuid: '',
    event: '',
    distinctId: '',
    receivedAtMs: appendedAtMs,
    body: new TextDecoder().decode(body.subarray(0, rejectBodyBytesMax)),
    source: null,
  }
}
