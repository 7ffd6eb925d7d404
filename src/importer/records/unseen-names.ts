// Finds names in a configuration, such as the fields of a mapping, that no record has: usually a typing error, which would
// silently give wrong data.

import { findIntendedName } from '#core/nearest-name.ts'
import { allowNull, type Static, Type } from './file-schema.ts'

export const unseenNameSchema = Type.Object({
  kind: Type.Enum(['field', 'event']),
  name: Type.String(),
  /** The configuration key that contains the name, such as `groups.company`. */
  key: Type.String(),
  /** A similar name that records have and that was probably meant; null if there is none. */
  near: allowNull(Type.String()),
  /** Set when the name means only a field of the record itself, not one of a nested object. */
  isOwn: Type.Optional(Type.Literal(true)),
})
export type UnseenName = Readonly<Static<typeof unseenNameSchema>>

/** The state of a `NameWatch`, which a stopped scan stores. */
export const watchStateSchema = Type.Object({
  hasSeen: Type.Boolean(),
  /** The names that have not been seen yet. */
  waiting: Type.Array(Type.String()),
  /** Names for suggestions. */
  known: Type.Array(Type.String()),
})
export type WatchState = Static<typeof watchStateSchema>

/** A name in a configuration that some record should have. */
export interface WatchedName extends Pick<UnseenName, 'kind' | 'name' | 'key'> {
  /** The name counts as seen when a record has any of these. */
  readonly paths: readonly string[]
  /** Whether it must be a field of the record itself, not of a nested object. */
  readonly isOwn?: boolean
}

export class UnseenNames {
  /** Column names from the headers of files; they count as seen even if no row fills them. */
  readonly columns: ReadonlySet<string>
  readonly #watches: NameWatch[] = []

  constructor(columns: Iterable<string> = []) {
    this.columns = new Set(columns)
  }

  watchFields(names: readonly WatchedName[]): NameWatch {
    const watch = new NameWatch(
      names.filter(({ paths }) => !paths.some(path => this.columns.has(path))),
      this.columns,
    )
    this.#watches.push(watch)
    return watch
  }

  watchEvents(names: Iterable<string>): NameWatch {
    const watch = new NameWatch(
      Array.from(names, name => ({ kind: 'event' as const, name, key: 'event_names', paths: [name] })),
    )
    this.#watches.push(watch)
    return watch
  }

  all(): readonly UnseenName[] {
    return this.#watches.flatMap(watch => watch.unseen())
  }

  states(): WatchState[] {
    return this.#watches.map(watch => watch.state())
  }

  /** @param states as `states` returned them, for the same configuration. */
  restore(states: readonly WatchState[]): void {
    for (const [index, watch] of this.#watches.entries()) watch.restore(states[index]!)
  }
}

/** Bounded, since names in records may contain ids, so that there are as many names as records. */
const knownMax = 1_000

/** Watches the fields of records, or their events, for configured names. */
export class NameWatch {
  #waiting: Map<string, WatchedName>
  /** Names that records have, for suggesting the name that was meant. */
  #known = new Set<string>()
  #hasSeen = false

  constructor(names: readonly WatchedName[], known: Iterable<string> = []) {
    this.#waiting = new Map(names.map(watched => [formatId(watched), watched]))
    for (const name of known) this.addKnown(name)
  }

  /** Whether any name is unseen; otherwise records need not be looked at. */
  get isWaiting(): boolean {
    return this.#waiting.size > 0
  }

  /** Looks at an event with this name. */
  see(name: string): void {
    this.#hasSeen = true
    this.#waiting.delete(name)
    this.addKnown(name)
  }

  /** Looks at the fields of a record. @returns the fields that are still unseen. */
  seeFields(hasField: (field: WatchedName) => boolean): Iterable<WatchedName> {
    this.#hasSeen = true
    for (const [id, field] of this.#waiting) if (hasField(field)) this.#waiting.delete(id)
    return this.#waiting.values()
  }

  addKnown(name: string): void {
    if (this.#known.size < knownMax) this.#known.add(name)
  }

  state(): WatchState {
    return { hasSeen: this.#hasSeen, waiting: [...this.#waiting.keys()], known: [...this.#known] }
  }

  restore({ hasSeen, waiting, known }: WatchState): void {
    this.#hasSeen = hasSeen
    const ids = new Set(waiting)
    this.#waiting = new Map([...this.#waiting].filter(([id]) => ids.has(id)))
    this.#known = new Set(known)
  }

  unseen(): readonly UnseenName[] {
    // Without any readable record, no name is known to be wrong.
    if (!this.#hasSeen) return []
    return Array.from(this.#waiting.values(), ({ kind, name, key, paths, isOwn }) => {
      const near = paths.map(path => findIntendedName(path, [...this.#known])).find(each => each !== null) ?? null
      // A nested field has exactly this name, but the key only accepts a field of the record itself.
      if (isOwn === true && near === name) return { kind, name, key, near: null, isOwn }
      return { kind, name, key, near }
    })
  }
}

function formatId({ kind, key, name }: WatchedName): string {
  return kind === 'event' ? name : `${key}\n${name}`
}
