// Finds the byte offsets of the parts of a capture request in its JSON text, so that properties are stored as the
// client wrote them, with number literals, key order and repeats, and no text is rebuilt.

import { ascii } from '#core/ascii.ts'
import {
  appendEndByte,
  KeyTable,
  NotWalkable,
  nestingDepthMax,
  readNextElement,
  skipBlanks,
  skipValue,
  throwNotWalkable,
  walkObject,
} from './json-walk.ts'

const { openBrace, openBracket, closeBracket } = ascii

/**
 * An upper bound of the number of values in JSON text: parsed, each takes tens of bytes, however short its text. Counts
 * commas, brackets and braces, even within strings, so it is cheap and may be too high, but never too low.
 */
export function estimateValueCountMax(json: Uint8Array): number {
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

/** Most events are longer, so the space for all slices is reserved at once: growing it took 0.06 µs an event. */
const usualItemBytesMin = 256

/** The slices of items whose number is not known yet. */
export class SliceTable {
  slices: ItemSlices
  readonly #itemCountMax: number

  /** @param textBytes the length of the text that holds the items. */
  constructor(textBytes: number, itemCountMax: number) {
    this.slices = new Int32Array((1 + Math.floor(textBytes / usualItemBytesMin)) * slicesPerItem)
    this.#itemCountMax = itemCountMax
  }

  /** Makes space for the slices of the next item, from `base` on; false when there are too many items. */
  reserve(base: number): boolean {
    if (base >= this.#itemCountMax * slicesPerItem) return false
    if (base < this.slices.length) return true
    const larger = new Int32Array(this.slices.length * 2)
    larger.set(this.slices)
    this.slices = larger
    return true
  }
}

/**
 * Finds the slices before the text is parsed, so that a text nested too deeply need not be parsed.
 * @param text one JSON text in UTF-8, which may be invalid.
 * @param listKey the root's key whose list holds the items; null when the root is the list, or the only item.
 * @param itemCountMax later items have no slices.
 * @returns the slices of every item; of repeated keys the last counts, as in `JSON.parse`. Null when the text is not JSON,
 *   has the escape of a lone surrogate or a value nested deeper than `nestingDepthMax`, or has a root of another type.
 */
export function findItemSlices(text: Uint8Array, listKey: ListKey | null, itemCountMax: number): ItemSlices | null {
  const table = new SliceTable(text.length, itemCountMax)
  try {
    fillSlices(appendEndByte(text), listKey, table)
    return table.slices
  } catch (error) {
    if (error instanceof NotWalkable) return null
    throw error
  }
}

function fillSlices(json: Uint8Array, listKey: ListKey | null, table: SliceTable): void {
  const root = skipBlanks(json, 0)
  if (listKey === null && json[root] === openBracket) sliceList(json, root, table)
  else if (json[root] !== openBrace) throwNotWalkable()
  else if (listKey === null) sliceItem(json, root, table, 0)
  else
    walkObject(json, root, nestingDepthMax + 1, listKeys, (name, valueStart) =>
      name === listKey && json[valueStart] === openBracket
        ? sliceList(json, valueStart, table)
        : skipValue(json, valueStart),
    )
}

/**
 * The byte offsets of a member's value, of the last one if its key is repeated; [0, 0] when absent.
 * @param objectStart the offset of the object's opening brace, in JSON text that is valid and not nested too deep.
 */
export function findMemberSlice(json: Uint8Array, objectStart: number, key: MemberName): readonly [number, number] {
  let found: readonly [number, number] = [0, 0]
  walkObject(json, objectStart, nestingDepthMax + 1, memberKeys, (name, valueStart) => {
    const valueEnd = skipValue(json, valueStart)
    if (name === key) found = [valueStart, valueEnd]
    return valueEnd
  })
  return found
}

/** @returns the offset after the list. Items beyond the maximum of `table` are skipped. */
function sliceList(json: Uint8Array, listStart: number, table: SliceTable): number {
  let at = skipBlanks(json, listStart + 1)
  for (let base = 0; json[at] !== closeBracket; base += slicesPerItem) {
    const fits = table.reserve(base) && json[at] === openBrace
    const { slices } = table
    // A repeated key replaces the earlier list, as in the parsed value. Only what that list wrote is cleared: a key takes
    // few bytes and can be repeated a million times, too often to clear all slices each time.
    if (fits && slices[base + slice.item + 1] !== 0) slices.fill(0, base, base + slicesPerItem)
    at = readNextElement(json, fits ? sliceItem(json, at, table, base) : skipValue(json, at))
  }
  return at + 1
}

function sliceItem(json: Uint8Array, itemStart: number, { slices }: SliceTable, base: number): number {
  const end = walkObject(json, itemStart, nestingDepthMax + 1, partKeys, (name, valueStart) => {
    const part = base + sliceIndexOf(name)!
    slices[part] = valueStart
    slices[part + 1] = skipValue(json, valueStart)
    return slices[part + 1]!
  })
  slices[base + slice.item] = itemStart
  slices[base + slice.item + 1] = end
  return end
}

/** The index in `slice` of the part that a key of an item names; null for any other key. */
export function sliceIndexOf(name: string): number | null {
  switch (name) {
    case 'properties':
      return slice.properties
    case '$set':
      return slice.set
    case '$set_once':
      return slice.setOnce
    case 'distinct_id':
    case '$distinct_id':
      return slice.distinctId
    case 'offset':
      return slice.offset
    default:
      return null
  }
}

type ListKey = 'batch' | 'data'
const listKeys = new KeyTable<ListKey>(['batch', 'data'])
const partKeys = new KeyTable(['properties', '$set', '$set_once', 'distinct_id', '$distinct_id', 'offset'])
const memberNames = ['distinct_id', '$distinct_id', '$snapshot_data', 'options', 'product_tour_id'] as const
const memberKeys = new KeyTable(memberNames)
type MemberName = (typeof memberNames)[number]
