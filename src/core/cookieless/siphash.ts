// SipHash-2-4 with 128 bits of result, in 32-bit arithmetic: BigInt would take fifty times as long. Each 64-bit word is
// a pair of integers, `h` the upper half. Source: the reference of Aumasson and Bernstein.

let v0h = 0
let v0l = 0
let v1h = 0
let v1l = 0
let v2h = 0
let v2l = 0
let v3h = 0
let v3l = 0

/**
 * @param key 16 bytes, two little-endian words.
 * @returns the two words of the result as 16 bytes, each little-endian.
 */
export function sipHash128(key: Uint8Array, message: Uint8Array): Uint8Array<ArrayBuffer> {
  const k0l = readWord(key, 0)
  const k0h = readWord(key, 4)
  const k1l = readWord(key, 8)
  const k1h = readWord(key, 12)
  v0h = k0h ^ 0x736f6d65
  v0l = k0l ^ 0x70736575
  v1h = k1h ^ 0x646f7261
  v1l = k1l ^ 0x6e646f6d ^ 0xee
  v2h = k0h ^ 0x6c796765
  v2l = k0l ^ 0x6e657261
  v3h = k1h ^ 0x74656462
  v3l = k1l ^ 0x79746573
  const { length } = message
  const whole = length - (length % 8)
  for (let at = 0; at < whole; at += 8) compress(readWord(message, at + 4), readWord(message, at))
  // The last word has the remaining bytes, and the length in its uppermost byte.
  let lastL = 0
  let lastH = length << 24
  for (let at = whole; at < length; at++) {
    const place = at - whole
    if (place < 4) lastL |= message[at]! << (8 * place)
    else lastH |= message[at]! << (8 * (place - 4))
  }
  compress(lastH, lastL)
  const result = new Uint8Array(16)
  v2l ^= 0xee
  finish(result, 0)
  v1l ^= 0xdd
  finish(result, 8)
  return result
}

function compress(h: number, l: number): void {
  v3h ^= h
  v3l ^= l
  round()
  round()
  v0h ^= h
  v0l ^= l
}

function finish(result: Uint8Array, at: number): void {
  for (let count = 0; count < 4; count++) round()
  writeWord(result, at, v0l ^ v1l ^ v2l ^ v3l)
  writeWord(result, at + 4, v0h ^ v1h ^ v2h ^ v3h)
}

function round(): void {
  // v0 += v1; v1 = v1 <<< 13 ^ v0; v0 <<<= 32
  let sum = (v0l >>> 0) + (v1l >>> 0)
  let high = (v0h + v1h + (sum > 0xffffffff ? 1 : 0)) | 0
  let low = sum | 0
  let turned = (v1h << 13) | (v1l >>> 19)
  v1l = ((v1l << 13) | (v1h >>> 19)) ^ low
  v1h = turned ^ high
  v0h = low
  v0l = high
  // v2 += v3; v3 = v3 <<< 16 ^ v2
  sum = (v2l >>> 0) + (v3l >>> 0)
  v2h = (v2h + v3h + (sum > 0xffffffff ? 1 : 0)) | 0
  v2l = sum | 0
  turned = (v3h << 16) | (v3l >>> 16)
  v3l = ((v3l << 16) | (v3h >>> 16)) ^ v2l
  v3h = turned ^ v2h
  // v0 += v3; v3 = v3 <<< 21 ^ v0
  sum = (v0l >>> 0) + (v3l >>> 0)
  v0h = (v0h + v3h + (sum > 0xffffffff ? 1 : 0)) | 0
  v0l = sum | 0
  turned = (v3h << 21) | (v3l >>> 11)
  v3l = ((v3l << 21) | (v3h >>> 11)) ^ v0l
  v3h = turned ^ v0h
  // v2 += v1; v1 = v1 <<< 17 ^ v2; v2 <<<= 32
  sum = (v2l >>> 0) + (v1l >>> 0)
  high = (v2h + v1h + (sum > 0xffffffff ? 1 : 0)) | 0
  low = sum | 0
  turned = (v1h << 17) | (v1l >>> 15)
  v1l = ((v1l << 17) | (v1h >>> 15)) ^ low
  v1h = turned ^ high
  v2h = low
  v2l = high
}

function readWord(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
}

function writeWord(bytes: Uint8Array, at: number, word: number): void {
  bytes[at] = word
  bytes[at + 1] = word >>> 8
  bytes[at + 2] = word >>> 16
  bytes[at + 3] = word >>> 24
}
