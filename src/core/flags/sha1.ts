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
 * The text comes in parts, because joining them would cost a quarter of the hash. A lone surrogate counts as U+FFFD.
 * Source: docs/wire/evaluation.md 5.3; vectors, tests/conformance/evaluation-vectors.json.
 */
export function sha1Top60(first: string, second = '', third = '', fourth = ''): number {
  start()
  if (!hashShortAscii(first, second, third, fourth)) hashBytes(first + second + third + fourth)
  // 32 bits exactly, then 28 more in one rounding: the same double as the 60-bit integer gives.
  return (h0 >>> 0) * 0x1000_0000 + (h1 >>> 4)
}

/** The whole digest in lower-case hex: what the tests compare with node:crypto. */
export function sha1Hex(text: string): string {
  start()
  if (!hashShortAscii(text, '', '', '')) hashBytes(text)
  return [h0, h1, h2, h3, h4].map(word => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

function start(): void {
  h0 = 0x67452301
  h1 = 0xefcdab89 | 0
  h2 = 0x98badcfe | 0
  h3 = 0x10325476
  h4 = 0xc3d2e1f0 | 0
}

/** One block straight from the texts; false, with nothing done, when they are longer than that or not ASCII. */
function hashShortAscii(first: string, second: string, third: string, fourth: string): boolean {
  const length = first.length + second.length + third.length + fourth.length
  if (length > blockBytes - 9) return false
  words.fill(0, 0, 15)
  if (!put(first, 0) || !put(second, first.length)) return false
  if (!put(third, first.length + second.length) || !put(fourth, length - fourth.length)) return false
  words[length >> 2] = words[length >> 2]! | (0x80 << (24 - 8 * (length & 3)))
  words[15] = length * 8
  compress()
  return true
}

/** Writes an ASCII text into the zeroed block from byte `at` on; false when it is not ASCII. */
function put(text: string, at: number): boolean {
  let index = at >> 2
  let shift = 24 - 8 * (at & 3)
  let word = words[index]!
  for (let from = 0; from < text.length; from++) {
    const unit = text.charCodeAt(from)
    if (unit > 0x7f) return false
    word |= unit << shift
    shift -= 8
    if (shift < 0) {
      words[index++] = word
      word = 0
      shift = 24
    }
  }
  words[index] = word
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
  // Five rounds at a time: then every variable is back in its place, and none has to be moved.
  for (let index = 0; index < 20; index += 5) {
    e = (((a << 5) | (a >>> 27)) + (d ^ (b & (c ^ d))) + e + 0x5a827999 + words[index]!) | 0
    b = (b << 30) | (b >>> 2)
    d = (((e << 5) | (e >>> 27)) + (c ^ (a & (b ^ c))) + d + 0x5a827999 + words[index + 1]!) | 0
    a = (a << 30) | (a >>> 2)
    c = (((d << 5) | (d >>> 27)) + (b ^ (e & (a ^ b))) + c + 0x5a827999 + words[index + 2]!) | 0
    e = (e << 30) | (e >>> 2)
    b = (((c << 5) | (c >>> 27)) + (a ^ (d & (e ^ a))) + b + 0x5a827999 + words[index + 3]!) | 0
    d = (d << 30) | (d >>> 2)
    a = (((b << 5) | (b >>> 27)) + (e ^ (c & (d ^ e))) + a + 0x5a827999 + words[index + 4]!) | 0
    c = (c << 30) | (c >>> 2)
  }
  for (let index = 20; index < 40; index += 5) {
    e = (((a << 5) | (a >>> 27)) + (b ^ c ^ d) + e + 0x6ed9eba1 + words[index]!) | 0
    b = (b << 30) | (b >>> 2)
    d = (((e << 5) | (e >>> 27)) + (a ^ b ^ c) + d + 0x6ed9eba1 + words[index + 1]!) | 0
    a = (a << 30) | (a >>> 2)
    c = (((d << 5) | (d >>> 27)) + (e ^ a ^ b) + c + 0x6ed9eba1 + words[index + 2]!) | 0
    e = (e << 30) | (e >>> 2)
    b = (((c << 5) | (c >>> 27)) + (d ^ e ^ a) + b + 0x6ed9eba1 + words[index + 3]!) | 0
    d = (d << 30) | (d >>> 2)
    a = (((b << 5) | (b >>> 27)) + (c ^ d ^ e) + a + 0x6ed9eba1 + words[index + 4]!) | 0
    c = (c << 30) | (c >>> 2)
  }
  for (let index = 40; index < 60; index += 5) {
    e = (((a << 5) | (a >>> 27)) + ((b & c) | (d & (b | c))) + e + 0x8f1bbcdc + words[index]!) | 0
    b = (b << 30) | (b >>> 2)
    d = (((e << 5) | (e >>> 27)) + ((a & b) | (c & (a | b))) + d + 0x8f1bbcdc + words[index + 1]!) | 0
    a = (a << 30) | (a >>> 2)
    c = (((d << 5) | (d >>> 27)) + ((e & a) | (b & (e | a))) + c + 0x8f1bbcdc + words[index + 2]!) | 0
    e = (e << 30) | (e >>> 2)
    b = (((c << 5) | (c >>> 27)) + ((d & e) | (a & (d | e))) + b + 0x8f1bbcdc + words[index + 3]!) | 0
    d = (d << 30) | (d >>> 2)
    a = (((b << 5) | (b >>> 27)) + ((c & d) | (e & (c | d))) + a + 0x8f1bbcdc + words[index + 4]!) | 0
    c = (c << 30) | (c >>> 2)
  }
  for (let index = 60; index < 80; index += 5) {
    e = (((a << 5) | (a >>> 27)) + (b ^ c ^ d) + e + 0xca62c1d6 + words[index]!) | 0
    b = (b << 30) | (b >>> 2)
    d = (((e << 5) | (e >>> 27)) + (a ^ b ^ c) + d + 0xca62c1d6 + words[index + 1]!) | 0
    a = (a << 30) | (a >>> 2)
    c = (((d << 5) | (d >>> 27)) + (e ^ a ^ b) + c + 0xca62c1d6 + words[index + 2]!) | 0
    e = (e << 30) | (e >>> 2)
    b = (((c << 5) | (c >>> 27)) + (d ^ e ^ a) + b + 0xca62c1d6 + words[index + 3]!) | 0
    d = (d << 30) | (d >>> 2)
    a = (((b << 5) | (b >>> 27)) + (c ^ d ^ e) + a + 0xca62c1d6 + words[index + 4]!) | 0
    c = (c << 30) | (c >>> 2)
  }
  h0 = (h0 + a) | 0
  h1 = (h1 + b) | 0
  h2 = (h2 + c) | 0
  h3 = (h3 + d) | 0
  h4 = (h4 + e) | 0
}
