// SHA-1 of a short text, for flag hashes. Our own code, because passing 30 bytes to node:crypto costs four times as much as
// hashing them here. It returns only the 60 bits that a flag hash reads, and is not meant for secrets.

import { createHash } from 'node:crypto'
import { compressSha1Block } from './sha1-compress.ts'

const blockBytes = 64
/** Longer texts are left to node:crypto, which is several times as fast for them. */
const ownCharsMax = 16 * 1024
/** One block, and the state so far. All calls share both, which is safe because hashing is synchronous. */
const words = new Int32Array(16)
const state = new Int32Array(5)
const encoder = new TextEncoder()
let scratch = new Uint8Array(1024)

/**
 * The first 15 hex digits of the SHA-1 of a text's UTF-8 bytes, read as an unsigned integer and rounded to a double.
 * The text comes in parts, because joining them would cost a quarter of the hash. A lone surrogate counts as U+FFFD.
 * Source: docs/wire/evaluation.md 5.3; vectors, tests/conformance/evaluation-vectors.json.
 */
export function sha1Top60(first: string, second = '', third = '', fourth = ''): number {
  resetState()
  if (!hashShortAscii(first, second, third, fourth)) hashBytes(first + second + third + fourth)
  // Adds 28 bits to the exact upper 32 with a single rounding, which gives the double nearest to the 60-bit integer.
  return (state[0]! >>> 0) * 0x1000_0000 + (state[1]! >>> 4)
}

function resetState(): void {
  state[0] = 0x67452301
  state[1] = 0xefcdab89
  state[2] = 0x98badcfe
  state[3] = 0x10325476
  state[4] = 0xc3d2e1f0
}

/** Hashes texts that fit one block, without joining them; false when they are longer or not ASCII. */
function hashShortAscii(first: string, second: string, third: string, fourth: string): boolean {
  const length = first.length + second.length + third.length + fourth.length
  if (length > blockBytes - 9) return false
  for (let index = 0; index < 15; index++) words[index] = 0
  if (!writeAscii(first, 0) || !writeAscii(second, first.length)) return false
  if (!writeAscii(third, first.length + second.length) || !writeAscii(fourth, length - fourth.length)) return false
  words[length >> 2] = words[length >> 2]! | (0x80 << (24 - 8 * (length & 3)))
  words[15] = length * 8
  compressSha1Block(words, state)
  return true
}

/** Writes an ASCII text into the zeroed block, starting at byte `at`; false when it is not ASCII. */
function writeAscii(text: string, at: number): boolean {
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
  if (text.length > ownCharsMax) {
    const digest = createHash('sha1').update(text).digest()
    for (let index = 0; index < state.length; index++) state[index] = digest.readInt32BE(4 * index)
    return
  }
  const neededBytes = text.length * 3 + blockBytes + 9
  if (scratch.length < neededBytes) scratch = new Uint8Array(neededBytes)
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
    compressSha1Block(words, state)
  }
}
