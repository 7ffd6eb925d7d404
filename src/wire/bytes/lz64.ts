// LZString's base64 form, `compression=lz64`, which browsers without gzip and React Native sent until 2024.
// Decompresses with a bound on the output, since kilobytes can expand to gigabytes. `capture-body.ts` and
// `flags-body.ts` read the text.

export type Lz64Text =
  /** The text may hold lone surrogates, because its units are not checked. */
  { readonly kind: 'text'; readonly text: string } | { readonly kind: 'too_large' } | { readonly kind: 'broken' }

/**
 * Undoes `LZString.compressToBase64`, in time and memory proportional to the input and the bound.
 * @param base64 ASCII, padded or not; a blank counts as `+`, which forms turn into blanks.
 * @param bytesMax bound on the text in UTF-8; decompression stops as soon as the text is certain to exceed it.
 * Source: docs/wire/ingestion.md 1.4; docs/wire/evaluation.md 1.3; docs/decisions/0014-own-lz64.md.
 */
export function decompressLz64(base64: Uint8Array, bytesMax: number): Lz64Text {
  const input = new BitReader(base64)
  // `bytesMax` bounds the units too, since each unit takes at least a byte of UTF-8.
  const output = new UnitWriter(base64.length * unitsPerByteGuess, bytesMax)
  const entries = new Dictionary()

  const first = input.read(2)
  if (first === endCode) return { kind: 'text', text: '' }
  const firstUnit = readUnit(input, first)
  if (firstUnit === -1) return broken
  if (!output.push(firstUnit)) return tooLarge
  entries.add(0, 1)
  // The last entry written; together with the unit after it in the output, it makes the next entry.
  let lastStart = 0
  let lastLength = 1

  for (;;) {
    const code = input.read(entries.codeBits)
    if (code === endCode) return toLimitedText(output.toString(), bytesMax)
    const start = output.length
    let length = 1
    if (code === unit8Code || code === unit16Code) {
      const unit = readUnit(input, code)
      if (unit === -1) return broken
      if (!output.push(unit)) return tooLarge
      entries.add(start, 1)
    } else {
      if (code < firstEntryCode || code > entries.nextCode) return broken
      // The entry that this code itself completes is the last entry followed by its own first unit.
      const isUnfinished = code === entries.nextCode
      const from = isUnfinished ? lastStart : entries.start(code)
      length = isUnfinished ? lastLength + 1 : entries.length(code)
      if (!output.copy(from, length)) return tooLarge
    }
    entries.add(lastStart, lastLength + 1)
    lastStart = start
    lastLength = length
  }
}

function toLimitedText(text: string, bytesMax: number): Lz64Text {
  return Buffer.byteLength(text) > bytesMax ? tooLarge : { kind: 'text', text }
}

const broken: Lz64Text = { kind: 'broken' }
const tooLarge: Lz64Text = { kind: 'too_large' }

/** Codes with a special meaning; codes from 3 on name entries. */
const unit8Code = 0
const unit16Code = 1
const endCode = 2
const firstEntryCode = 3
/** The expected ratio of output to input: JSON of events usually shrinks to a fifth. */
const unitsPerByteGuess = 5

/** The unit that `unit8Code` or `unit16Code` announces; -1 for any other code, and at the end of the input. */
function readUnit(input: BitReader, code: number): number {
  if (code === unit8Code) return input.read(8)
  return code === unit16Code ? input.read(16) : -1
}

/** Reads bits from base64 characters, the highest of each character first; the first bit read is a value's lowest. */
class BitReader {
  readonly #base64: Uint8Array
  readonly #end: number
  #at = 0
  #sextet = 0
  /** Bits of the current character that have not been read yet. */
  #bitsLeft = 0

  constructor(base64: Uint8Array) {
    this.#base64 = base64
    let end = base64.length
    while (end > 0 && base64[end - 1] === paddingByte) end--
    this.#end = end
  }

  /** Returns -1 at the end of the input and at a character that is not base64. */
  read(bitCount: number): number {
    let value = 0
    for (let bit = 0; bit < bitCount; bit++) {
      if (this.#bitsLeft === 0) {
        if (this.#at === this.#end) return -1
        this.#sextet = sextets[this.#base64[this.#at++]!]!
        if (this.#sextet === notBase64) return -1
        this.#bitsLeft = 6
      }
      this.#bitsLeft--
      value |= ((this.#sextet >> this.#bitsLeft) & 1) << bit
    }
    return value
  }
}

/** Collects the decompressed text. */
class UnitWriter {
  readonly #unitsMax: number
  #units: Uint16Array<ArrayBuffer>
  length = 0

  constructor(unitsExpected: number, unitsMax: number) {
    this.#unitsMax = unitsMax
    this.#units = new Uint16Array(Math.min(unitsExpected, unitsMax))
  }

  /** Returns false when the text would exceed the bound. */
  push(unit: number): boolean {
    if (!this.#grow(1)) return false
    this.#units[this.length++] = unit
    return true
  }

  /** Appends a copy of the output at `from`; the last unit copied may be the first one appended. */
  copy(from: number, length: number): boolean {
    if (!this.#grow(length)) return false
    this.#units.copyWithin(this.length, from, from + length)
    this.#units[this.length + length - 1] = this.#units[from + length - 1]!
    this.length += length
    return true
  }

  toString(): string {
    return Buffer.from(this.#units.buffer, 0, this.length * 2).toString('utf16le')
  }

  #grow(unitCount: number): boolean {
    const needed = this.length + unitCount
    if (needed <= this.#units.length) return true
    if (needed > this.#unitsMax) return false
    const larger = new Uint16Array(Math.min(Math.max(needed, this.#units.length * 2), this.#unitsMax))
    larger.set(this.#units)
    this.#units = larger
    return true
  }
}

/** The entries that codes stand for. Each is a stretch of the output: an earlier entry and the unit after it. */
class Dictionary {
  /** By code: the start and the length of the entry in the output, alternating. */
  #stretches = new Int32Array(512)
  nextCode = firstEntryCode
  codeBits = 3
  /** How many entries can still be added before codes get one bit wider. The first entry is not counted. */
  #untilWider = 5

  add(start: number, length: number): void {
    const at = this.nextCode * 2
    if (at === this.#stretches.length) {
      const larger = new Int32Array(at * 2)
      larger.set(this.#stretches)
      this.#stretches = larger
    }
    this.#stretches[at] = start
    this.#stretches[at + 1] = length
    this.nextCode++
    if (--this.#untilWider === 0) this.#untilWider = 2 ** this.codeBits++
  }

  start(code: number): number {
    return this.#stretches[code * 2]!
  }

  length(code: number): number {
    return this.#stretches[code * 2 + 1]!
  }
}

const paddingByte = 0x3d
const notBase64 = 64

const sextets = new Uint8Array(256).fill(notBase64)
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
for (let value = 0; value < alphabet.length; value++) sextets[alphabet.charCodeAt(value)] = value
sextets[0x20] = alphabet.indexOf('+')
