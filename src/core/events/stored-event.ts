// What the worker writes: the rows of the event store, as values. Column names are the adapter's business.

import type { CapturedReplay, Lane, RejectSource } from './captured-event.ts'

export type PersonMode = 'full' | 'propertyless' | 'force_upgrade'

/** One row of `events`. Source: docs/wire/ingestion.md 6.8, 10. */
export interface StoredEvent {
  readonly projectId: number
  readonly uuid: string
  readonly event: string
  readonly distinctId: string
  readonly timestampMs: number
  readonly capturedAtMs: number
  /** The UTC day of this is the one that is charged: when the first live copy was accepted (`charge-once.ts`). */
  readonly chargedAtMs: number
  readonly lane: Lane
  readonly historicalMigration: boolean
  readonly importJobId: number
  /** JSON text of an object, the client's literals kept. */
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
}

/** What copies of one event have in common, with the UTC day of `timestampMs`. Source: docs/wire/ingestion.md 8.1. */
export type EventIdentity = Pick<StoredEvent, 'projectId' | 'timestampMs' | 'event' | 'distinctId' | 'uuid'>

/** An event id that now belongs to another person: queries map old rows through it. Highest version wins. */
export interface PersonIdOverride {
  readonly projectId: number
  readonly distinctId: string
  readonly personId: string
  readonly version: number
}

/** One row of `replay_messages`; a later one with the same project, session and uuid replaces it. */
export type StoredReplay = Omit<CapturedReplay, 'token' | 'capturedAtMs'>

/** One row of `rejected_events`. */
export interface RejectedEvent {
  /** Stable across replays of the same chunk, so that a repeated insert replaces itself. */
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
  /** Cut to 64 KiB. */
  readonly body: string
  /** Null when it is not known, so that the reject cannot be replayed. */
  readonly source: RejectSource | null
}
