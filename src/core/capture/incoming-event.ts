// A capture request whose bytes and JSON were read: names and types are checked, but the rules are not applied yet. The
// parsers in `wire/capture` and `wire/capture-v1` produce it, and `prepare-events.ts` turns it into records and outcomes.

import type { ClientSdk } from '../events/captured-event.ts'
import type { JsonMember } from '../json-text.ts'

export type IncomingItem = IncomingEvent | ItemFault | PerformanceEvent

/** What the requests of both protocols have in common. */
export interface IncomingItems<Event> {
  /** The project API key, trimmed; of valid shape, not yet known to belong to a project. */
  readonly token: string
  /** Read only from the request's envelope, not from its items. */
  readonly historicalMigration: boolean
  /** One entry for each item of the request, in the request's order. */
  readonly items: readonly (Event | ItemFault | PerformanceEvent)[]
  /**
   * True when bad items are left out one by one: always on v1, with `?verbose=1` on v0. Otherwise one bad item refuses
   * the request.
   */
  readonly isItemised: boolean
  /** The client's own JSON text of an item, for the reject store. */
  sourceJson(row: number): string
  /** The path prefix of an item's fields in the sent JSON: `batch.3.`, `3.` in a list, '' when the item is the root. */
  placeOf(row: number): string
}

export interface IncomingRequest extends IncomingItems<IncomingEvent> {
  /** The effective `sent_at` of the request, epoch ms. */
  readonly sentAtMs: number | null
}

export interface IncomingV1Request extends IncomingItems<IncomingV1Event> {
  /** Whether the service's own tools sent the request, so that its sender's address is not the user's. */
  readonly captureInternal: boolean
  /** When the client says it sent this attempt, epoch ms. */
  readonly sentAtMs: number
  /** The library that sent the request; null when the library does not name itself. */
  readonly sdk: ClientSdk | null
  /** True for the AI path, which takes AI events only. */
  readonly aiOnly: boolean
}

/** An item whose shape already rules it out as an event, before any rule is applied. */
export interface ItemFault extends RefusedItem {
  readonly kind: 'fault'
  readonly reason: 'missing_event_name' | 'invalid_shape'
  /** The field at fault; '' when the item is not an object. */
  readonly field: string
  /** The item has no name, or a name that is not a string. */
  readonly isNameless: boolean
}

/** A `$performance_event`, which is not kept. */
export interface PerformanceEvent {
  readonly kind: 'performance'
  /** '' when it has none. */
  readonly uuid: string
}

/** The fields of an item that could be read; '' for those that could not. */
export interface RefusedItem {
  readonly uuid: string
  readonly name: string
  readonly distinctId: string
}

export interface IncomingEvent {
  readonly kind: 'event'
  /** As sent; may be empty. */
  readonly name: string
  /** Text form of what the client sent; null when it sent none. */
  readonly distinctId: string | null
  /** Canonical text, or null to have one made. */
  readonly uuid: string | null
  readonly timestamp: string | null
  readonly offsetMs: number | null
  readonly ignoreSentAt: boolean
  /** `$cookieless_mode` is true. */
  readonly isCookieless: boolean
  /** `$cookieless_mode` is present and not a boolean. */
  readonly cookielessModeInvalid: boolean
  /** The service's own tools sent the event, so its sender's address is not the user's. */
  readonly captureInternal: boolean
  /** The client's own JSON text. */
  readonly propertiesJson: string
  readonly setJson: string | null
  readonly setOnceJson: string | null
  /** Where in the properties the members of `visitorNames` are, if that is known and the event is cookieless. */
  readonly visitorMembers?: readonly JsonMember[] | undefined
}

export interface IncomingV1Event {
  readonly kind: 'event'
  /** As sent; may be empty. */
  readonly name: string
  /** Canonical text. */
  readonly uuid: string
  /** Trimmed; may be empty. */
  readonly distinctId: string
  readonly timestamp: string
  readonly sessionId: string | null
  readonly windowId: string | null
  /**
   * Any JSON value; null when none were sent. The number in `product_tour_id` keeps its literal if a double would not
   * reproduce it, as with `parseJson`.
   */
  readonly options: unknown
  /** The client's own JSON text; null when it is not an object. */
  readonly propertiesJson: string | null
  /** `propertiesJson` as `JSON.parse` reads it, for looking up keys. */
  readonly properties: { readonly [key: string]: unknown }
}

/** The fields by which a refusal identifies an item. */
export function toRefusedItem({ uuid, name, distinctId }: ReadableItem): RefusedItem {
  return { uuid: uuid ?? '', name, distinctId: distinctId ?? '' }
}

export type ReadableItem = Pick<IncomingEvent, 'uuid' | 'name' | 'distinctId'>
