// Writes rows in ClickHouse's RowBinary format straight into one buffer: fields without names, in the order of the INSERT.
// event-rows.ts decides which fields a row has. Source: ours, docs/decisions/0010-event-rows-as-row-binary.md.

export class RowBinaryWriter {
  #bytes: Buffer
  #end = 0

  constructor(initialBytes = 64 * 1024) {
    this.#bytes = Buffer.allocUnsafe(initialBytes)
  }

  get byteLength(): number {
    return this.#end
  }

  get capacity(): number {
    return this.#bytes.length
  }

  /** The bytes that were written and not truncated. The buffer is valid until the next write. */
  written(): Buffer {
    return this.#bytes.subarray(0, this.#end)
  }

  /** Drops everything after `position`, such as a row that turned out to be unwritable, or all rows (0). */
  truncate(position: number): void {
    this.#end = position
  }

  uint8(value: number): void {
    this.#reserve(1)
    this.#bytes[this.#end++] = value
  }

  uint32(value: number): void {
    this.#reserve(4)
    this.#end = this.#bytes.writeUInt32LE(value, this.#end)
  }

  /** Writes an Int64 or UInt64: a whole number that a double holds exactly, plus `highWord` × 2^32. */
  int64(value: number, highWord = 0): void {
    this.#reserve(8)
    const high = Math.floor(value / 0x1_0000_0000)
    this.#bytes.writeInt32LE((value - high * 0x1_0000_0000) | 0, this.#end)
    this.#bytes.writeInt32LE(high + highWord, this.#end + 4)
    this.#end += 8
  }

  /**
   * Writes a UUID. @param text in canonical form, in lower or upper case. @returns false, and writes nothing, if it is not
   * a UUID.
   */
  uuid(text: string): boolean {
    if (text.length !== 36) return false
    this.#reserve(16)
    const bytes = this.#bytes
    const end = this.#end
    let digitCount = 0
    for (let index = 0; index < 36; index++) {
      const code = text.charCodeAt(index)
      if (index === 8 || index === 13 || index === 18 || index === 23) {
        if (code !== 45) return false
        continue
      }
      const digit = code < 128 ? hexDigits[code]! : 255
      if (digit === 255) return false
      // Two little-endian halves: byte 0 of the text is byte 7 of the first half.
      const at = end + ((digitCount >> 1) ^ 7)
      bytes[at] = (digitCount & 1) === 0 ? digit << 4 : bytes[at]! | digit
      digitCount++
    }
    this.#end = end + 16
    return true
  }

  /** Writes the length of the text in UTF-8, then the text. A lone surrogate, which UTF-8 cannot hold, becomes U+FFFD. */
  text(text: string): void {
    const { length } = text
    this.#reserve(3 * length + 5)
    if (length < 24) {
      if (this.#shortAscii(text)) return
    }
    // The length in bytes precedes the text. Assumes the length of an ASCII text, and moves the text if the assumption was
    // wrong.
    const guessed = countVarintBytes(length)
    const byteCount = this.#bytes.write(text, this.#end + guessed, 'utf8')
    const needed = countVarintBytes(byteCount)
    if (needed !== guessed) {
      this.#bytes.copyWithin(this.#end + needed, this.#end + guessed, this.#end + guessed + byteCount)
    }
    this.#varint(byteCount)
    this.#end += byteCount
  }

  /** Writes the number of bytes, then the bytes. */
  byteString(value: Uint8Array): void {
    this.#reserve(value.length + 5)
    this.#varint(value.length)
    this.#bytes.set(value, this.#end)
    this.#end += value.length
  }

  map(entries: ReadonlyMap<string, string>): void {
    this.#reserve(5)
    this.#varint(entries.size)
    for (const [key, value] of entries) {
      this.text(key)
      this.text(value)
    }
  }

  /** Writes a short text if it is ASCII: a loop over a few characters is faster than a call into C++. */
  #shortAscii(text: string): boolean {
    const bytes = this.#bytes
    const end = this.#end
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index)
      if (code > 127) return false
      bytes[end + 1 + index] = code
    }
    bytes[end] = text.length
    this.#end = end + 1 + text.length
    return true
  }

  #varint(value: number): void {
    let rest = value
    while (rest > 127) {
      this.#bytes[this.#end++] = (rest & 127) | 128
      rest >>>= 7
    }
    this.#bytes[this.#end++] = rest
  }

  #reserve(byteCount: number): void {
    if (this.#end + byteCount <= this.#bytes.length) return
    const grown = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, this.#end + byteCount))
    this.#bytes.copy(grown, 0, 0, this.#end)
    this.#bytes = grown
  }
}

function countVarintBytes(value: number): number {
  let count = 1
  for (let rest = value; rest > 127; rest >>>= 7) count++
  return count
}

/** The value of each ASCII character as a hexadecimal digit; 255 for a character that is not a hexadecimal digit. */
const hexDigits = Uint8Array.from({ length: 128 }, (_, code) => {
  const digit = Number.parseInt(String.fromCharCode(code), 16)
  return Number.isNaN(digit) ? 255 : digit
})
