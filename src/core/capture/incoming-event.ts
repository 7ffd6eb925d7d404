// A capture request after its bytes and JSON were read: names and types are settled, rules are not applied yet.
// `wire/capture/capture-request.ts` makes it, `normalize-event.ts` turns its items into captured events.

import type { VerdictCollector } from './item-verdicts.ts'

export interface IncomingRequest {
  /** The project API key, trimmed; of valid shape, not yet known to belong to a project. */
  readonly token: string
  /** From the envelope only. */
  readonly historicalMigration: boolean
  /** The effective `sent_at` of the request, epoch ms. */
  readonly sentAtMs: number | null
  readonly events: readonly IncomingEvent[]
  /** `$performance_event`s beside them, which are not kept; absent when there are none. */
  readonly performanceEventCount?: number
  /** The client's own JSON text of an item of `events`, for the reject store. */
  sourceJson(index: number): string
  /** What leads to the fields of an item of `events` in what was sent: `batch.3.`, `3.` in a list, '' for the root itself. */
  placeOf(index: number): string
  /** Absent when one bad event refuses the whole request. */
  readonly itemised?: ItemisedRequest
}

/** A request whose items are judged one by one (`?verbose=1`): what is bad is left out, and the client is told. */
export interface ItemisedRequest {
  /** Has the items already that never became one of `events`. */
  readonly verdicts: VerdictCollector
  /** Where each of `events` stands in the request. */
  readonly places: readonly number[]
  /** The first of the items that are no events, for the reject store. */
  readonly faults: readonly ItemFault[]
  /** The client's own JSON text of an item of the request. */
  sourceAt(place: number): string
}

export interface ItemFault extends RefusedItem {
  readonly place: number
  /** A code of docs/wire/errors.md. */
  readonly reason: string
  readonly field: string
}

/** What could be read of an item, else ''. */
export interface RefusedItem {
  readonly uuid: string
  readonly name: string
  readonly distinctId: string
}

export interface IncomingEvent {
  /** As sent; may be empty. */
  readonly name: string
  /** Text form of what the client sent; null when it sent none. */
  readonly distinctId: string | null
  /** Canonical text, or null to have one made. */
  readonly uuid: string | null
  readonly timestamp: string | null
  readonly offsetMs: number | null
  readonly ignoreSentAt: boolean
  /** `$cookieless_mode` is there and not a boolean. */
  readonly cookielessModeInvalid: boolean
  /** The event came from the service's own tools: its sender's address is not the user's. */
  readonly captureInternal: boolean
  /** The client's own JSON text. */
  readonly propertiesJson: string
  readonly setJson: string | null
  readonly setOnceJson: string | null
}
