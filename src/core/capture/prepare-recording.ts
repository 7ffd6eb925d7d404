// Turns a recording request into one encoded log record, or into the reason why it cannot become one. Applies the rules for
// session ids, times and sizes. Pure, so that it runs on the event loop for small requests and in a decode thread for large
// ones (`wire/recordings/decode-recording.ts`).

import type { RejectedBody } from '../events/captured-event.ts'
import type { EncodedRecords } from '../log/record-codec.ts'
import { encodeRecording } from '../log/recording-codec.ts'
import { compressItems } from './compressed-items.ts'
import { resolveEventTime } from './event-time.ts'
import { createEventUuid, type RandomUint32 } from './event-uuid.ts'
import type { RefusedItem } from './incoming-event.ts'
import { normalizeDistinctId } from './normalize-event.ts'

/** A recording request whose JSON was read: the fields of its first element and the items of all elements. */
export interface IncomingRecording {
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
  /** `$lib`; null when it is not a string. */
  readonly lib: string | null
  /** Null when an element has no snapshot data, or data of a wrong type. */
  readonly items: RecordingItems | null
}

export interface RecordingItems {
  /** JSON text of a list, in UTF-8, with the items as the client wrote them. */
  readonly json: Uint8Array
  readonly count: number
}

/** What is known of a request besides its text. Its sender's address is not kept. */
export interface ReceivedRecording {
  readonly receivedAtMs: number
  readonly random: RandomUint32
  readonly userAgent: string
}

/** Why a recording request is refused, in the order of the checks. `docs/wire/errors.md` has the answers. */
export const recordingRefusals = [
  'missing_session_id',
  'invalid_session_id',
  'missing_distinct_id',
  'missing_snapshot_data',
  'replay_too_large',
] as const
export type RecordingRefusal = (typeof recordingRefusals)[number]

/** A request that was read: a record whose project is left open (0), or why its snapshots cannot be kept. */
export type RecordingRequest =
  | { readonly kind: 'prepared'; readonly token: string; readonly record: EncodedRecords }
  | {
      readonly kind: 'unfit'
      readonly token: string
      readonly refusal: RecordingRefusal
      /** What was sent, decoded and truncated for the reject store. */
      readonly body: RejectedBody
      /** Its first element. */
      readonly item: RefusedItem
    }

/** The field at fault. */
export const refusedRecordingFields: Readonly<Record<RecordingRefusal, string>> = {
  missing_session_id: 'properties.$session_id',
  invalid_session_id: 'properties.$session_id',
  missing_distinct_id: 'distinct_id',
  missing_snapshot_data: 'properties.$snapshot_data',
  replay_too_large: 'properties.$snapshot_data',
}

/**
 * Bounds the unpacked text of the items, since a record is read, stored and returned in one piece. The protocol accepts no
 * unpacked body that long, but a small packed body may unpack to more. Source: ours.
 */
export const recordingBytesMax = 32 * 1024 * 1024

/** Source: docs/wire/ingestion.md 1.8. */
const sessionIdForm = /^[A-Za-z0-9-]{0,70}$/
const windowIdLengthMax = 200
const libLengthMax = 200

/**
 * @returns one encoded record with its project left open (0), or the first reason against it.
 * Source: docs/wire/ingestion.md 1.8.
 */
export function prepareRecording(
  recording: IncomingRecording,
  received: ReceivedRecording,
): EncodedRecords | RecordingRefusal {
  const { sessionId, items } = recording
  if (sessionId === undefined) return 'missing_session_id'
  if (typeof sessionId !== 'string' || !sessionIdForm.test(sessionId)) return 'invalid_session_id'
  const distinctId = recording.distinctId === null ? '' : normalizeDistinctId(recording.distinctId)
  if (distinctId === '') return 'missing_distinct_id'
  if (items === null) return 'missing_snapshot_data'
  if (items.json.length > recordingBytesMax) return 'replay_too_large'
  const { receivedAtMs, random } = received
  const timestampMs = resolveRecordingTime(recording, receivedAtMs)
  return encodeRecording({
    projectId: 0,
    token: recording.token,
    receivedAtMs,
    capturedAtMs: receivedAtMs,
    timestampMs,
    uuid: recording.uuid ?? createEventUuid(timestampMs, random),
    sessionId,
    windowId: (recording.windowId ?? sessionId).slice(0, windowIdLengthMax).toWellFormed(),
    distinctId,
    snapshotSource: recording.snapshotSource === 'mobile' ? 'mobile' : 'web',
    lib: (recording.lib ?? parseLibName(received.userAgent)).slice(0, libLengthMax).toWellFormed(),
    itemCount: items.count,
    itemsBytes: items.json.length,
    items: compressItems(items.json),
  })
}

/** The recording's time, by the rules for live events: the time of receipt when the sent time cannot be read. */
function resolveRecordingTime(recording: IncomingRecording, receivedAtMs: number): number {
  const { timestamp, offsetMs, ignoreSentAt, sentAtMs } = recording
  const time = resolveEventTime({
    timestamp,
    offsetMs,
    ignoreSentAt,
    sentAtMs,
    receivedAtMs,
    historicalMigration: false,
  })
  return time.ok ? time.value : receivedAtMs
}

/**
 * A user agent such as `posthog-ios/3.1.0` names the library; any other is a browser. Source: docs/wire/ingestion.md
 * 1.8.
 */
function parseLibName(userAgent: string): string {
  const product = userAgent.split('/', 1)[0]!
  return product.includes('posthog') ? product : 'web'
}
