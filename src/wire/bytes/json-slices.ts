// Finds where the parts of a capture request lie in its JSON text, so that properties are stored as the client wrote
// them: number literals, key order and repeats, without building text anew. The text was parsed before, so nothing is
// validated here; what is decided here is only "from which byte to which".

/**
 * How many values JSON text can hold at most: parsed, each takes tens of bytes, however short its text. Counts commas,
 * brackets and braces wherever they stand, so it is cheap and may be too high, never too low.
 */
export function valueCountAtMost(json: Uint8Array): number {
  const { length } = json
  let count = 1
  for (let at = 0; at < length; at++) count += separators[json[at]!]!
  return count
}

/** 1 for a comma, an opening bracket and an opening brace. A look into a table is twice as fast as comparing. */
const separators = new Uint8Array(256)
for (const separator of Buffer.from(',[{')) separators[separator] = 1

/** Where the parts of the items lie, as pairs of byte offsets; a start of 0 means that the part is absent. */
export type ItemSlices = Int32Array

export const slicesPerItem = 12
/** Offset of each part's pair within the numbers of one item. */
export const slice = { item: 0, properties: 2, set: 4, setOnce: 6, distinctId: 8, offset: 10 } as const

/** Deeper values are refused, as they are upstream: whatever walks a value later may do so by recursion. */
export const nestingDepthMax = 128

/**
 * @param json bytes of one valid JSON text in UTF-8.
 * @param listKey the root's key whose list holds the items; null when the root is the list, or the only item.
 * @param itemCount how many items there are, all of them objects.
 * @returns the slices of every item, the last of repeated keys as in `JSON.parse`; null when any value is nested deeper
 *   than `nestingDepthMax`.
 */
export function sliceItems(json: Uint8Array, listKey: string | null, itemCount: number): ItemSlices | null {
  const slices = new Int32Array(itemCount * slicesPerItem)
  try {
    fillSlices(json, listKey, slices)
    return slices
  } catch (error) {
    if (error instanceof NestedTooDeep) return null
    throw error
  }
}

class NestedTooDeep extends Error {}

function fillSlices(json: Uint8Array, listKey: string | null, slices: ItemSlices): void {
  const root = skipBlanks(json, 0)
  if (listKey === null) {
    if (json[root] === openBracket) sliceList(json, root, slices)
    else sliceItem(json, root, slices, 0)
    return
  }
  const keyBytes = Buffer.from(listKey)
  let at = skipBlanks(json, root + 1)
  while (json[at] !== closeBrace) {
    const keyEnd = skipString(json, at)
    const valueStart = skipBlanks(json, skipBlanks(json, keyEnd) + 1)
    if (isKey(json, at, keyBytes) && json[valueStart] === openBracket) {
      // A repeat replaces what came before it, as in the parsed value.
      slices.fill(0)
      at = sliceList(json, valueStart, slices)
    } else {
      at = skipValue(json, valueStart)
    }
    at = nextMember(json, at)
  }
}

/**
 * Where a member of an object lies, the last of repeats, as byte offsets; [0, 0] when there is none.
 * @param objectStart the offset of the object's opening brace, in JSON text that is valid and not nested too deep.
 */
export function memberSlice(json: Uint8Array, objectStart: number, key: string): readonly [start: number, end: number] {
  const keyBytes = Buffer.from(key)
  let found: readonly [number, number] = [0, 0]
  let at = skipBlanks(json, objectStart + 1)
  while (json[at] !== closeBrace) {
    const keyEnd = skipString(json, at)
    const valueStart = skipBlanks(json, skipBlanks(json, keyEnd) + 1)
    const valueEnd = skipValue(json, valueStart)
    if (isKey(json, at, keyBytes)) found = [valueStart, valueEnd]
    at = nextMember(json, valueEnd)
  }
  return found
}

/** @returns the offset behind the list. A list longer than the slices (one that a repeat replaces) is only skipped. */
function sliceList(json: Uint8Array, listStart: number, slices: ItemSlices): number {
  let at = skipBlanks(json, listStart + 1)
  for (let base = 0; json[at] !== closeBracket; base += slicesPerItem) {
    const fits = base < slices.length && json[at] === openBrace
    at = nextMember(json, fits ? sliceItem(json, at, slices, base) : skipValue(json, at))
  }
  return at + 1
}

function sliceItem(json: Uint8Array, itemStart: number, slices: ItemSlices, base: number): number {
  let at = skipBlanks(json, itemStart + 1)
  while (json[at] !== closeBrace) {
    const keyEnd = skipString(json, at)
    const valueStart = skipBlanks(json, skipBlanks(json, keyEnd) + 1)
    const valueEnd = skipValue(json, valueStart)
    const part = partOf(json, at, keyEnd)
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
/** By the length of the key, which no two share: most keys are told apart without being read. */
const partOfLength: readonly (NamedPart | undefined)[] = (() => {
  const parts: NamedPart[] = []
  for (const named of namedParts) parts[named.key.length] = named
  return parts
})()
/** `$set` with one character as an escape. */
const escapedKeyBytesMin = 9

/** The part that a key names, as its offset in `slice`; 0 for every other key. */
function partOf(json: Uint8Array, start: number, end: number): Part {
  const length = end - start - 2
  const candidate = partOfLength[length]
  if (candidate !== undefined && isKey(json, start, candidate.key)) return candidate.part
  if (length >= escapedKeyBytesMin) for (const { key, part } of namedParts) if (isKey(json, start, key)) return part
  return 0
}

/** Whether the string that opens here is this key, which is ASCII; escapes are read as `JSON.parse` reads them. */
function isKey(json: Uint8Array, start: number, key: Uint8Array): boolean {
  let at = start + 1
  for (let index = 0; index < key.length; index++) {
    let unit = json[at++]!
    if (unit === backslash) {
      // No key has a character with a shorter escape.
      if (json[at] !== lowerU) return false
      unit = hexUnit(json, at + 1)
      at += 5
    }
    if (unit !== key[index]) return false
  }
  return json[at] === quote
}

/** The number that four hex digits stand for. */
function hexUnit(json: Uint8Array, start: number): number {
  let unit = 0
  for (let at = start; at < start + 4; at++) {
    const digit = json[at]!
    unit = unit * 16 + (digit <= nine ? digit - zero : (digit | caseBit) - lowerA + 10)
  }
  return unit
}

/** From the end of a member to the start of the next one, or to the closing bracket or brace. */
function nextMember(json: Uint8Array, end: number): number {
  const at = skipBlanks(json, end)
  return json[at] === comma ? skipBlanks(json, at + 1) : at
}

function skipBlanks(json: Uint8Array, start: number): number {
  let at = start
  while (json[at]! <= 0x20) at++
  return at
}

/** @returns the offset behind the value that starts here. */
function skipValue(json: Uint8Array, start: number): number {
  const first = json[start]!
  if (first === quote) return skipString(json, start)
  if ((first | caseBit) === openBrace) return skipContainer(json, start)
  let at = start + 1
  // Numbers and words end at a blank, a comma or a closing bracket.
  while (at < json.length && json[at]! > 0x20 && json[at] !== comma && (json[at]! | caseBit) !== closeBrace) at++
  return at
}

/** @returns the offset behind the closing quote of the string whose opening quote is here. */
function skipString(json: Uint8Array, start: number): number {
  let at = start + 1
  for (;;) {
    const byte = json[at++]
    if (byte === quote) return at
    if (byte === backslash) at++
  }
}

function skipContainer(json: Uint8Array, start: number): number {
  let at = start + 1
  let depth = 1
  while (depth > 0) {
    const byte = json[at++]!
    if (byte === quote) {
      for (;;) {
        const inner = json[at++]
        if (inner === quote) break
        if (inner === backslash) at++
      }
    } else if ((byte | caseBit) === openBrace) {
      if (++depth > nestingDepthMax) throw new NestedTooDeep()
    } else if ((byte | caseBit) === closeBrace) depth--
  }
  return at
}

/** Turns `[` and `]` into `{` and `}`, and nothing else into them that stands outside a string. */
const caseBit = 0x20
const quote = 0x22
const comma = 0x2c
const zero = 0x30
const nine = 0x39
const openBracket = 0x5b
const backslash = 0x5c
const closeBracket = 0x5d
const lowerA = 0x61
const lowerU = 0x75
const openBrace = 0x7b
const closeBrace = 0x7d
