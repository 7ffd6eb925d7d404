// Walks over JSON text without building anything. It accepts the texts that `JSON.parse` accepts, except those with
// values nested deeper than `nestingDepthMax` and those that `json-tokens.ts` excludes. It takes half the time of
// `JSON.parse` and leaves no garbage (docs/decisions/0040-reading-a-batch.md).

import {
  blank,
  closeBrace,
  closeBracket,
  colon,
  comma,
  isPlain,
  lowerF,
  lowerN,
  lowerT,
  openBrace,
  openBracket,
  quote,
  skipBlanks,
  skipNumber,
  skipString,
  skipWord,
  throwNotWalkable,
} from './json-tokens.ts'
import { type KeyTable, skipKey } from './key-table.ts'

/** Deeper values are refused, as they are upstream, so later code may walk values by recursion. */
export const nestingDepthMax = 128

/** @param depthMax how many brackets and braces of the value may be open at once. */
export function skipValue(json: Uint8Array, start: number, depthMax: number = nestingDepthMax): number {
  switch (json[start]) {
    case quote:
      return skipString(json, start)
    case openBrace:
      return skipObject(json, start, depthMax)
    case openBracket:
      return skipList(json, start, depthMax)
    case lowerT:
      return skipWord(json, start, trueBytes)
    case lowerF:
      return skipWord(json, start, falseBytes)
    case lowerN:
      return skipWord(json, start, nullBytes)
    default:
      return skipNumber(json, start)
  }
}

function skipObject(json: Uint8Array, start: number, depthMax: number): number {
  return walkObject(json, start, depthMax, null, throwNotWalkable)
}

/**
 * Walks over an object; `readMember` reads the members with known keys. Nearly all bytes of a batch pass through here,
 * so the usual separators are checked inline and only blanks and escapes call a function; calling one each time takes
 * twice as long.
 * @param start the offset of the opening brace.
 * @param readMember gets the offset where the value of a known key begins, and returns the offset where it ends.
 */
export function walkObject<Name extends string>(
  json: Uint8Array,
  start: number,
  depthMax: number,
  keys: KeyTable<Name> | null,
  readMember: (name: Name, valueStart: number) => number,
): number {
  if (depthMax === 0) throwNotWalkable()
  let at = firstMember(json, start)
  while (json[at] !== closeBrace) {
    let end = at + 1
    while (isPlain[json[end]!] === 1) end++
    end = json[end] === quote ? end + 1 : keys === null ? skipString(json, at) : skipKey(json, at)
    const valueStart = json[end] === colon && json[end + 1]! > blank ? end + 1 : skipColon(json, end)
    const name = keys === null ? null : keys.find(json, at, end)
    if (name !== null) end = readMember(name, valueStart)
    else if (json[valueStart] === quote) {
      end = valueStart + 1
      while (isPlain[json[end]!] === 1) end++
      end = json[end] === quote ? end + 1 : skipString(json, valueStart)
    } else end = skipValue(json, valueStart, depthMax - 1)
    at = json[end] === comma && json[end + 1] === quote ? end + 1 : nextMember(json, end)
  }
  return at + 1
}

function skipList(json: Uint8Array, start: number, depthMax: number): number {
  if (depthMax === 0) throwNotWalkable()
  let at = skipBlanks(json, start + 1)
  if (json[at] === closeBracket) return at + 1
  do at = nextElement(json, skipValue(json, at, depthMax - 1))
  while (json[at] !== closeBracket)
  return at + 1
}

/** Skips from an opening brace to the first key, or to the closing brace. */
export function firstMember(json: Uint8Array, start: number): number {
  const at = skipBlanks(json, start + 1)
  return json[at] === quote || json[at] === closeBrace ? at : throwNotWalkable()
}

/** Skips from the end of a member to the next key, or to the closing brace. */
export function nextMember(json: Uint8Array, end: number): number {
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
export function nextElement(json: Uint8Array, end: number): number {
  let at = skipBlanks(json, end)
  if (json[at] === closeBracket) return at
  if (json[at] !== comma) throwNotWalkable()
  at = skipBlanks(json, at + 1)
  return json[at] !== closeBracket ? at : throwNotWalkable()
}

const trueBytes = Buffer.from('true')
const falseBytes = Buffer.from('false')
const nullBytes = Buffer.from('null')
