// Finds names in a configuration, such as the fields of a mapping, that no record has: usually a typing error, which would
// silently give wrong data. Only a rehearsal does this. It reads every record and always starts from the beginning, so the
// names seen need not be stored.

import { nearMiss } from '#core/nearest-name.ts'

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

/** Watches records for configured names. */
export interface NameWatch {
  /** Whether some names have not been seen yet. */
  readonly isWaiting: boolean
  unseen(): readonly UnseenName[]
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

  get isWaiting(): boolean {
    return this.#watches.some(watch => watch.isWaiting)
  }

  all(): readonly UnseenName[] {
    return this.#watches.flatMap(watch => watch.unseen())
  }
}

/** Bounded, since names in records may contain ids, so that there are as many as records. */
const knownMax = 1_000

/** Names that records have, for suggesting the name that was meant. */
export class KnownNames {
  readonly #names = new Set<string>()

  add(name: string): void {
    if (this.#names.size < knownMax) this.#names.add(name)
  }

  near(name: string): string | null {
    return nearMiss(name, [...this.#names])
  }
}

/** Watches for the event names that `event_names` renames. */
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
