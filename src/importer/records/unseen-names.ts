// Finds names in a configuration, such as the fields of a mapping, that no record has: usually a typing error, which would
// silently give wrong data.

import { nearMiss } from '#core/nearest-name.ts'
import { allowNull, type Static, Type } from './file-schema.ts'

export interface UnseenName {
  readonly kind: 'field' | 'event'
  readonly name: string
  /** The configuration key that contains the name, such as `groups.company`. */
  readonly key: string
  /** A similar name that records have and that was probably meant; null if there is none. */
  readonly near: string | null
  /** Set when the name means only a field of the record itself, not one of a nested object. */
  readonly isOwn?: true
}

export const unseenNameSchema = Type.Object({
  kind: Type.Enum(['field', 'event']),
  name: Type.String(),
  key: Type.String(),
  near: allowNull(Type.String()),
  isOwn: Type.Optional(Type.Literal(true)),
})

/** What a stopped scan stores of a watch. */
export const watchStateSchema = Type.Object({
  hasSeen: Type.Boolean(),
  /** The names that have not been seen yet. */
  waiting: Type.Array(Type.String()),
  /** Names for suggestions. */
  known: Type.Array(Type.String()),
})
export type WatchState = Static<typeof watchStateSchema>

/** Watches records for configured names. */
export interface NameWatch {
  unseen(): readonly UnseenName[]
  state(): readonly WatchState[]
  /** @param states as `state` returned them, for the same configuration. */
  restore(states: readonly WatchState[]): void
}

export class UnseenNames {
  /** Column names from the headers of files; they count as seen even if no row fills them. */
  readonly columns: ReadonlySet<string>
  readonly #watches: NameWatch[] = []

  constructor(columns: Iterable<string> = []) {
    this.columns = new Set(columns)
  }

  add(watch: NameWatch): void {
    this.#watches.push(watch)
  }

  all(): readonly UnseenName[] {
    return this.#watches.flatMap(watch => watch.unseen())
  }

  /** The state of each watch. */
  states(): WatchState[][] {
    return this.#watches.map(watch => [...watch.state()])
  }

  restore(states: readonly (readonly WatchState[])[]): void {
    for (const [index, watch] of this.#watches.entries()) watch.restore(states[index]!)
  }
}

/** Bounded, since names in records may contain ids, so that there are as many as records. */
const knownMax = 1_000

/** Names that records have, for suggesting the name that was meant. */
export class KnownNames {
  readonly #names: Set<string>

  constructor(names: Iterable<string> = []) {
    this.#names = new Set(names)
  }

  all(): string[] {
    return [...this.#names]
  }

  add(name: string): void {
    if (this.#names.size < knownMax) this.#names.add(name)
  }

  near(name: string): string | null {
    return nearMiss(name, [...this.#names])
  }
}

/** Watches for the event names that `event_names` renames. */
export class EventNameWatch implements NameWatch {
  #waiting: Set<string>
  #known = new KnownNames()
  #hasSeen = false

  constructor(names: Iterable<string>) {
    this.#waiting = new Set(names)
  }

  get isWaiting(): boolean {
    return this.#waiting.size > 0
  }

  see(name: string): void {
    this.#hasSeen = true
    if (!this.isWaiting) return
    this.#waiting.delete(name)
    this.#known.add(name)
  }

  state(): readonly WatchState[] {
    return [{ hasSeen: this.#hasSeen, waiting: [...this.#waiting], known: this.#known.all() }]
  }

  restore([state]: readonly WatchState[]): void {
    const { hasSeen, waiting, known } = state!
    this.#hasSeen = hasSeen
    this.#waiting = new Set(waiting)
    this.#known = new KnownNames(known)
  }

  unseen(): readonly UnseenName[] {
    // Without any event, no name is known to be wrong.
    if (!this.#hasSeen) return []
    return [...this.#waiting].map(name => ({
      kind: 'event' as const,
      name,
      key: 'event_names',
      near: this.#known.near(name),
    }))
  }
}
