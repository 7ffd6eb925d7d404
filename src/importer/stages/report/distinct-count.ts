// Counts distinct texts: exactly up to a bound, then with HyperLogLog, whose error is given.

import { hash } from 'node:crypto'

export interface DistinctEstimate {
  readonly count: number
  /** Standard error as a share of the count; 0 for an exact one. */
  readonly error: number
}

const registerBits = 14
const registerCount = 2 ** registerBits
const errorOfEstimate = 1.04 / Math.sqrt(registerCount)
/** The correction factor for 2^14 registers. Source: Flajolet et al., HyperLogLog, 2007, figure 3. */
const alpha = 0.7213 / (1 + 1.079 / registerCount)

export class DistinctCount {
  readonly #exactMax: number
  #exact: Set<string> | null = new Set()
  readonly #registers = new Uint8Array(registerCount)

  constructor(exactMax: number) {
    this.#exactMax = exactMax
  }

  add(text: string): void {
    if (this.#exact !== null) {
      this.#exact.add(text)
      if (this.#exact.size <= this.#exactMax) return
      const all = this.#exact
      this.#exact = null
      for (const each of all) this.#register(each)
    } else this.#register(text)
  }

  estimate(): DistinctEstimate {
    if (this.#exact !== null) return { count: this.#exact.size, error: 0 }
    let sum = 0
    let zeros = 0
    for (const rank of this.#registers) {
      sum += 2 ** -rank
      if (rank === 0) zeros++
    }
    const raw = (alpha * registerCount ** 2) / sum
    const isSmall = raw <= 2.5 * registerCount && zeros > 0
    const count = Math.round(isSmall ? registerCount * Math.log(registerCount / zeros) : raw)
    return { count, error: errorOfEstimate }
  }

  #register(text: string): void {
    const bytes = hash('sha1', text, 'buffer')
    const index = bytes.readUInt32BE(0) >>> (32 - registerBits)
    const rank = Math.clz32(bytes.readUInt32BE(4)) + 1
    if (rank > this.#registers[index]!) this.#registers[index] = rank
  }
}
