// Keeps what was used last, within a bound. Entries are of two generations, and the older one is forgotten as a whole once
// the younger one is full: what is used again and again stays, at the cost of a plain map.

interface Entry<Value> {
  readonly value: Value
  readonly weight: number
}

/** What an entry takes beside its texts, in characters. */
const entryWeight = 100

export class RecentMap<Value> {
  readonly #weightMax: number
  #young = new Map<string, Entry<Value>>()
  #old = new Map<string, Entry<Value>>()
  #youngWeight = 0

  /** @param weightMax how many characters each of the generations may hold. */
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

  /** @param chars how many the value takes. */
  set(key: string, value: Value, chars: number): void {
    const weight = entryWeight + key.length + chars
    if (weight > this.#weightMax) this.delete(key)
    else this.#put(key, { value, weight })
  }

  delete(key: string): void {
    this.#youngWeight -= this.#young.get(key)?.weight ?? 0
    this.#young.delete(key)
    this.#old.delete(key)
  }

  clear(): void {
    this.#young.clear()
    this.#old.clear()
    this.#youngWeight = 0
  }

  /** What the older generation has of the key is hidden by it. */
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
