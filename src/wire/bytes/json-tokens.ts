// The tokens of JSON text in UTF-8 (strings, numbers, words, and the blanks between them), as offsets into its bytes;
// nothing is built from them. They match `JSON.parse` exactly, except that a lone surrogate's escape, which no request
// may have, is not walkable.
//
// Each function takes the offset where a token begins and returns the offset after it. None of them checks for the end
// of the text: they stop at a byte that is not JSON, so such a byte has to follow the text (`terminateText`). Checking at
// each byte takes half as long again, and one read beyond the end of an array makes V8 read it ten times as slowly from
// then on.

/** The text cannot be walked. It has no message: if the text is no JSON, the error of `JSON.parse` says why. */
export class NotWalkable extends Error {}

export function throwNotWalkable(): never {
  throw new NotWalkable()
}

/** As long as the longest body that the event loop reads itself. */
const keptBytesMax = 1024 * 1024
let kept = new Uint8Array(64 * 1024)

/**
 * A copy of the text, which need not be valid JSON, followed by a byte at which every walk stops.
 * @returns valid until the next call: short texts share one buffer, which costs less than a buffer for each.
 */
export function terminateText(text: Uint8Array): Uint8Array {
  const needed = text.length + 1
  let ended = kept
  if (needed > kept.length) {
    ended = new Uint8Array(Math.max(needed, Math.min(2 * kept.length, keptBytesMax)))
    if (ended.length <= keptBytesMax) kept = ended
  }
  ended.set(text)
  ended[text.length] = 0
  return ended
}

export function skipBlanks(json: Uint8Array, start: number): number {
  return json[start]! > blank ? start : indexAfterBlanks(json, start)
}

function indexAfterBlanks(json: Uint8Array, start: number): number {
  let at = start
  for (let byte = json[at]; byte === blank || byte === lineFeed || byte === carriageReturn || byte === tab; )
    byte = json[++at]
  return at
}

/** @param start the opening quote. */
export function skipString(json: Uint8Array, start: number): number {
  let at = skipPlain(json, start + 1)
  while (json[at] === backslash) at = skipPlain(json, skipEscape(json, at))
  return json[at] === quote ? at + 1 : throwNotWalkable()
}

/** The offset after the characters of a string that need no decoding. */
export function skipPlain(json: Uint8Array, start: number): number {
  let at = start
  while (isPlain[json[at]!] === 1) at++
  return at
}

function skipEscape(json: Uint8Array, start: number): number {
  const kind = escapes[json[start + 1]!]
  if (kind === escapeKind.short) return start + 2
  if (kind !== escapeKind.hex) throwNotWalkable()
  const unit = hexUnit(json, start + 2)
  if ((unit & 0xf800) !== 0xd800) return start + 6
  // The two surrogates of one character.
  const isPair = unit <= 0xdbff && json[start + 6] === backslash && json[start + 7] === lowerU
  return isPair && (hexUnit(json, start + 8) & 0xfc00) === 0xdc00 ? start + 12 : throwNotWalkable()
}

/** The value of four hex digits. */
export function hexUnit(json: Uint8Array, start: number): number {
  let unit = 0
  for (let at = start; at < start + 4; at++) {
    const digit = hexDigits[json[at]!]!
    if (digit === notHex) throwNotWalkable()
    unit = unit * 16 + digit
  }
  return unit
}

export function skipWord(json: Uint8Array, start: number, word: Uint8Array): number {
  for (let index = 1; index < word.length; index++) if (json[start + index] !== word[index]) throwNotWalkable()
  return start + word.length
}

export function skipNumber(json: Uint8Array, start: number): number {
  let at = json[start] === minus ? start + 1 : start
  at = json[at] === zero ? at + 1 : skipDigits(json, at)
  if (json[at] === dot) at = skipDigits(json, at + 1)
  if ((json[at]! | caseBit) !== lowerE) return at
  const sign = json[at + 1]
  return skipDigits(json, sign === plus || sign === minus ? at + 2 : at + 1)
}

/** Skips one digit or more. */
function skipDigits(json: Uint8Array, start: number): number {
  let at = start
  while (json[at]! >= zero && json[at]! <= nine) at++
  return at > start ? at : throwNotWalkable()
}

const tab = 0x09
const lineFeed = 0x0a
const carriageReturn = 0x0d
export const blank = 0x20
export const quote = 0x22
const plus = 0x2b
export const comma = 0x2c
const minus = 0x2d
const dot = 0x2e
const zero = 0x30
const nine = 0x39
export const colon = 0x3a
export const openBracket = 0x5b
export const backslash = 0x5c
export const closeBracket = 0x5d
const lowerE = 0x65
export const lowerF = 0x66
export const lowerN = 0x6e
export const lowerT = 0x74
export const lowerU = 0x75
export const openBrace = 0x7b
export const closeBrace = 0x7d
/** The bit that turns an upper-case letter into lower case. */
const caseBit = 0x20

/** 1 for bytes of a string that need no decoding. */
export const isPlain = new Uint8Array(256).fill(1, blank)
isPlain[quote] = isPlain[backslash] = 0

const escapeKind = { short: 1, hex: 2 } as const
/** The kind of an escape, by the byte after the backslash. */
const escapes = new Uint8Array(256)
for (const byte of Buffer.from('"\\/bfnrt')) escapes[byte] = escapeKind.short
escapes[lowerU] = escapeKind.hex

const notHex = 0xff
const hexDigits = new Uint8Array(256).fill(notHex)
for (const [index, byte] of Buffer.from('0123456789abcdef').entries()) hexDigits[byte] = index
for (const [index, byte] of Buffer.from('ABCDEF').entries()) hexDigits[byte] = index + 10
