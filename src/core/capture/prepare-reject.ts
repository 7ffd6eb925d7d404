// Turns a stored reject into log records again. The result depends on the reject alone: generated ids derive from the
// reject's id, times from its arrival. A second replay therefore stores the same events, and they count once.

import { hash } from 'node:crypto'
import type { CapturedEvent, Lane, RejectSource } from '../events/captured-event.ts'
import type { RandomUint32 } from './event-uuid.ts'
import type { IncomingEvent, IncomingRequest, IncomingV1Request } from './incoming-event.ts'
import { type OutcomeTable, TableWriter } from './outcome-table.ts'
import { okCode } from './outcomes.ts'
import { addEventRow, prepareEvents, prepareV1Events } from './prepare-events.ts'
import { parseZonedTimestampText } from './timestamp-text.ts'

/** What is known of a reject besides its body. */
export interface StoredReject {
  readonly rejectId: string
  readonly lane: Lane
  readonly importJobId: number
  readonly receivedAtMs: number
  readonly source: RejectSource
}

export interface ReplayTarget {
  readonly token: string
  /** The time of the replay: events count as accepted at this time. */
  readonly capturedAtMs: number
  readonly rerouteOlderThanMs: number | null
}

/** Prepares a whole request or one item. The rules of names, ids and times apply as at the time when the reject arrived. */
export function prepareRejectedRequest(
  request: IncomingRequest,
  { rejectId, importJobId, receivedAtMs, source }: StoredReject,
  { capturedAtMs, rerouteOlderThanMs }: ReplayTarget,
): OutcomeTable {
  const random = createRejectRandom(rejectId)
  const received = { receivedAtMs, capturedAtMs, ip: source.ip, rerouteOlderThanMs }
  return prepareEvents(request, { ...received, random, ...(importJobId > 0 && { importJobId }) })
}

/** `prepareRejectedRequest` for v1, which generates no ids: every event was sent with a uuid. */
export function prepareRejectedV1Request(
  request: IncomingV1Request,
  { importJobId, receivedAtMs, source }: StoredReject,
  { capturedAtMs, rerouteOlderThanMs }: ReplayTarget,
): OutcomeTable {
  const received = { receivedAtMs, capturedAtMs, ip: source.ip, rerouteOlderThanMs }
  return prepareV1Events(request, { ...received, ...(importJobId > 0 && { importJobId }) })
}

/**
 * Prepares an event that was accepted before it was rejected. No rule is applied again.
 * @returns null when the item was not written by this service.
 */
export function prepareRejectedEvent(
  item: IncomingEvent,
  reject: StoredReject,
  target: ReplayTarget,
): OutcomeTable | null {
  const { lane, importJobId, receivedAtMs, source } = reject
  const timestampMs = item.timestamp === null ? null : parseZonedTimestampText(item.timestamp)
  if (timestampMs === null || item.uuid === null || item.distinctId === null || item.name === '') return null
  const event: CapturedEvent = {
    projectId: 0,
    token: target.token,
    lane,
    historicalMigration: importJobId > 0,
    importJobId,
    protocol: source.protocol,
    personProcessingForcedOff: source.personProcessingForcedOff,
    notes: 0,
    receivedAtMs,
    capturedAtMs: target.capturedAtMs,
    timestampMs,
    sentAtMs: source.sentAtMs,
    uuid: item.uuid,
    name: item.name,
    distinctId: item.distinctId,
    ip: source.ip,
    visitor: null,
    propertiesJson: item.propertiesJson,
    setJson: item.setJson,
    setOnceJson: item.setOnceJson,
  }
  const table = new TableWriter(1)
  const { isCookieless } = item
  addEventRow(table, 0, event, okCode, { isUuidMade: false, isCookieless, isImport: event.historicalMigration })
  return table.finish()
}

/** Creates a source of numbers that repeats the same numbers each time it is created for a reject. */
function createRejectRandom(rejectId: string): RandomUint32 {
  let drawCount = 0
  return () => Number.parseInt(hash('sha1', `${rejectId}:${drawCount++}`, 'hex').slice(0, 8), 16)
}
