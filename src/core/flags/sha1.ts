// SHA-1 of a short text, for flag hashes: our own, because handing 30 bytes to node:crypto costs four times as much as
// hashing them. Only the 60 bits that a flag hash reads are given out; nothing here is meant for secrets.

const blockBytes = 64
/** The message schedule of one block; safe to share, since hashing never waits. */
const words = new Int32Array(80)
const encoder = new TextEncoder()
let scratch = new Uint8Array(1024)

let h0 = 0
let h1 = 0
let h2 = 0
let h3 = 0
let h4 = 0

/**
 * The first 15 hex digits of the SHA-1 of a text's UTF-8 bytes, read as an unsigned integer and rounded to a double.
 * A lone surrogate counts as U+FFFD.
 * Source: docs/wire/evaluation.md 5.3; vectors, tests/conformance/evaluation-vectors.json.
 */
export function sha1Top60(text: string): number {
  hash(text)
  // 32 bits exactly, then 28 more in one rounding: the same double as the 60-bit integer gives.
  return (h0 >>> 0) * 0x1000_0000 + (h1 >>> 4)
}

/** The whole digest in lower-case hex: what the tests compare with node:crypto. */
export function sha1Hex(text: string): string {
  hash(text)
  return [h0, h1, h2, h3, h4].map(word => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

function hash(text: string): void {
  h0 = 0x67452301
  h1 = 0xefcdab89 | 0
  h2 = 0x98badcfe | 0
  h3 = 0x10325476
  h4 = 0xc3d2e1f0 | 0
  if (!hashShortAscii(text)) hashBytes(text)
}

/** One block straight from the text; false, with nothing done, when it is longer than that or not ASCII. */
function hashShortAscii(text: string): boolean {
  const length = text.length
  if (length > blockBytes - 9) return false
  let word = 0
  for (let index = 0; index < length; index++) {
    const unit = text.charCodeAt(index)
    if (unit > 0x7f) return false
    word = (word << 8) | unit
    if ((index & 3) === 3) words[index >> 2] = word
  }
  const rest = length & 3
  let next = length >> 2
  words[next++] = rest === 0 ? 0x80 << 24 : ((word << 8) | 0x80) << (8 * (3 - rest))
  while (next < 15) words[next++] = 0
  words[15] = length * 8
  compress()
  return true
}

function hashBytes(text: string): void {
  const roomBytes = text.length * 3 + blockBytes + 9
  if (scratch.length < roomBytes) scratch = new Uint8Array(roomBytes)
  const length = encoder.encodeInto(text, scratch).written
  const blockCount = ((length + 8) >> 6) + 1
  const total = blockCount * blockBytes
  scratch.fill(0, length, total)
  scratch[length] = 0x80
  for (let start = 0; start < total; start += blockBytes) {
    for (let index = 0, at = start; index < 16; index++, at += 4) {
      words[index] =
        (scratch[at]! << 24) | (scratch[at + 1]! << 16) | (scratch[at + 2]! << 8) | (scratch[at + 3]! as number)
    }
    if (start + blockBytes === total) {
      words[14] = Math.floor(length / 0x2000_0000)
      words[15] = length << 3
    }
    compress()
  }
}

function compress(): void {
  for (let index = 16; index < 80; index++) {
    const mixed = words[index - 3]! ^ words[index - 8]! ^ words[index - 14]! ^ words[index - 16]!
    words[index] = (mixed << 1) | (mixed >>> 31)
  }
  let a = h0
  let b = h1
  let c = h2
  let d = h3
  let e = h4
  let next = 0
  for (let index = 0; index < 20; index++) {
    next = (((a << 5) | (a >>> 27)) + (d ^ (b & (c ^ d))) + e + 0x5a827999 + words[index]!) | 0
    e = d
    d = c
    c = (b << 30) | (b >>> 2)
    b = a
    a = next
  }
  for (let index = 20; index < 40; index++) {
    next = (((a << 5) | (a >>> 27)) + (b ^ c ^ d) + e + 0x6ed9eba1 + words[index]!) | 0
    e = d
    d = c
    c = (b << 30) | (b >>> 2)
    b = a
    a = next
  }
  for (let index = 40; index < 60; index++) {
    next = (((a << 5) | (a >>> 27)) + ((b & c) | (d & (b | c))) + e + 0x8f1bbcdc + words[index]!) | 0
    e = d
    d = c
    c = (b << 30) | (b >>> 2)
    b = a
    a = next
  }
  for (let index = 60; index < 80; index++) {
    next = (((a << 5) | (a >>> 27)) + (b ^ c ^ d) + e + 0xca62c1d6 + words[index]!) | 0
    e = d
    d = c
    c = (b << 30) | (b >>> 2)
    b = a
    a = next
  }
  h0 = (h0 + a) | 0
  h1 = (h1 + b) | 0
  h2 = (h2 + c) | 0
  h3 = (h3 + d) | 0
  h4 = (h4 + e) | 0
}
