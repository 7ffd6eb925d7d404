// Finds the byte offsets of the parts of a capture request in its JSON text, so that properties are stored as the
// client wrote them, with number literals, key order and repeats, and no text is rebuilt. The text was parsed before,
// so this only finds offsets and values that are nested too deeply.

import { ascii } from '#core/ascii.ts'
import {
  firstMember,
  hexUnit,
  NotWalkable,
  nextElement,
  nextMember,
  skipBlanks,
  skipColon,
  skipString,
  skipValue,
} from './json-walk.ts'

const { quote, openBracket, backslash, closeBracket, lowerU, openBrace, closeBrace } = ascii

/**
 * An upper bound of the number of values in JSON text: parsed, each takes tens of bytes, however short its text. Counts
 * commas, brackets and braces, even within strings, so it is cheap and may be too high, but never too low.
 */
export function valueCountAtMost(json: Uint8Array): number {
  const { length } = json
  let count = 1
  for (let at = 0; at < length; at++) count += separators[json[at]!]!
  return count
}

/** 1 for a comma, an opening bracket and an opening brace. Looking up in a table is twice as fast as comparing. */
const separators = new Uint8Array(256)
for (const separator of Buffer.from(',[{')) separators[separator] = 1

/** The parts of the items, as pairs of byte offsets; a start of 0 means that the part is absent. */
export type ItemSlices = Int32Array

export const slicesPerItem = 12
/** The index of each part's pair within the numbers of one item. */
export const slice = { item: 0, properties: 2, set: 4, setOnce: 6, distinctId: 8, offset: 10 } as const

/**
 * @param json bytes of one valid JSON text in UTF-8, an object or a list, without escapes of lone surrogates.
 * @param listKey the root's key whose list holds the items; null when the root is the list, or the only item.
 * @param itemCount how many items there are, all of them objects.
 * @returns the slices of every item; of repeated keys the last counts, as in `JSON.parse`. Null when any value is
 *   nested deeper than `nestingDepthMax`.
 */
export function sliceItems(json: Uint8Array, listKey: string | null, itemCount: number): ItemSlices | null {
  const slices = new Int32Array(itemCount * slicesPerItem)
  try {
    fillSlices(json, listKey, slices)
    return slices
  } catch (error) {
    if (error instanceof NotWalkable) return null
    throw error
  }
}

function fillSlices(json: Uint8Array, listKey: string | null, slices: ItemSlices): void {
  const root = skipBlanks(json, 0)
  if (listKey === null) {
    if (json[root] === openBracket) sliceList(json, root, slices)
    else sliceItem(json, root, slices, 0)
    return
  }
  const keyBytes = Buffer.from(listKey)
  let at = firstMember(json, root)
  while (json[at] !== closeBrace) {
    const keyEnd = skipString(json, at)
    const valueStart = skipColon(json, keyEnd)
    const isList = isKey(json, at, keyBytes) && json[valueStart] === openBracket
    at = isList ? sliceList(json, valueStart, slices) : skipValue(json, valueStart)
    at = nextMember(json, at)
  }
}

/**
 * The byte offsets of a member's value, of the last one if its key is repeated; [0, 0] when absent.
 * @param objectStart the offset of the object's opening brace, in JSON text that is valid and not nested too deep.
 */
export function memberSlice(json: Uint8Array, objectStart: number, key: string): readonly [start: number, end: number] {
  const keyBytes = Buffer.from(key)
  let found: readonly [number, number] = [0, 0]
  let at = firstMember(json, objectStart)
  while (json[at] !== closeBrace) {
    const keyEnd = skipString(json, at)
    const valueStart = skipColon(json, keyEnd)
    const valueEnd = skipValue(json, valueStart)
    if (isKey(json, at, keyBytes)) found = [valueStart, valueEnd]
    at = nextMember(json, valueEnd)
  }
  return found
}

/** @returns the offset after the list. Items beyond the slices (in a list that a repeat replaces) are only skipped. */
function sliceList(json: Uint8Array, listStart: number, slices: ItemSlices): number {
  let at = skipBlanks(json, listStart + 1)
  for (let base = 0; json[at] !== closeBracket; base += slicesPerItem) {
    const fits = base < slices.length && json[at] === openBrace
    // A repeated key replaces the earlier list, as in the parsed value. Only what that list wrote is cleared: a key takes
    // few bytes and can be repeated a million times, too often to clear all slices each time.
    if (fits && slices[base + slice.item + 1] !== 0) slices.fill(0, base, base + slicesPerItem)
    at = nextElement(json, fits ? sliceItem(json, at, slices, base) : skipValue(json, at))
  }
  return at + 1
}

function sliceItem(json: Uint8Array, itemStart: number, slices: ItemSlices, base: number): number {
  let at = firstMember(json, itemStart)
  while (json[at] !== closeBrace) {
    const keyEnd = skipString(json, at)
    const valueStart = skipColon(json, keyEnd)
    const valueEnd = skipValue(json, valueStart)
    const part = toPart(json, at, keyEnd)
    if (part !== 0) {
      slices[base + part] = valueStart
      slices[base + part + 1] = valueEnd
    }
    at = nextMember(json, valueEnd)
  }
  slices[base + slice.item] = itemStart
  slices[base + slice.item + 1] = at + 1
  return at + 1
}

type Part = (typeof slice)[keyof typeof slice]
interface NamedPart {
  readonly key: Uint8Array
  readonly part: Part
}

const namedParts: readonly NamedPart[] = (
  [
    ['properties', slice.properties],
    ['distinct_id', slice.distinctId],
    ['$distinct_id', slice.distinctId],
    ['$set', slice.set],
    ['$set_once', slice.setOnce],
    ['offset', slice.offset],
  ] as const
).map(([name, part]) => ({ key: Buffer.from(name), part }))
/** By the length of the key, which no two share, so that most keys need not be read. */
const partOfLength: readonly (NamedPart | undefined)[] = (() => {
  const parts: NamedPart[] = []
  for (const named of namedParts) parts[named.key.length] = named
  return parts
})()
/** The length of `$set` with one character escaped. */
const escapedKeyBytesMin = 9

/** The part that a key names, as its index in `slice`; 0 for every other key. */
function toPart(json: Uint8Array, start: number, end: number): Part {
  const length = end - start - 2
  const candidate = partOfLength[length]
  if (candidate !== undefined && isKey(json, start, candidate.key)) return candidate.part
  if (length >= escapedKeyBytesMin) for (const { key, part } of namedParts) if (isKey(json, start, key)) return part
  return 0
}

/** Whether the string at `start` is this key, which is ASCII; escapes are decoded as `JSON.parse` does. */
function isKey(json: Uint8Array, start: number, key: Uint8Array): boolean {
  let at = start + 1
  for (let index = 0; index < key.length; index++) {
    let unit = json[at++]!
    if (unit === backslash) {
      // Only the long form can escape a character of these keys.
      if (json[at] !== lowerU) return false
      unit = hexUnit(json, at + 1)
      at += 5
    }
    if (unit !== key[index]) return false
  }
  return json[at] === quote
}
