// One event as it was accepted: the content of a log record, from which the worker starts. Everything here is fixed before
// the request is answered; the worker adds nothing to it.

import type { GeoipLocation } from '../geoip.ts'

/** In which queue an event waits, and which special rules it follows. Source: docs/wire/ingestion.md 0. */
export const lanes = [
  'main',
  'historical',
  'overflow',
  'error_tracking',
  'heatmaps',
  'warnings',
  'ai',
  'replay',
] as const
export type Lane = (typeof lanes)[number]

/** The job id of all imported events that have no import job. */
export const importWithoutJob = 1

/** The bits of `notes`: what the edge changed in an event that it accepted. */
export const edgeNote = {
  /** `timestamp` is unreadable or outside what can be stored: the event has the time of receipt. */
  timeUnreadable: 1,
  /** The distinct id was truncated. */
  distinctIdCut: 2,
  /** The name was truncated. */
  nameCut: 4,
  /** The event is stored without a person, since its distinct id sends too many events. */
  personsSwitchedOff: 8,
} as const

export interface CapturedEvent {
  readonly projectId: number
  /** The project API key that the event was sent with, for people who inspect the log. */
  readonly token: string
  readonly lane: Lane
  /**
   * An import, never charged: sent with `historical_migration: true` in the envelope, or rerouted because of its age.
   */
  readonly historicalMigration: boolean
  /** 0 = live; 1 = an import without a job; from 2 up the id of an import job. */
  readonly importJobId: number
  readonly protocol: 'v0' | 'v1'
  /** The edge switched person processing off (hot key, illegal v1 id). Wins over the event's own setting. */
  readonly personProcessingForcedOff: boolean
  /** Bits of `edgeNote`; 0 for none. */
  readonly notes: number
  /** When the request arrived, epoch ms; the `now` of the timestamp rules. */
  readonly receivedAtMs: number
  /** When the event was accepted, epoch ms: stored as `captured_at`. */
  readonly capturedAtMs: number
  /** When the event happened, epoch ms, already corrected (`core/capture/event-time.ts`). */
  readonly timestampMs: number
  /** The effective `sent_at`, epoch ms; stored as `$sent_at`. */
  readonly sentAtMs: number | null
  /** Lower-case canonical text. */
  readonly uuid: string
  readonly name: string
  readonly distinctId: string
  /** The connection's address as text, '' when unknown; becomes `$ip` unless the client sent one. */
  readonly ip: string
  /** The visitor of a cookieless event, whose address is not kept (`ip` is ''); null for every other event. */
  readonly visitor: CookielessVisitor | null
  /** The client's own JSON text of `properties`, an object; literals, key order and repeated keys as sent. */
  readonly propertiesJson: string
  /** The client's own JSON text of a top-level `$set`, or null. */
  readonly setJson: string | null
  readonly setOnceJson: string | null
}

/** The data that the edge keeps about the visitor of a cookieless event. Source: docs/wire/ingestion.md 13. */
export interface CookielessVisitor {
  /** The input for the ids that the worker computes; null if the edge settled them, as it does for stateless projects. */
  readonly stateful: StatefulVisitor | null
  /** The location of the address, which itself is not kept; null if it was not looked up or not found. */
  readonly location: GeoipLocation | null
}

export interface StatefulVisitor {
  /** The base hash: 22 characters of base64. */
  readonly hash: string
  /** The calendar day of the salt in the hash, `YYYY-MM-DD`. */
  readonly day: string
  /** The event was sent with the sentinel as its distinct id. */
  readonly isSentinel: boolean
}

/** The kind of text in a reject's body, and what else is needed to replay it through capture. */
export interface RejectSource {
  /**
   * `request`: a whole request, decoded; `item`: one event of a request, as it was sent; `event`: an event as it was
   * accepted, with its final time. Null for a body that cannot be replayed.
   */
  readonly kind: 'request' | 'item' | 'event' | null
  /** The body was truncated. */
  readonly isTruncated: boolean
  readonly protocol: 'v0' | 'v1'
  /** Posted to `/engage`, where an event needs no name. */
  readonly engage: boolean
  /** Address of the connection; '' when it is unknown or must not be kept. */
  readonly ip: string
  /** For a `request` the send time given outside the body; for an `event` or `item` the effective send time. */
  readonly sentAtMs: number | null
  readonly personProcessingForcedOff: boolean
  /** From the headers and the path of a v1 request; absent in v0 and for an event that had been accepted. */
  readonly v1?: { readonly sdk: ClientSdk | null; readonly aiOnly: boolean }
}

/** The library that sent a request, according to its headers. */
export interface ClientSdk {
  readonly name: string
  readonly version: string
}

/** A refused body, truncated, with the data needed to replay it. */
export interface ReplayableBody {
  readonly text: string
  readonly source: RejectSource
}

/** A plain string has an unknown source, or is empty. */
export type RejectedBody = string | ReplayableBody

/**
 * An event or request that the edge refused. It is not processed, but kept in the reject store, so that it can be found.
 */
export interface CapturedReject {
  readonly projectId: number
  readonly token: string
  readonly lane: Lane
  readonly historicalMigration: boolean
  readonly importJobId: number
  readonly receivedAtMs: number
  readonly capturedAtMs: number
  /** A code of `docs/wire/errors.md`. */
  readonly reason: string
  /** The field at fault, or ''. */
  readonly field: string
  readonly uuid: string
  readonly name: string
  readonly distinctId: string
  /** The original body, truncated to 64 KiB. */
  readonly body: string
  /** Absent when unknown; the reject then cannot be replayed. */
  readonly source?: RejectSource
}

/** One accepted recording request: its snapshots in one piece. Source: docs/wire/ingestion.md 1.8. */
export interface CapturedRecording {
  readonly projectId: number
  readonly token: string
  readonly receivedAtMs: number
  readonly capturedAtMs: number
  /** When its first snapshot event happened, epoch ms, corrected like an event's. */
  readonly timestampMs: number
  /** The recording's uuid, canonical and in lower case: that of its first snapshot event, or a generated uuid. */
  readonly uuid: string
  readonly sessionId: string
  readonly windowId: string
  readonly distinctId: string
  readonly snapshotSource: 'mobile' | 'web'
  /** The library that made the recording. */
  readonly lib: string
  readonly itemCount: number
  /** Size in bytes of the JSON text that `items` contains. */
  readonly itemsBytes: number
  /** A JSON list of the client's own texts, packed (`core/capture/compressed-items.ts`). The worker never unpacks it. */
  readonly items: Uint8Array
}

/**
 * The content of one log record. Reading turns a record with a wrong checksum into `damaged`; then only the log knows when it
 * was appended (epoch ms).
 */
export type LogRecord =
  | { readonly kind: 'event'; readonly event: CapturedEvent }
  | { readonly kind: 'reject'; readonly reject: CapturedReject }
  | { readonly kind: 'recording'; readonly recording: CapturedRecording }
  | (DamagedRecord & { readonly appendedAtMs: number })

/** The event, recording or reject that a record contains; null for a damaged record. */
export function acceptedItemOf(
  record:
    | { readonly kind: 'event' | 'failed'; readonly event: CapturedEvent }
    | { readonly kind: 'recording' | 'failed_recording'; readonly recording: CapturedRecording }
    | { readonly kind: 'reject'; readonly reject: CapturedReject }
    | { readonly kind: 'damaged' },
): CapturedEvent | CapturedRecording | CapturedReject | null {
  if ('event' in record) return record.event
  if ('recording' in record) return record.recording
  return record.kind === 'reject' ? record.reject : null
}

interface DamagedRecord {
  readonly kind: 'damaged'
  readonly body: Uint8Array
}

/** A record as decoded from its bytes alone. */
export type DecodedRecord = Exclude<LogRecord, DamagedRecord> | DamagedRecord
