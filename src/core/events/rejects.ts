// Records that never become an event, as rows of the reject store: what arrived stays findable. Ids follow from the
// record's place in the log, so that a repeated chunk replaces its own rejects.

import { rejectUuid } from '../persons/person-uuid.ts'
import type { CapturedEvent, CapturedReject, CapturedReplay, LogLane } from './captured-event.ts'
import type { RejectedEvent } from './stored-event.ts'

/** Largest body that is kept. Source: ours. */
export const rejectBodyBytesMax = 65_536

export const rejectReasons = [
  'log_record_damaged',
  'processing_failed',
  'row_refused',
  'message_size_too_large',
] as const
export type RejectReason = (typeof rejectReasons)[number]

/** @param field what was wrong, for people. */
export function rejectOfEvent(
  offset: number,
  event: CapturedEvent,
  reason: RejectReason,
  field: string,
): RejectedEvent {
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
    body: cutBody(event.propertiesJson),
  }
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
    body: cutBody(reject.body),
  }
}

/** A damaged record names no project and no time. */
export function rejectOfDamage(offset: number, lane: LogLane, body: Uint8Array): RejectedEvent {
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
    receivedAtMs: 0,
    body: new TextDecoder().decode(body.subarray(0, rejectBodyBytesMax)),
  }
}

function cutBody(body: string): string {
  if (body.length * 3 <= rejectBodyBytesMax) return body
  const bytes = Buffer.from(body)
  return bytes.length <= rejectBodyBytesMax ? body : bytes.toString('utf8', 0, rejectBodyBytesMax)
}
