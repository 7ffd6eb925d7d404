// One event as it was accepted: what a log record holds and what the worker starts from.
// Everything here is fixed when the request is answered; the worker never invents any of it.

/** Where an event queues and which special rules it follows. Source: docs/wire/ingestion.md 0. */
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

/** The two logs: imports never delay live events. Every lane but `historical` travels in `main`. */
export const logLanes = ['main', 'historical'] as const
export type LogLane = (typeof logLanes)[number]

export function logLaneOf(lane: Lane): LogLane {
  return lane === 'historical' ? 'historical' : 'main'
}

/** Flagged events that no created import job claims share this one. */
export const importWithoutJob = 1

/** What the edge did not take as it was sent, of an event that it accepted: bits of `notes`. */
export const edgeNote = {
  /** `timestamp` cannot be read, or lies where nothing can be stored: the event has the time of receipt. */
  timeUnreadable: 1,
  /** The distinct id was cut. */
  distinctIdCut: 2,
  /** The name was cut. */
  nameCut: 4,
  /** Its distinct id sends too many events: it does without a person. */
  personsSwitchedOff: 8,
} as const

export interface CapturedEvent {
  readonly projectId: number
  /** The project API key it came with, for people who look at the log. */
  readonly token: string
  readonly lane: Lane
  /** Sent with `historical_migration: true` in the envelope: an import, never charged. */
  readonly historicalMigration: boolean
  /** 0 = live; 1 = an import without a job of its own; from 2 up the id of an import job. */
  readonly importJobId: number
  readonly protocol: 'v0' | 'v1'
  /** The edge switched person processing off (hot key, illegal v1 id): wins over the event's own wish. */
  readonly personProcessingForcedOff: boolean
  /** Bits of `edgeNote`; 0 where all was well. */
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
  /** The client's own JSON text of `properties`, an object; literals, key order and repeats as sent. */
  readonly propertiesJson: string
  /** The client's own JSON text of a top-level `$set`, or null. */
  readonly setJson: string | null
  readonly setOnceJson: string | null
}

/** What a reject's body is, and what belongs to it besides: enough to take it through capture once more. */
export interface RejectSource {
  /**
   * `request`: a whole request, decoded; `item`: one event of a request, as it was sent; `event`: an event as it was
   * accepted, its time settled. Null for something that is not read again.
   */
  readonly kind: 'request' | 'item' | 'event' | null
  /** The body lacks its end. */
  readonly isCut: boolean
  readonly protocol: 'v0' | 'v1'
  /** Posted to `/engage`, where an event needs no name. */
  readonly engage: boolean
  /** Address of the connection; '' when unknown, or not to be kept. */
  readonly ip: string
  /** The send time beside the body; of an `event` and an `item` the effective one. */
  readonly sentAtMs: number | null
  readonly personProcessingForcedOff: boolean
  /** What the headers and the path of a v1 request said besides; absent in v0, and once the event had been accepted. */
  readonly v1?: { readonly sdk: ClientSdk | null; readonly aiOnly: boolean }
}

/** The library that sent a request, as its headers say. */
export interface ClientSdk {
  readonly name: string
  readonly version: string
}

/** What was sent and refused, cut, with what it takes to read it again. */
export interface KeptBody {
  readonly text: string
  readonly source: RejectSource
}

/** Text alone: nothing is known of it, or there is none. */
export type RejectedBody = string | KeptBody

/** An event or request refused at the edge that has to be findable: kept in the reject store, never processed. */
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
  /** The field that was wrong, or ''. */
  readonly field: string
  readonly uuid: string
  readonly name: string
  readonly distinctId: string
  /** The original body, cut to 64 KiB. */
  readonly body: string
  /** Absent when it is not known, so that the reject cannot be replayed. */
  readonly source?: RejectSource
}

/** One accepted replay request: its snapshots in one piece. Source: docs/wire/ingestion.md 1.8. */
export interface CapturedReplay {
  readonly projectId: number
  readonly token: string
  readonly receivedAtMs: number
  readonly capturedAtMs: number
  /** When its first snapshot event happened, epoch ms, corrected like an event's. */
  readonly timestampMs: number
  /** Lower-case canonical text: the first snapshot event's own, or made here. */
  readonly uuid: string
  readonly sessionId: string
  readonly windowId: string
  readonly distinctId: string
  readonly snapshotSource: 'mobile' | 'web'
  /** The library that recorded. */
  readonly lib: string
  readonly itemCount: number
  /** Bytes of the JSON text behind `items`. */
  readonly itemsBytes: number
  /** A JSON list of the client's own texts, packed (`core/capture/packed-items.ts`): the worker never looks inside. */
  readonly items: Uint8Array
}

/**
 * What one log record holds. `damaged` is what reading makes of a record whose checksum does not hold: only the log still
 * knows when it was appended, epoch ms.
 */
export type LogRecord =
  | { readonly kind: 'event'; readonly event: CapturedEvent }
  | { readonly kind: 'reject'; readonly reject: CapturedReject }
  | { readonly kind: 'replay'; readonly replay: CapturedReplay }
  | (DamagedRecord & { readonly appendedAtMs: number })

interface DamagedRecord {
  readonly kind: 'damaged'
  readonly body: Uint8Array
}

/** What the bytes of a record say by themselves. */
export type DecodedRecord = Exclude<LogRecord, DamagedRecord> | DamagedRecord
