// A bounded cache of recently used entries, as cheap as a plain map. It has two generations: when the younger one is full,
// it replaces the older one. A hit in the older generation moves the entry to the younger one, so hot entries stay.

interface Entry<Value> {
  readonly value: Value
  readonly weight: number
}

/** The memory that an entry takes in addition to its value, in characters. */
const entryWeight = 100

export class RecentMap<Value> {
  readonly #weightMax: number
  #young = new Map<string, Entry<Value>>()
  #old = new Map<string, Entry<Value>>()
  #youngWeight = 0

  /** @param weightMax how many characters each generation may hold. */
  constructor(weightMax: number) {
    this.#weightMax = weightMax
  }

  get(key: string): Value | undefined {
    const young = this.#young.get(key)
    if (young !== undefined) return young.value
    const old = this.#old.get(key)
    if (old !== undefined) this.#put(key, old)
    return old?.value
  }

  /** @param chars the size of the value in characters. */
  set(key: string, value: Value, chars: number): void {
    const weight = entryWeight + key.length + chars
    if (weight <= this.#weightMax) {
      this.#put(key, { value, weight })
      return
    }
    this.#youngWeight -= this.#young.get(key)?.weight ?? 0
    this.#young.delete(key)
    this.#old.delete(key)
  }

  /** A stale entry with this key may stay in the older generation, since `get` looks in the younger one first. */
  #put(key: string, entry: Entry<Value>): void {
    const added = entry.weight - (this.#young.get(key)?.weight ?? 0)
    if (this.#youngWeight + added <= this.#weightMax) this.#youngWeight += added
    else {
      this.#old = this.#young
      this.#young = new Map()
      this.#youngWeight = entry.weight
    }
    this.#young.set(key, entry)
  }
}
