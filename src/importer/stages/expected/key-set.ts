// A set of seen keys that needs 16 bytes per key or less, so that ten million keys of one day fit in memory. It stores a
// 64-bit hash of each key: with ten million keys, any two collide with a probability of three in a million.

import { hash } from 'node:crypto'

const startSlots = 1_024
const fullShare = 0.7

/** Stores the halves of a hash separately: a BigInt per key would take three times as long. */
export class KeySet {
  /** A slot is empty if both halves are 0; a hash of 0 becomes 1. */
  #low = new Uint32Array(startSlots)
  #high = new Uint32Array(startSlots)
  #size = 0

  get size(): number {
    return this.#size
  }

  /** @returns whether the key is new. */
  add(key: string): boolean {
    const bytes = hash('sha1', key, 'latin1')
    const low = readBits32(bytes, 0)
    const high = readBits32(bytes, 4)
    if (!this.#put(low === 0 && high === 0 ? 1 : low, high)) return false
    if (++this.#size > this.#low.length * fullShare) this.#grow()
    return true
  }

  #put(low: number, high: number): boolean {
    const mask = this.#low.length - 1
    for (let at = low & mask; ; at = (at + 1) & mask) {
      const [foundLow, foundHigh] = [this.#low[at]!, this.#high[at]!]
      if (foundLow === low && foundHigh === high) return false
      if (foundLow !== 0 || foundHigh !== 0) continue
      this.#low[at] = low
      this.#high[at] = high
      return true
    }
  }

  #grow(): void {
    const [low, high] = [this.#low, this.#high]
    this.#low = new Uint32Array(low.length * 2)
    this.#high = new Uint32Array(high.length * 2)
    for (let at = 0; at < low.length; at++) if (low[at] !== 0 || high[at] !== 0) this.#put(low[at]!, high[at]!)
  }
}

/** @param bytes one character per byte. */
function readBits32(bytes: string, at: number): number {
  let bits = 0
  for (let index = at + 3; index >= at; index--) bits = (bits << 8) | bytes.charCodeAt(index)
  return bits >>> 0
}
