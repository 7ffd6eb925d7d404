// Reads the parts of Avro's binary encoding one after the other.

export class AvroCursor {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  /** @throws RangeError when fewer are left. */
  bytes(count: number): Buffer {
    const end = this.#at + count
    if (count < 0 || end > this.#bytes.length) throw new RangeError('a value is longer than what holds it')
    const bytes = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return bytes
  }

  /** An integer in zigzag encoding, seven bits to a byte. */
  long(): bigint {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.bytes(1)[0]!
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return (value >> 1n) ^ -(value & 1n)
    }
    throw new RangeError('an integer has more than ten bytes')
  }

  /** A length or an index. */
  size(): number {
    return Number(this.long())
  }

  /** How many items of a list or a map come next; 0 at its end. A negative count comes with the bytes that they take. */
  blockCount(): number {
    const count = this.size()
    if (count < 0) this.long()
    // Each takes a byte at least; a damaged count would go on for ever.
    if (Math.abs(count) > this.#bytes.length) throw new RangeError('a list is longer than what holds it')
    return Math.abs(count)
  }
}
