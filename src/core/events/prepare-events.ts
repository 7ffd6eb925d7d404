// All events of one request become encoded log records, or the request is refused for one of them. Pure, so that it
// runs on the event loop for small requests and in a decode thread for large ones (`wire/decode-capture.ts`).

import { type EncodedRecords, RecordEncoder } from '../log/record-codec.ts'
import { type CapturedReject, importWithoutJob, type Lane, logLaneOf } from './captured-event.ts'
import type { RandomUint32 } from './event-uuid.ts'
import type { IncomingEvent, IncomingRequest } from './incoming-event.ts'
import { type EventContext, type EventRefusal, normalizeEvent } from './normalize-event.ts'

export interface PreparedEvents {
  /** Records of the two logs; null where there is none. */
  readonly main: EncodedRecords | null
  readonly historical: EncodedRecords | null
  readonly acceptedByLane: Partial<Record<Lane, number>>
  /** Events left out of an otherwise accepted request, at most `rejectCountMax` of them; the others are counted. */
  readonly rejects: readonly CapturedReject[]
  readonly rejectedCount: number
  /** The same by code. Absent: all are `timestamp_invalid`. */
  readonly rejectedByReason?: Readonly<Record<string, number>>
}

/** What is known of a request besides its text. */
export interface ReceivedRequest {
  readonly receivedAtMs: number
  /** Address of the connection, '' when unknown. */
  readonly ip: string
  readonly random: RandomUint32
  /** Live events of the main lane at least this old become imports. Absent: none do. */
  readonly rerouteOlderThanMs?: number | null
}

export interface RefusedRequest {
  readonly refusal: EventRefusal
  /** Place of the event in the request. */
  readonly index: number
}

/** More rejects than a project may have in a second need not be carried. */
export const rejectCountMax = 100
export const rejectBodyBytesMax = 64 * 1024

/**
 * Normalises and encodes in order. The first bad event refuses the whole request, except a time that cannot be read in
 * a historical migration: that event alone is left out and becomes a reject.
 * Source: docs/wire/ingestion.md 1.7; docs/wire/import.md 3.6.
 */
export function prepareEvents(
  request: IncomingRequest,
  projectId: number,
  received: ReceivedRequest,
): PreparedEvents | RefusedRequest {
  const context = contextOf(request, projectId, received)
  const encoders = { main: new RecordEncoder(), historical: new RecordEncoder() }
  const acceptedByLane: Partial<Record<Lane, number>> = {}
  const rejects: CapturedReject[] = []
  let rejectedCount = 0
  for (let index = 0; index < request.events.length; index++) {
    const item = request.events[index]!
    const outcome = normalizeEvent(item, context)
    if (outcome.ok) {
      const { lane } = outcome.value
      acceptedByLane[lane] = (acceptedByLane[lane] ?? 0) + 1
      encoders[logLaneOf(lane)].addEvent(outcome.value)
    } else if (outcome.error === 'timestamp_invalid') {
      rejectedCount++
      if (rejectedCount <= rejectCountMax) rejects.push(timestampReject(item, request.sourceJson(index), context))
    } else {
      return { refusal: outcome.error, index }
    }
  }
  return {
    main: finishedRecords(encoders.main),
    historical: finishedRecords(encoders.historical),
    acceptedByLane,
    rejects,
    rejectedCount,
  }
}

function contextOf(request: IncomingRequest, projectId: number, received: ReceivedRequest): EventContext {
  const { token, historicalMigration } = request
  return {
    projectId,
    token,
    historicalMigration,
    importJobId: historicalMigration ? importWithoutJob : 0,
    receivedAtMs: received.receivedAtMs,
    capturedAtMs: received.receivedAtMs,
    rerouteOlderThanMs: received.rerouteOlderThanMs ?? null,
    // Times of an import are taken as written, so no send time takes effect.
    sentAtMs: historicalMigration ? null : request.sentAtMs,
    ip: received.ip,
    random: received.random,
  }
}

/** Null for an encoder that nothing was added to. */
export function finishedRecords(encoder: RecordEncoder): EncodedRecords | null {
  return encoder.recordCount === 0 ? null : encoder.finish()
}

function timestampReject(item: IncomingEvent, sourceJson: string, context: EventContext): CapturedReject {
  return {
    projectId: context.projectId,
    token: context.token,
    lane: 'historical',
    historicalMigration: true,
    importJobId: context.importJobId,
    receivedAtMs: context.receivedAtMs,
    capturedAtMs: context.receivedAtMs,
    reason: 'timestamp_invalid',
    field: 'timestamp',
    uuid: item.uuid ?? '',
    name: item.name.slice(0, 200),
    distinctId: (item.distinctId ?? '').slice(0, 200),
    body: cutRejectBody(sourceJson),
  }
}

/** A reject's body, cut to what the reject store keeps; a character that the cut would split goes. */
export function cutRejectBody(text: string): string {
  if (text.length * 3 <= rejectBodyBytesMax) return text
  const bytes = Buffer.from(text.slice(0, rejectBodyBytesMax), 'utf8')
  let end = Math.min(bytes.length, rejectBodyBytesMax)
  while (end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}
