// A stored reject becomes log records once more. Whatever can be decided from it alone comes out the same each time, so that
// a second replay stores the same events again, which count once: ids that are made come from the reject's own id, times
// from when it arrived.

import { hash } from 'node:crypto'
import type { CapturedEvent, Lane, RejectSource } from '../events/captured-event.ts'
import { logLaneOf } from '../events/captured-event.ts'
import { RecordEncoder } from '../log/record-codec.ts'
import type { RandomUint32 } from './event-uuid.ts'
import type { IncomingEvent, IncomingRequest } from './incoming-event.ts'
import type { IncomingV1Request } from './incoming-v1-event.ts'
import { finishedRecords, type PreparedEvents, prepareEvents, type RefusedRequest } from './prepare-events.ts'
import { prepareV1Events } from './prepare-v1-events.ts'
import { parseZonedTimestampText } from './timestamp-text.ts'

/** The reject, as far as its body does not say it. */
export interface StoredReject {
  readonly rejectId: string
  readonly lane: Lane
  readonly importJobId: number
  readonly receivedAtMs: number
  readonly source: RejectSource
}

export interface ReplayTarget {
  readonly projectId: number
  readonly token: string
  /** Now: events count as accepted at this time. */
  readonly capturedAtMs: number
  readonly rerouteOlderThanMs: number | null
}

/** A whole request or one item: the rules of names, ids and times are applied as of when it arrived. */
export function prepareRejectedRequest(
  request: IncomingRequest,
  { rejectId, receivedAtMs, source }: StoredReject,
  { projectId, capturedAtMs, rerouteOlderThanMs }: ReplayTarget,
): PreparedEvents | RefusedRequest {
  const random = randomOf(rejectId)
  return prepareEvents(request, projectId, { receivedAtMs, capturedAtMs, ip: source.ip, random, rerouteOlderThanMs })
}

/** The same of v1, where every event was sent with a uuid. */
export function prepareRejectedV1Request(
  request: IncomingV1Request,
  { receivedAtMs, source }: StoredReject,
  { projectId, capturedAtMs, rerouteOlderThanMs }: ReplayTarget,
): PreparedEvents {
  return prepareV1Events(request, projectId, { receivedAtMs, capturedAtMs, ip: source.ip, rerouteOlderThanMs })
}

/**
 * An event that had been accepted: nothing of it is decided anew.
 * @returns null when the item is not one that this service wrote.
 */
export function prepareRejectedEvent(
  item: IncomingEvent,
  reject: StoredReject,
  target: ReplayTarget,
): PreparedEvents | null {
  const { lane, importJobId, receivedAtMs, source } = reject
  const timestampMs = item.timestamp === null ? null : parseZonedTimestampText(item.timestamp)
  if (timestampMs === null || item.uuid === null || item.distinctId === null || item.name === '') return null
  const event: CapturedEvent = {
    projectId: target.projectId,
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
    propertiesJson: item.propertiesJson,
    setJson: item.setJson,
    setOnceJson: item.setOnceJson,
  }
  const encoder = new RecordEncoder()
  encoder.addEvent(event)
  const records = finishedRecords(encoder)
  const isHistorical = logLaneOf(lane) === 'historical'
  return {
    main: isHistorical ? null : records,
    historical: isHistorical ? records : null,
    acceptedByLane: { [lane]: 1 },
    rejects: [],
    rejectedCount: 0,
  }
}

/** The same numbers each time for one reject. */
function randomOf(rejectId: string): RandomUint32 {
  let drawCount = 0
  return () => Number.parseInt(hash('sha1', `${rejectId}:${drawCount++}`, 'hex').slice(0, 8), 16)
}
