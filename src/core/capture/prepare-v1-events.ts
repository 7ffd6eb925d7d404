// All events of one v1 batch become encoded log records, each with a verdict of its own: what is dropped leaves the others
// alone. Pure, so that it runs on the event loop for small requests and in a decode thread for large ones
// (`wire/capture-v1/decode-v1-capture.ts`).

import { type CapturedReject, importWithoutJob, type Lane, logLaneOf } from '../events/captured-event.ts'
import { uuidTextLength } from '../events/uuid.ts'
import { RecordEncoder } from '../log/record-codec.ts'
import type { IncomingV1Event, IncomingV1Request } from './incoming-v1-event.ts'
import {
  normalizeV1Event,
  type V1Drop,
  type V1DropReason,
  type V1EventContext,
  v1DropReasons,
} from './normalize-v1-event.ts'
import { finishedRecords, type PreparedEvents, rejectCountMax } from './prepare-events.ts'
import { keptBody, keptItem } from './reject-body.ts'

/** `personless`: accepted without a person, because its distinct id is a placeholder such as `undefined`. */
export const v1Verdicts = ['accepted', 'personless', ...v1DropReasons] as const
export type V1Verdict = (typeof v1Verdicts)[number]

/**
 * Results of all events in the order of the request. They are packed because a small body may hold hundreds of thousands
 * of events: one value for each would hold the event loop when they come out of a thread.
 */
export interface V1Results {
  /** Canonical texts in ASCII, one behind the other. */
  readonly uuids: Uint8Array<ArrayBuffer>
  /** Places in `v1Verdicts`. */
  readonly verdicts: Uint8Array<ArrayBuffer>
}

export interface PreparedV1Events extends PreparedEvents, V1Results {}

/** What is known of a request besides its headers and its text. */
export interface ReceivedV1Request {
  readonly receivedAtMs: number
  /** When its events are accepted; when absent, as they are received. */
  readonly capturedAtMs?: number
  /** Address of the connection, '' when unknown. */
  readonly ip: string
  /** Live events of the main lane at least this old become imports; null when none do. */
  readonly rerouteOlderThanMs: number | null
}

export function prepareV1Events(
  request: IncomingV1Request,
  projectId: number,
  received: ReceivedV1Request,
): PreparedV1Events {
  const context = contextOf(request, projectId, received)
  const encoders = { main: new RecordEncoder(), historical: new RecordEncoder() }
  const acceptedByLane: Partial<Record<Lane, number>> = {}
  const rejects: CapturedReject[] = []
  const rejectedByReason: Partial<Record<V1DropReason, number>> = {}
  let rejectedCount = 0
  const uuids = new Uint8Array(request.events.length * uuidTextLength)
  const uuidTexts = Buffer.from(uuids.buffer)
  const verdicts = new Uint8Array(request.events.length)
  for (let index = 0; index < request.events.length; index++) {
    const item = request.events[index]!
    const outcome = normalizeV1Event(item, context)
    uuidTexts.write(item.uuid, index * uuidTextLength, 'latin1')
    if (outcome.ok) {
      const { lane, personProcessingForcedOff } = outcome.value
      acceptedByLane[lane] = (acceptedByLane[lane] ?? 0) + 1
      encoders[logLaneOf(lane)].addEvent(outcome.value)
      verdicts[index] = placeOf[personProcessingForcedOff ? 'personless' : 'accepted']
      continue
    }
    const { reason } = outcome.error
    verdicts[index] = placeOf[reason]
    rejectedByReason[reason] = (rejectedByReason[reason] ?? 0) + 1
    rejectedCount++
    if (rejectedCount <= rejectCountMax) rejects.push(rejectOf(item, outcome.error, request.sourceJson(index), context))
  }
  return {
    main: finishedRecords(encoders.main),
    historical: finishedRecords(encoders.historical),
    acceptedByLane,
    rejects,
    rejectedCount,
    rejectedByReason,
    uuids,
    verdicts,
  }
}

const placeOf = Object.fromEntries(v1Verdicts.map((verdict, place) => [verdict, place])) as Record<V1Verdict, number>

function contextOf(request: IncomingV1Request, projectId: number, received: ReceivedV1Request): V1EventContext {
  const { token, historicalMigration, sentAtMs, sdk, aiOnly } = request
  return {
    ...{ projectId, token, historicalMigration, sentAtMs, sdk, aiOnly },
    importJobId: historicalMigration ? importWithoutJob : 0,
    receivedAtMs: received.receivedAtMs,
    capturedAtMs: received.capturedAtMs ?? received.receivedAtMs,
    rerouteOlderThanMs: received.rerouteOlderThanMs,
    ip: request.captureInternal ? '127.0.0.1' : received.ip,
  }
}

function rejectOf(
  item: IncomingV1Event,
  { reason, field }: V1Drop,
  sourceJson: string,
  context: V1EventContext,
): CapturedReject {
  const { text: body, source } = keptBody(sourceJson, {
    kind: 'item',
    protocol: 'v1',
    engage: false,
    ip: context.ip,
    sentAtMs: context.sentAtMs,
    personProcessingForcedOff: false,
    v1: { sdk: context.sdk, aiOnly: context.aiOnly },
  })
  return {
    projectId: context.projectId,
    token: context.token,
    lane: context.historicalMigration ? 'historical' : 'main',
    historicalMigration: context.historicalMigration,
    importJobId: context.importJobId,
    receivedAtMs: context.receivedAtMs,
    capturedAtMs: context.capturedAtMs,
    reason,
    field,
    ...keptItem(item),
    body,
    source,
  }
}
