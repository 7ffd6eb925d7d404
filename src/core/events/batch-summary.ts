// Summarizes the accepted events of a batch in a few strings. Handling thousands of objects would block the event loop,
// which live requests share, although most batches are looked up once and turn out to be new.

import { dayMs } from '../time.ts'
import { buildIdentityKey, type EventIdentity } from './stored-event.ts'

/** With more ids than this, a filter would exclude hardly anything from a search. */
const idsMax = 1_000

/** A summary of events with distinct identities. It can be structured-cloned. */
export interface BatchSummary {
  readonly count: number
  /** Whole UTC days since 1970. */
  readonly days: readonly number[]
  readonly names: readonly string[]
  /** Null if there are more than a thousand. */
  readonly distinctIds: readonly string[] | null
  /** Joined by commas. */
  readonly uuids: string
}

/** Collects identities, ignoring repeats. */
export class SummaryWriter {
  readonly #keys = new Set<string>()
  readonly #days = new Set<number>()
  readonly #names = new Set<string>()
  readonly #distinctIds = new Set<string>()
  readonly #uuids: string[] = []

  /** @returns whether the identity is new. */
  add(identity: EventIdentity): boolean {
    const { timestampMs, event, distinctId, uuid } = identity
    const before = this.#keys.size
    this.#keys.add(buildIdentityKey(identity))
    if (this.#keys.size === before) return false
    this.#days.add(Math.floor(timestampMs / dayMs))
    this.#names.add(event)
    if (this.#distinctIds.size <= idsMax) this.#distinctIds.add(distinctId)
    this.#uuids.push(uuid)
    return true
  }

  summary(): BatchSummary {
    return {
      count: this.#keys.size,
      days: [...this.#days],
      names: [...this.#names],
      distinctIds: this.#distinctIds.size > idsMax ? null : [...this.#distinctIds],
      uuids: this.#uuids.join(','),
    }
  }
}
