// A model of the properties of a person or group: the live values, and below them everything that imports ever wrote to
// a key, from which its value is recomputed each time.
// Source: docs/wire/import.md 3.4 R1–R6.

export type Json = unknown
export type Bag = Record<string, Json>

export interface ImportWrite {
  readonly kind: 'set' | 'once' | 'unset'
  readonly timestampMs: number
  readonly uuid: string
  readonly value?: Json
}

interface Entry {
  /** Once there is a live value, imports no longer matter. */
  live: { readonly value: Json; readonly once: boolean } | null
  imports: readonly ImportWrite[]
}

export class ModelProperties {
  readonly #entries = new Map<string, Entry>()

  value(key: string): Json | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    return entry.live === null ? shownOf(entry.imports)?.value : entry.live.value
  }

  has(key: string): boolean {
    const entry = this.#entries.get(key)
    return entry !== undefined && (entry.live !== null || shownOf(entry.imports) !== undefined)
  }

  /** Whether the last write was not a live `$set`. */
  isMarked(key: string): boolean {
    const entry = this.#entries.get(key)
    return entry !== undefined && (entry.live === null || entry.live.once)
  }

  shown(): Bag {
    return Object.fromEntries([...this.#entries.keys()].filter(key => this.has(key)).map(key => [key, this.value(key)]))
  }

  setLive(key: string, value: Json, once: boolean): void {
    this.#entries.set(key, { live: { value, once }, imports: [] })
  }

  remove(key: string): void {
    this.#entries.delete(key)
  }

  /** @returns whether this has to be stored. */
  addImport(key: string, write: ImportWrite): boolean {
    const entry = this.#entries.get(key) ?? { live: null, imports: [] }
    if (entry.live !== null) return false
    const imports = [...entry.imports, write]
    this.#entries.set(key, { live: null, imports })
    return sumUp(entry.imports) !== sumUp(imports)
  }

  /** Applies what the survivor takes over in a merge. */
  absorb(other: ModelProperties): void {
    for (const [key, theirs] of other.#entries) {
      const ours = this.#entries.get(key) ?? { live: null, imports: [] }
      if (ours.live !== null) continue
      if (theirs.live !== null) this.#entries.set(key, theirs)
      else this.#entries.set(key, { live: null, imports: [...ours.imports, ...theirs.imports] })
    }
  }
}

function isLater(a: ImportWrite, b: ImportWrite): boolean {
  return a.timestampMs > b.timestampMs || (a.timestampMs === b.timestampMs && a.uuid > b.uuid)
}

/** The last `$set` or `$unset`; within one event, the `$unset`. */
function latestOf(writes: readonly ImportWrite[]): ImportWrite | undefined {
  let latest: ImportWrite | undefined
  for (const write of writes) {
    if (write.kind === 'once') continue
    if (latest === undefined || isLater(write, latest)) latest = write
    else if (!isLater(latest, write) && write.kind === 'unset') latest = write
  }
  return latest
}

function firstOnceOf(writes: readonly ImportWrite[]): ImportWrite | undefined {
  let first: ImportWrite | undefined
  for (const write of writes) if (write.kind === 'once' && (first === undefined || isLater(first, write))) first = write
  return first
}

/** A `$set` wins over any `$set_once`; a `$set_once` counts unless a later `$unset` removed it. */
function shownOf(writes: readonly ImportWrite[]): ImportWrite | undefined {
  const latest = latestOf(writes)
  const once = firstOnceOf(writes)
  if (latest?.kind === 'set') return latest
  return once !== undefined && (latest === undefined || isLater(once, latest)) ? once : undefined
}

function sumUp(writes: readonly ImportWrite[]): string {
  return JSON.stringify(
    [latestOf(writes), firstOnceOf(writes)].map(write => [write?.kind, write?.timestampMs, write?.uuid]),
  )
}
