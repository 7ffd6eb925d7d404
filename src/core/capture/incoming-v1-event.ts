// A request of capture protocol v1 after its headers, bytes and JSON were read: shapes are settled, rules are not applied
// yet. `wire/capture-v1/v1-capture-request.ts` makes it, `normalize-v1-event.ts` turns its items into captured events.

import type { ClientSdk } from '../events/captured-event.ts'

export interface IncomingV1Request {
  /** The project API key, trimmed; of valid shape, not yet known to belong to a project. */
  readonly token: string
  readonly historicalMigration: boolean
  /** The request came from the service's own tools: its sender's address is not the users'. */
  readonly captureInternal: boolean
  /** When the client says it sent this attempt, epoch ms. */
  readonly sentAtMs: number
  /** The library that sent it; null when it does not say. */
  readonly sdk: ClientSdk | null
  /** The requests of the AI path carry AI events and nothing else. */
  readonly aiOnly: boolean
  /** In the order of the request, each with a uuid of its own. */
  readonly events: readonly IncomingV1Event[]
  /** The client's own JSON text of an event, for the reject store. */
  sourceJson(index: number): string
}

export interface IncomingV1Event {
  /** As sent; may be empty. */
  readonly name: string
  /** Canonical text. */
  readonly uuid: string
  /** Trimmed; may be empty. */
  readonly distinctId: string
  readonly timestamp: string
  readonly sessionId: string | null
  readonly windowId: string | null
  /** Any JSON value; null when there are none. Of its numbers, `product_tour_id` is as `parseJson` reads it. */
  readonly options: unknown
  /** The client's own JSON text; null when it is no object. */
  readonly propertiesJson: string | null
  /** What that text says, as `JSON.parse` reads it: for looking at keys. */
  readonly properties: { readonly [key: string]: unknown }
}
