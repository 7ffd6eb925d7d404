// Walks over JSON text in UTF-8 without building anything. It accepts the texts that `JSON.parse` accepts, except those
// with an escape of a lone surrogate, which no request may have, and those with values nested deeper than
// `nestingDepthMax`. It takes half the time of `JSON.parse` and leaves no garbage
// (docs/decisions/0040-reading-a-batch.md).
//
// Each function takes the offset where a part begins and returns the offset after it. None of them checks for the end of
// the text: they stop at a byte that is not JSON, so such a byte has to follow the text (`appendEndByte`). Checking at each
// byte would take half as long again. Without such a byte, one read beyond the end of an array would make V8 read ten times
// as slowly from then on.

import { ascii } from '#core/ascii.ts'

const { blank, quote, plus, comma, minus, dot, zero, nine, colon, openBracket, backslash, closeBracket } = ascii
const { lowerE, lowerF, lowerN, lowerT, lowerU, openBrace, closeBrace, caseBit } = ascii

/** Deeper values are refused, as PostHog refuses them, so later code may walk values by recursion. */
export const nestingDepthMax = 128

/** @param depthMax how many brackets and braces of the value may be open at once. */
export function skipValue(json: Uint8Array, start: number, depthMax: number = nestingDepthMax): number {
  switch (json[start]) {
    case quote:
      return skipString(json, start)
    case openBrace:
      return walkObject(json, start, depthMax, null, throwNotWalkable)
    case openBracket:
      return skipList(json, start, depthMax)
    case lowerT:
      return skipLiteralWord(json, start, trueBytes)
    case lowerF:
      return skipLiteralWord(json, start, falseBytes)
    case lowerN:
      return skipLiteralWord(json, start, nullBytes)
    default:
      return skipNumber(json, start)
  }
}

/**
 * Walks over an object; `readMember` reads the members with known keys. Nearly all bytes of a batch pass through here,
 * so strings, and separators without blanks, are recognised inline, which saves a tenth of the time.
 * @param start the offset of the opening brace.
 * @param readMember gets a known key, the offset where its value begins, and the offset of the key; returns where the value
 * ends.
 */
export function walkObject<Name extends string>(
  json: Uint8Array,
  start: number,
  depthMax: number,
  keys: KeyTable<Name> | null,
  readMember: (name: Name, valueStart: number, keyStart: number) => number,
): number {
  if (depthMax === 0) throwNotWalkable()
  let at = readFirstMember(json, start)
  while (json[at] !== closeBrace) {
    let end = skipPlainCharacters(json, at + 1)
    const isBare = json[end] === quote
    end = isBare ? end + 1 : skipString(json, at)
    const valueStart = json[end] === colon && json[end + 1]! > blank ? end + 1 : skipColon(json, end)
    const name = keys === null ? null : isBare ? keys.find(json, at, end) : keys.findEscaped(json, at)
    if (name !== null) end = readMember(name, valueStart, at)
    else end = json[valueStart] === quote ? skipString(json, valueStart) : skipValue(json, valueStart, depthMax - 1)
    at = json[end] === comma && json[end + 1] === quote ? end + 1 : readNextMember(json, end)
  }
  return at + 1
}

/** A key in ASCII; no other key of the table has the same length and second byte. */
interface KnownKey<Name extends string> {
  readonly name: Name
  readonly bytes: Uint8Array
}

/**
 * A few known keys, among which a key of JSON text is found without making a string of it: length and second byte are
 * enough to exclude nearly all other keys. Many keys begin with `$`.
 */
export class KeyTable<Name extends string> {
  readonly #keys: (KnownKey<Name> | undefined)[]
  readonly #lengthMax: number
  /** A key without its escapes, between quotes. */
  readonly #decoded: Uint8Array

  /**
   * @param names without quotes, backslashes and slashes.
   * @throws Error when two keys have the same length and second byte, or one has no second byte.
   */
  constructor(names: readonly Name[]) {
    this.#lengthMax = Math.max(...names.map(({ length }) => length))
    this.#decoded = new Uint8Array(this.#lengthMax + 2)
    this.#keys = new Array((this.#lengthMax + 1) * byteValues).fill(undefined)
    for (const name of names) {
      const bytes = Buffer.from(name)
      if (bytes.length < 2) throw new Error(`${name} is too short`)
      const place = tableIndex(bytes.length, bytes[1]!)
      if (this.#keys[place] !== undefined) throw new Error(`${name} and ${this.#keys[place].name} share a place`)
      this.#keys[place] = { name, bytes }
    }
  }

  /**
   * @param start the opening quote of a key that is written without escapes.
   * @param end the offset after its closing quote.
   * @returns the known key at that place; null for any other.
   */
  find(json: Uint8Array, start: number, end: number): Name | null {
    const length = end - start - 2
    if (length > this.#lengthMax) return null
    const second = json[start + 2]!
    const known = second < byteValues ? this.#keys[tableIndex(length, second)] : undefined
    if (known === undefined) return null
    for (let index = 0; index < length; index++) if (json[start + 1 + index] !== known.bytes[index]) return null
    return known.name
  }

  /** Like `find`, for a key that is written with escapes. */
  findEscaped(json: Uint8Array, start: number): Name | null {
    const decoded = this.#decoded
    let length = 0
    for (let at = start + 1; json[at] !== quote; ) {
      if (length === this.#lengthMax) return null
      let unit = json[at++]!
      if (unit === backslash) {
        // Only the long form of an escape (`\u…`) can stand for a character of a known key.
        if (json[at] !== lowerU) return null
        unit = readHexUnit(json, at + 1)
        at += 5
      }
      decoded[++length] = Math.min(unit, 0xff)
    }
    return this.find(decoded, 0, length + 2)
  }
}

/** The number of ASCII bytes. */
const byteValues = 128

function tableIndex(length: number, second: number): number {
  return length * byteValues + second
}

function skipList(json: Uint8Array, start: number, depthMax: number): number {
  if (depthMax === 0) throwNotWalkable()
  let at = skipBlanks(json, start + 1)
  while (json[at] !== closeBracket) at = readNextElement(json, skipValue(json, at, depthMax - 1))
  return at + 1
}

/** Skips from an opening brace to the first key, or to the closing brace. */
export function readFirstMember(json: Uint8Array, start: number): number {
  const at = skipBlanks(json, start + 1)
  return json[at] === quote || json[at] === closeBrace ? at : throwNotWalkable()
}

/** Skips from the end of a member to the next key, or to the closing brace. */
export function readNextMember(json: Uint8Array, end: number): number {
  let at = skipBlanks(json, end)
  if (json[at] === closeBrace) return at
  if (json[at] !== comma) throwNotWalkable()
  at = skipBlanks(json, at + 1)
  return json[at] === quote ? at : throwNotWalkable()
}

/** Skips from the end of a key to the start of its value. */
export function skipColon(json: Uint8Array, keyEnd: number): number {
  const at = skipBlanks(json, keyEnd)
  return json[at] === colon ? skipBlanks(json, at + 1) : throwNotWalkable()
}

/** Skips from the end of an element to the next one, or to the closing bracket. */
export function readNextElement(json: Uint8Array, end: number): number {
  let at = skipBlanks(json, end)
  if (json[at] === closeBracket) return at
  if (json[at] !== comma) throwNotWalkable()
  at = skipBlanks(json, at + 1)
  return json[at] !== closeBracket ? at : throwNotWalkable()
}

const trueBytes = Buffer.from('true')
const falseBytes = Buffer.from('false')
const nullBytes = Buffer.from('null')

/** Thrown when a text cannot be walked, without a message: if it is not JSON, the error of `JSON.parse` says why. */
export class NotWalkable extends Error {}

export function throwNotWalkable(): never {
  throw new NotWalkable()
}

/** The buffer for short texts grows up to this size, that of the longest body that the event loop reads itself. */
const keptBytesMax = 1024 * 1024
let kept = new Uint8Array(64 * 1024)

/**
 * A copy of the text, which need not be valid JSON, followed by a byte at which every walk stops.
 * @returns valid until the next call: short texts share one buffer, which costs less than a buffer for each.
 */
export function appendEndByte(text: Uint8Array): Uint8Array {
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
  let at = start
  while (isBlank[json[at]!] === 1) at++
  return at
}

/** @param start the offset of the opening quote. */
export function skipString(json: Uint8Array, start: number): number {
  let at = skipPlainCharacters(json, start + 1)
  while (json[at] === backslash) at = skipPlainCharacters(json, skipEscape(json, at, false))
  return json[at] === quote ? at + 1 : throwNotWalkable()
}

/** Like `skipString`, but accepts escapes of lone surrogates. */
export function skipAnyString(json: Uint8Array, start: number): number {
  let at = skipPlainCharacters(json, start + 1)
  while (json[at] === backslash) at = skipPlainCharacters(json, skipEscape(json, at, true))
  return json[at] === quote ? at + 1 : throwNotWalkable()
}

/** The offset after the characters of a string that need no decoding. */
export function skipPlainCharacters(json: Uint8Array, start: number): number {
  let at = start
  while (isPlain[json[at]!] === 1) at++
  return at
}

function skipEscape(json: Uint8Array, start: number, takesLone: boolean): number {
  const length = escapeBytes[json[start + 1]!]!
  if (length === 2) return start + 2
  if (length === 0) throwNotWalkable()
  const unit = readHexUnit(json, start + 2)
  if (takesLone || (unit & 0xf800) !== 0xd800) return start + 6
  // The two surrogates of one character.
  const isPair = unit <= 0xdbff && json[start + 6] === backslash && json[start + 7] === lowerU
  return isPair && (readHexUnit(json, start + 8) & 0xfc00) === 0xdc00 ? start + 12 : throwNotWalkable()
}

/** The value of four hex digits. */
export function readHexUnit(json: Uint8Array, start: number): number {
  let unit = 0
  for (let at = start; at < start + 4; at++) {
    const digit = hexDigits[json[at]!]!
    if (digit === notHex) throwNotWalkable()
    unit = unit * 16 + digit
  }
  return unit
}

export function skipLiteralWord(json: Uint8Array, start: number, word: Uint8Array): number {
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

/** 1 for the blanks between tokens. */
const isBlank = new Uint8Array(256)
for (const byte of Buffer.from('\t\n\r ')) isBlank[byte] = 1

/** 1 for bytes of a string that need no decoding. */
const isPlain = new Uint8Array(256).fill(1, blank)
isPlain[quote] = isPlain[backslash] = 0

/** The length of an escape by the byte after the backslash; 0 where none begins. */
const escapeBytes = new Uint8Array(256)
for (const byte of Buffer.from('"\\/bfnrt')) escapeBytes[byte] = 2
escapeBytes[lowerU] = 6

const notHex = 0xff
const hexDigits = new Uint8Array(256).fill(notHex)
for (const [index, byte] of Buffer.from('0123456789abcdef').entries()) hexDigits[byte] = index
for (const [index, byte] of Buffer.from('ABCDEF').entries()) hexDigits[byte] = index + 10
