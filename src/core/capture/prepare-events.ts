// All events of one request become encoded log records, or the request is refused for one of them. Pure, so that it
// runs on the event loop for small requests and in a decode thread for large ones (`wire/capture/decode-capture.ts`).

import {
  type CapturedEvent,
  type CapturedReject,
  edgeNote,
  importWithoutJob,
  type Lane,
  logLaneOf,
} from '../events/captured-event.ts'
import { findDrop } from '../events/event-drops.ts'
import type { JsonObject } from '../json.ts'
import { type EncodedRecords, RecordEncoder } from '../log/record-codec.ts'
import { noIngestionSettings } from '../project.ts'
import type { RandomUint32 } from './event-uuid.ts'
import type { IncomingEvent, IncomingRequest, ItemFault, RefusedItem } from './incoming-event.ts'
import type { ItemVerdict } from './item-verdicts.ts'
import { type EventContext, type EventRefusal, normalizeEvent, refusedFields } from './normalize-event.ts'
import { keptBody, keptItem } from './reject-body.ts'

export interface PreparedEvents {
  /** Records of the two logs; null where there is none. */
  readonly main: EncodedRecords | null
  readonly historical: EncodedRecords | null
  readonly acceptedByLane: Partial<Record<Lane, number>>
  /** Events left out of an otherwise accepted request, at most `rejectCountMax` of them; the others are counted. */
  readonly rejects: readonly CapturedReject[]
  readonly rejectedCount: number
  /** The same by code; when absent, all are `timestamp_invalid`. */
  readonly rejectedByReason?: Readonly<Record<string, number>>
}

/** What is known of a request besides its text. */
export interface ReceivedRequest {
  readonly receivedAtMs: number
  /** When its events are accepted; when absent, as they are received. */
  readonly capturedAtMs?: number
  /** Address of the connection, '' when unknown. */
  readonly ip: string
  readonly random: RandomUint32
  /** Live events of the main lane at least this old become imports; none do when absent. */
  readonly rerouteOlderThanMs?: number | null
}

export interface RefusedRequest {
  readonly refusal: EventRefusal
  /** Place of the event in the request. */
  readonly index: number
  /** The field at fault with its place, such as `batch.3.distinct_id`. */
  readonly field: string
  /** The event at fault. */
  readonly item: RefusedItem
}

/** More rejects than a project may have in a second need not be carried. */
export const rejectCountMax = 100

/**
 * Normalises and encodes in order. The first bad event refuses the whole request, except a time that cannot be read in
 * a historical migration: that event alone is left out and becomes a reject. Of an itemised request that goes for every
 * bad event, and its verdicts are complete afterwards.
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
  const { itemised } = request
  const rejects =
    itemised === undefined ? [] : itemised.faults.map(fault => rejectOf(fault, itemised.sourceAt(fault.place), context))
  let rejectedCount = 0
  for (let index = 0; index < request.events.length; index++) {
    const item = request.events[index]!
    const outcome = normalizeEvent(item, context)
    if (outcome.ok) {
      const { lane } = outcome.value
      const logLane = logLaneOf(lane)
      acceptedByLane[lane] = (acceptedByLane[lane] ?? 0) + 1
      encoders[logLane].addEvent(outcome.value)
      if (itemised !== undefined) {
        const verdict = acceptedVerdict(itemised.places[index]!, item, outcome.value)
        if (logLane === 'main') itemised.verdicts.addInMain(verdict)
        else itemised.verdicts.add(verdict)
      }
    } else if (outcome.error === 'timestamp_invalid' || itemised !== undefined) {
      rejectedCount++
      if (rejects.length < rejectCountMax)
        rejects.push(rejectOf(rejectedItem(item, outcome.error), request.sourceJson(index), context))
      itemised?.verdicts.add(refusedVerdict(itemised.places[index]!, item, outcome.error))
    } else {
      const field = request.placeOf(index) + refusedFields[outcome.error]
      return { refusal: outcome.error, index, field, item: readItem(item) }
    }
  }
  return {
    main: finishedRecords(encoders.main),
    historical: finishedRecords(encoders.historical),
    acceptedByLane,
    rejects,
    rejectedCount: itemised?.verdicts.rejectedCount ?? rejectedCount,
    ...(itemised === undefined ? {} : { rejectedByReason: itemised.verdicts.rejectedByReason }),
  }
}

/** What follows from the event alone; what its project or its person make of it later becomes a warning. */
function acceptedVerdict(index: number, sent: IncomingEvent, event: CapturedEvent): ItemVerdict {
  const of = { index, uuid: event.uuid, ...(sent.uuid === null && ({ isUuidMade: true } as const)), event: event.name }
  // Parsed once more, only for requests that ask for it: nothing else here looks into properties.
  const properties = JSON.parse(event.propertiesJson) as JsonObject
  const isPersonless = properties.$process_person_profile === false
  const drop = findDrop(event, properties, { ingestion: noIngestionSettings }, isPersonless)
  if (drop !== null) return { ...of, result: 'drop', reason: drop.reason, field: null }
  const { notes } = event
  if (notes === 0) return { ...of, result: 'ok', reason: null, field: null }
  if ((notes & edgeNote.timeUnreadable) !== 0)
    return { ...of, result: 'warning', reason: 'ignored_invalid_timestamp', field: 'timestamp' }
  if ((notes & edgeNote.distinctIdCut) !== 0)
    return { ...of, result: 'warning', reason: 'distinct_id_truncated', field: 'distinct_id' }
  return { ...of, result: 'warning', reason: 'event_name_truncated', field: 'event' }
}

function refusedVerdict(index: number, item: IncomingEvent, reason: EventRefusal): ItemVerdict {
  return { index, uuid: item.uuid, event: item.name, result: 'reject', reason, field: refusedFields[reason] }
}

function contextOf(request: IncomingRequest, projectId: number, received: ReceivedRequest): EventContext {
  const { token, historicalMigration } = request
  return {
    projectId,
    token,
    historicalMigration,
    importJobId: historicalMigration ? importWithoutJob : 0,
    receivedAtMs: received.receivedAtMs,
    capturedAtMs: received.capturedAtMs ?? received.receivedAtMs,
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

type RejectedItem = Omit<ItemFault, 'place'>

function rejectedItem(item: IncomingEvent, reason: EventRefusal): RejectedItem {
  return { reason, field: refusedFields[reason], ...readItem(item) }
}

/** As far as a reject tells of it. */
export function readItem({ uuid, name, distinctId }: IncomingEvent): RefusedItem {
  return { uuid: uuid ?? '', name, distinctId: distinctId ?? '' }
}

function rejectOf(item: RejectedItem, sourceJson: string, context: EventContext): CapturedReject {
  const { historicalMigration, receivedAtMs } = context
  const { text: body, source } = keptBody(sourceJson, {
    kind: 'item',
    protocol: 'v0',
    engage: false,
    ip: context.ip,
    sentAtMs: context.sentAtMs,
    personProcessingForcedOff: false,
  })
  return {
    projectId: context.projectId,
    token: context.token,
    lane: historicalMigration ? 'historical' : 'main',
    historicalMigration,
    importJobId: context.importJobId,
    receivedAtMs,
    capturedAtMs: context.capturedAtMs,
    reason: item.reason,
    field: item.field,
    ...keptItem(item),
    body,
    source,
  }
}
