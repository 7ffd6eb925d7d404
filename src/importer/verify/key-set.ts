// Which keys were seen, in 16 bytes a key or less: ten million keys of one day have to fit beside everything else. Keys
// are kept as 64 bits of a hash, so that two of ten million are taken for one with a chance of three in a million.

import { hash } from 'node:crypto'

const startSlots = 1_024
const fullShare = 0.7

export class KeySet {
  /** 0 is an empty slot; a hash of 0 becomes 1. */
  #slots = new BigUint64Array(startSlots)
  #size = 0

  get size(): number {
    return this.#size
  }

  /** @returns whether the key is new. */
  add(key: string): boolean {
    const value = hash('sha1', key, 'buffer').readBigUInt64LE() || 1n
    if (!this.#put(value)) return false
    if (++this.#size > this.#slots.length * fullShare) this.#grow()
    return true
  }

  #put(value: bigint): boolean {
    const mask = this.#slots.length - 1
    for (let at = Number(value & BigInt(mask)); ; at = (at + 1) & mask) {
      const found = this.#slots[at]!
      if (found === value) return false
      if (found !== 0n) continue
      this.#slots[at] = value
      return true
    }
  }

  #grow(): void {
    const before = this.#slots
    this.#slots = new BigUint64Array(before.length * 2)
    for (const value of before) if (value !== 0n) this.#put(value)
  }
}
