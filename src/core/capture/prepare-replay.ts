// A replay request becomes one encoded log record, or a reason why it cannot: the rules of session ids, times and sizes.
// Pure, so that it runs on the event loop for small requests and in a decode thread for large ones (`wire/recordings/decode-replay.ts`).

import type { RejectedBody } from '../events/captured-event.ts'
import type { EncodedRecords } from '../log/record-codec.ts'
import { encodeReplay } from '../log/replay-record.ts'
import { eventTime } from './event-time.ts'
import { newEventUuid, type RandomUint32 } from './event-uuid.ts'
import type { RefusedItem } from './incoming-event.ts'
import { normalizeDistinctId } from './normalize-event.ts'
import { packItems } from './packed-items.ts'

/** A replay request after its JSON was read: what its first element says, and the items of all of them. */
export interface IncomingReplay {
  /** The project API key, trimmed; of valid shape, not yet known to belong to a project. */
  readonly token: string
  /** `$session_id` as sent; undefined when there is none. */
  readonly sessionId: unknown
  readonly windowId: string | null
  /** Text form of what the client sent; null when it sent none. */
  readonly distinctId: string | null
  /** Canonical text, or null to have one made. */
  readonly uuid: string | null
  readonly timestamp: string | null
  readonly offsetMs: number | null
  readonly ignoreSentAt: boolean
  readonly sentAtMs: number | null
  readonly snapshotSource: string | null
  /** `$lib`; null when it is no text. */
  readonly lib: string | null
  /** Null when an element has no snapshot data, or data of a wrong type. */
  readonly items: ReplayItems | null
}

export interface ReplayItems {
  /** JSON text of a list, in UTF-8: the client's own texts of the items. */
  readonly json: Uint8Array
  readonly count: number
}

/** What is known of a request besides its text. Where it came from is not kept. */
export interface ReceivedReplay {
  readonly receivedAtMs: number
  readonly random: RandomUint32
  readonly userAgent: string
}

/** Why a replay request is refused, in the order in which it is looked for. `docs/wire/errors.md` has their answers. */
export const replayRefusals = [
  'missing_session_id',
  'invalid_session_id',
  'missing_distinct_id',
  'missing_snapshot_data',
  'replay_too_large',
] as const
export type ReplayRefusal = (typeof replayRefusals)[number]

/** A request that was read, for no project yet: a record whose project is open (0), or why its snapshots cannot be kept. */
export type ReplayRequest =
  | { readonly kind: 'prepared'; readonly token: string; readonly record: EncodedRecords }
  | {
      readonly kind: 'unfit'
      readonly token: string
      readonly refusal: ReplayRefusal
      /** What was sent, decoded and cut for the reject store. */
      readonly body: RejectedBody
      /** Its first element. */
      readonly item: RefusedItem
    }

/** The field at fault. */
export const refusedReplayFields: Readonly<Record<ReplayRefusal, string>> = {
  missing_session_id: 'properties.$session_id',
  invalid_session_id: 'properties.$session_id',
  missing_distinct_id: 'distinct_id',
  missing_snapshot_data: 'properties.$snapshot_data',
  replay_too_large: 'properties.$snapshot_data',
}

/**
 * Bounds the text of the items, unpacked, since one record is read, stored and given back in one piece. No unpacked body
 * that the wire takes reaches it; a small packed one may unfold to more. Source: ours.
 */
export const replayBytesMax = 32 * 1024 * 1024

/** Source: docs/wire/ingestion.md 1.8. */
const sessionIdForm = /^[A-Za-z0-9-]{0,70}$/
const windowIdLengthMax = 200
const libLengthMax = 200

/** @returns a run of one record, its project left open (0); or the first reason against it. Source: docs/wire/ingestion.md 1.8. */
export function prepareReplay(replay: IncomingReplay, received: ReceivedReplay): EncodedRecords | ReplayRefusal {
  const { sessionId, items } = replay
  if (sessionId === undefined) return 'missing_session_id'
  if (typeof sessionId !== 'string' || !sessionIdForm.test(sessionId)) return 'invalid_session_id'
  const distinctId = replay.distinctId === null ? '' : normalizeDistinctId(replay.distinctId)
  if (distinctId === '') return 'missing_distinct_id'
  if (items === null) return 'missing_snapshot_data'
  if (items.json.length > replayBytesMax) return 'replay_too_large'
  const { receivedAtMs, random } = received
  const timestampMs = timeOf(replay, receivedAtMs)
  return encodeReplay({
    projectId: 0,
    token: replay.token,
    receivedAtMs,
    capturedAtMs: receivedAtMs,
    timestampMs,
    uuid: replay.uuid ?? newEventUuid(timestampMs, random),
    sessionId,
    windowId: (replay.windowId ?? sessionId).slice(0, windowIdLengthMax).toWellFormed(),
    distinctId,
    snapshotSource: replay.snapshotSource === 'mobile' ? 'mobile' : 'web',
    lib: (replay.lib ?? libOfUserAgent(received.userAgent)).slice(0, libLengthMax).toWellFormed(),
    itemCount: items.count,
    itemsBytes: items.json.length,
    items: packItems(items.json),
  })
}

/** A live event's time: one that cannot be read is the time of receipt. */
function timeOf(replay: IncomingReplay, receivedAtMs: number): number {
  const { timestamp, offsetMs, ignoreSentAt, sentAtMs } = replay
  const time = eventTime({ timestamp, offsetMs, ignoreSentAt, sentAtMs, receivedAtMs, historicalMigration: false })
  return time.ok ? time.value : receivedAtMs
}

/** `posthog-ios/3.1.0` recorded by itself; anything else is a browser. Source: docs/wire/ingestion.md 1.8. */
function libOfUserAgent(userAgent: string): string {
  const product = userAgent.split('/', 1)[0]!
  return product.includes('posthog') ? product : 'web'
}
