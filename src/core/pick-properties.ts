// Picks a few properties from the JSON text of many. A person or a group may have 640 KiB of them. Parsing such a text
// whole takes tens of milliseconds if its numbers have to keep their literals; walking over it takes a few.

import { ascii } from './ascii.ts'
import { isJsonObject, type JsonValue, type PropertyBag, parseJson, parseJsonWithDoubles, setOwnValue } from './json.ts'
import { findStringEnd, findValueEnd, readKeyAt } from './json-text.ts'

const { comma, colon, openBrace, closeBrace } = ascii

/** Values longer than this are parsed as plain JSON: their numbers become doubles and lose their literals. */
const literalCharsMax = 64 * 1024

/** A text up to this length is parsed whole, which is faster than walking over it. */
const wholeCharsMax = 32 * 1024

/** Returns all properties of a short text, but only the wanted ones of a long text. @throws SyntaxError */
export function parseWantedProperties(text: string, wanted: () => ReadonlySet<string>): PropertyBag {
  if (text.length > wholeCharsMax) return pickProperties(text, wanted())
  const value = text === '{}' ? {} : parseJson(text)
  if (!isJsonObject(value)) throw new SyntaxError('stored properties are not an object')
  return value
}

/**
 * The properties with one of these names.
 * @param text compact JSON text of an object, as `JSON.stringify` makes it and as it is stored.
 * @throws SyntaxError for any other text.
 */
export function pickProperties(text: string, names: ReadonlySet<string>): PropertyBag {
  const picked: PropertyBag = {}
  if (text === '{}') return picked
  expectChar(text, 0, openBrace)
  for (let at = 0; text.charCodeAt(at) !== closeBrace; ) {
    const keyEnd = findStringEnd(text, at + 1)
    expectChar(text, keyEnd, colon)
    const valueEnd = findValueEnd(text, keyEnd + 1)
    const key = readKeyAt(text, at + 1, keyEnd)
    if (names.has(key)) setOwnValue(picked, key, parseValueText(text.slice(keyEnd + 1, valueEnd)))
    at = valueEnd
    if (at !== text.length - 1) expectChar(text, at, comma)
  }
  return picked
}

function parseValueText(text: string): JsonValue {
  return text.length > literalCharsMax ? (parseJsonWithDoubles(text) as JsonValue) : parseJson(text)
}

function expectChar(text: string, at: number, char: number): void {
  if (text.charCodeAt(at) !== char) throw new SyntaxError(`unexpected character in stored properties at ${at}`)
}
