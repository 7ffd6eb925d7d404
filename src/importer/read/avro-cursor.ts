// Reads Avro's binary encoding sequentially.

import { recordBytesMax, recordValuesMax } from './split-records.ts'

/** The schema contains each name once, but the JSON of a record repeats it with every value. */
export const recordNameCharsMax = recordBytesMax

export class AvroCursor {
  readonly #bytes: Buffer
  #at = 0
  #valuesLeft = recordValuesMax
  #nameCharsLeft = recordNameCharsMax

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** Bytes read so far. */
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
   * Values such as null take no bytes, so the size of a record does not limit how many values it can claim.
   * @throws RangeError when the record has too many values with these.
   */
  countValues(count: number): void {
    this.#valuesLeft -= count
    if (this.#valuesLeft < 0) throw new RangeError(`a record claims more than ${recordValuesMax} values`)
  }

  /** @throws RangeError when the names in the record, including these, are too long in total. */
  countNames(chars: number): void {
    this.#nameCharsLeft -= chars
    if (this.#nameCharsLeft < 0) throw new RangeError(`a record repeats more than ${recordNameCharsMax} bytes of names`)
  }

  /** @throws RangeError when fewer bytes remain. */
  bytes(count: number): Buffer {
    const end = this.#at + count
    // A schema can contain any number as the size of a value.
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

  /** The number of items in the next block of a list or a map; 0 at its end. A negative count is followed by a size. */
  blockCount(): number {
    const count = this.size()
    if (count < 0) this.long()
    this.countValues(Math.abs(count))
    return Math.abs(count)
  }
}
