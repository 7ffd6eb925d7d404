// What a configuration names of the records of a job, such as the fields of a mapping, and which of it no record has: most
// often a typing error, which would give wrong data without a word. Only a rehearsal asks, since it reads every record and
// begins again where it is stopped, so what it has seen need not be kept.

import { nearMiss } from '#core/nearest-name.ts'

export interface UnseenName {
  readonly kind: 'field' | 'event'
  readonly name: string
  /** Which key of the configuration names it, such as `groups.company`. */
  readonly key: string
  /** The name among those that records have that was probably meant; null where none is near. */
  readonly near: string | null
  /** Whether only a field of the record itself would be it, and not one of an object in it. */
  readonly isOwn?: true
}

/** Looks out for some names. */
export interface NameWatch {
  /** Whether it has not seen all of them yet. */
  readonly isWaiting: boolean
  unseen(): readonly UnseenName[]
}

export class UnseenNames {
  /** Names of columns, which the head of a file has also where no row fills them. */
  readonly columns: ReadonlySet<string>
  readonly #watches: NameWatch[] = []

  constructor(columns: Iterable<string> = []) {
    this.columns = new Set(columns)
  }

  add(watch: NameWatch): void {
    this.#watches.push(watch)
  }

  get isWaiting(): boolean {
    return this.#watches.some(watch => watch.isWaiting)
  }

  all(): readonly UnseenName[] {
    return this.#watches.flatMap(watch => watch.unseen())
  }
}

/** Names that records have may be made of ids, as many as there are records. */
const knownMax = 1_000

/** Names that were seen, as many as are worth comparing with one that was not. */
export class KnownNames {
  readonly #names = new Set<string>()

  add(name: string): void {
    if (this.#names.size < knownMax) this.#names.add(name)
  }

  near(name: string): string | null {
    return nearMiss(name, [...this.#names])
  }
}

/** Looks out for the names of events that `event_names` gives other names. */
export class EventNameWatch implements NameWatch {
  readonly #waiting: Set<string>
  readonly #known = new KnownNames()
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

  unseen(): readonly UnseenName[] {
    // Without any event, the names of others say nothing.
    if (!this.#hasSeen) return []
    return [...this.#waiting].map(name => ({
      kind: 'event' as const,
      name,
      key: 'event_names',
      near: this.#known.near(name),
    }))
  }
}
