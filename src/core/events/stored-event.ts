// The rows that the worker writes to the event store, as values. The adapter chooses the column names.

import { dayMs } from '../time.ts'
import type { CapturedRecording, Lane, RejectSource } from './captured-event.ts'
import type { LogStream } from './log-stream.ts'

export type PersonMode = 'full' | 'propertyless' | 'force_upgrade'

/** One row of `events`. Source: docs/wire/ingestion.md 6.8, 10. */
export interface StoredEvent {
  readonly projectId: number
  readonly uuid: string
  readonly event: string
  readonly distinctId: string
  readonly timestampMs: number
  readonly capturedAtMs: number
  /** When the event's first live copy was accepted; the event is charged on the UTC day of this time (`charge-once.ts`). */
  readonly chargedAtMs: number
  readonly lane: Lane
  readonly historicalMigration: boolean
  readonly importJobId: number
  /** 1 for events of implicit jobs, which share a partition; if absent, the partition is the job's own. */
  readonly importPartition?: number
  /** JSON text of an object, with the client's number literals. */
  readonly propertiesJson: string
  readonly elementsChain: string
  readonly personId: string
  readonly personCreatedAtMs: number
  readonly personPropertiesJson: string
  readonly personMode: PersonMode
  /** `$group_0` … `$group_4` as text, '' where absent. */
  readonly groups: readonly [string, string, string, string, string]
  readonly sessionId: string
  readonly windowId: string
  /** `$feature/<key>` → value as text, for breakdowns. */
  readonly flags: ReadonlyMap<string, string>
  /** The flag that a `$feature_flag_called` names, and its answer (`deduplicate-flag-calls.ts`); both '' for other events. */
  readonly flagCalled: string
  readonly flagResponse: string
  /** The other distinct id that the event links with its own; '' if it links none. */
  readonly linkedId: string
  /** The place of the event's record in the log. */
  readonly logStream: LogStream
  readonly logOffset: number
  /** For a generated group event whose row got an earlier time: how much later it was sent, ms. */
  readonly sentLaterMs?: number
}

/** The identity shared by all copies of one event; only the UTC day of `timestampMs` counts. Source: docs/wire/ingestion.md 8.1. */
export type EventIdentity = Pick<StoredEvent, 'projectId' | 'timestampMs' | 'event' | 'distinctId' | 'uuid'>

/** The same key for all copies of an event, and for no other event. */
export function buildIdentityKey({ projectId, timestampMs, event, distinctId, uuid }: EventIdentity): string {
  return `${projectId} ${Math.floor(timestampMs / dayMs)} ${uuid} ${event.length} ${event}${distinctId}`
}

/** A distinct id that now belongs to another person. Queries map old rows through it; the highest version wins. */
export interface PersonIdOverride {
  readonly projectId: number
  readonly distinctId: string
  readonly personId: string
  readonly version: number
}

/** One row of `replay_messages`; a later row with the same project, session and uuid replaces it. */
export type StoredRecording = Omit<CapturedRecording, 'token' | 'capturedAtMs'>

/** One row of `rejected_events`. */
export interface RejectedEvent {
  /** The same id each time the chunk is processed, so that a repeated insert replaces the earlier row. */
  readonly rejectId: string
  readonly projectId: number
  readonly reason: string
  readonly field: string
  readonly lane: Lane
  readonly importJobId: number
  readonly uuid: string
  readonly event: string
  readonly distinctId: string
  readonly receivedAtMs: number
  /** Truncated to 64 KiB. */
  readonly body: string
  /** Null when unknown; the reject then cannot be replayed. */
  readonly source: RejectSource | null
}
