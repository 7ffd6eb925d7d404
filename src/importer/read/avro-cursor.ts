// Reads the parts of Avro's binary encoding one after the other.

import { recordBytesMax, recordValuesMax } from './split-records.ts'

/** The names of fields and symbols stand once in the schema, and in the JSON of a record with each value. */
export const recordNameCharsMax = recordBytesMax

export class AvroCursor {
  readonly #bytes: Buffer
  #at = 0
  #valuesLeft = recordValuesMax
  #nameCharsLeft = recordNameCharsMax

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** How many bytes were read. */
  get at(): number {
    return this.#at
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  beginRecord(): void {
    this.#valuesLeft = recordValuesMax
    this.#nameCharsLeft = recordNameCharsMax
  }

  /**
   * Values such as null take no bytes, so the bytes of a record say nothing of how many it may claim to have.
   * @throws RangeError when the record has more values with these than it may.
   */
  countValues(count: number): void {
    this.#valuesLeft -= count
    if (this.#valuesLeft < 0) throw new RangeError(`a record claims more than ${recordValuesMax} values`)
  }

  /** @throws RangeError when the names of the record are longer with these than they may be. */
  countNames(chars: number): void {
    this.#nameCharsLeft -= chars
    if (this.#nameCharsLeft < 0) throw new RangeError(`a record repeats more than ${recordNameCharsMax} bytes of names`)
  }

  /** @throws RangeError when fewer are left. */
  bytes(count: number): Buffer {
    const end = this.#at + count
    // A schema may give any number as the size of a value.
    if (!(Number.isSafeInteger(count) && count >= 0 && end <= this.#bytes.length))
      throw new RangeError('a value is longer than what holds it')
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
    this.countValues(Math.abs(count))
    return Math.abs(count)
  }
}
