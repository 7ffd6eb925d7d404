// JSON values that keep the client's own number literals: `1` and `1.0` are different texts to a flag's filter, and a
// 64-bit id does not fit a double. Literals that a double cannot reproduce become `RawNumber`s (JSON.rawJSON), which
// JSON.stringify writes unchanged. Everything else is what JSON.parse makes.

import { ascii } from './ascii.ts'

const { quote, comma, minus, dot, zero, nine, colon, openBracket, backslash, closeBracket, lowerE, lowerF } = ascii
const { lowerN, lowerT, openBrace, closeBrace, caseBit } = ascii

/** A number kept as its literal, made by `JSON.rawJSON`; recognised with `isRawNumber`. */
export type RawNumber = { readonly rawJSON: string }
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject | RawNumber
export type JsonObject = { [key: string]: JsonValue }
/** Properties of a person, group or event. Any own key is possible, even `__proto__`: check with `Object.hasOwn`. */
export type PropertyBag = JsonObject

// Node 26 has raw JSON; TypeScript's library does not declare it yet.
const json = JSON as unknown as {
  rawJSON(text: string): RawNumber
  isRawJSON(value: unknown): value is RawNumber
}

/**
 * Matches a number literal that a double may not reproduce: `-0`, 16 digits or more, an exponent, a fraction that ends
 * in 0, or one below a millionth. Text inside strings may match too, which costs only time. Any other literal has at
 * most 15 digits, which a double reproduces exactly.
 */
const mayLoseLiteral = /[:[,]\s*(?:-0(?!\.)|-?(?:(?:\d\.?){16}|\d+(?:\.\d+)?[eE]|\d+\.\d*0(?=\s*(?:[,}\]]|$))|0\.0{6}))/
const startsAsNumber = /^\s*[-\d]/

/**
 * Parses JSON text and keeps number literals. As fast as `JSON.parse` unless the text holds a number that a double would
 * rewrite, or an escape in a key: such a text takes about four times as long, or some 0.1 µs per value if that is longer.
 * @throws SyntaxError for text that is not JSON.
 * Source: docs/wire/evaluation.md 0.
 */
export function parseJson(text: string): JsonValue {
  // The engine refuses invalid JSON here, with its own message, so that `JsonReader` has nothing to check.
  const value = JSON.parse(text) as JsonValue
  return mayNeedNumberLiterals(text) || hasEscapedKey(text) ? new JsonReader(text, parseNumberOrLiteral).value() : value
}

/**
 * For text from outside whose numbers need no literals: returns what `JSON.parse` would return if the engine read escaped
 * keys correctly. As fast as `JSON.parse` unless a key is written with an escape.
 * @throws SyntaxError for text that is not JSON.
 */
export function parseJsonWithDoubles(text: string): unknown {
  const value: unknown = JSON.parse(text)
  return hasEscapedKey(text) ? new JsonReader(text, Number).value() : value
}

/**
 * Whether a key is written with an escape. V8 (14.6, Node 26) may mistake such a key for the key that an earlier text had
 * in the same place: after `{"a":1,"pr\\u00":2}` it reads the second key of `{"a":1,"pr\u00e9nom":2}` as the second key of
 * the first text. A client that sends the first text could so rename other clients' properties. Source:
 * docs/decisions/0069-escaped-keys.md.
 * @param text valid JSON.
 */
function hasEscapedKey(text: string): boolean {
  for (let at = text.indexOf('\\'); at >= 0; at = text.indexOf('\\', at)) {
    // The backslash is inside a string. This string is a key if a colon follows it.
    for (let unit = backslash; unit !== quote; unit = text.charCodeAt(at)) at += unit === backslash ? 2 : 1
    let behind = text.charCodeAt(++at)
    while (behind <= 0x20) behind = text.charCodeAt(++at)
    if (behind === colon) return true
  }
  return false
}

/** Whether the text may hold a number whose literal has to be kept, so that `JSON.parse` alone is not enough. */
export function mayNeedNumberLiterals(text: string): boolean {
  return mayLoseLiteral.test(text) || startsAsNumber.test(text)
}

export function createRawNumber(literal: string): RawNumber {
  return json.rawJSON(literal)
}

/**
 * @param literal a number as JSON writes it.
 * @returns the number, or the literal if a double would not reproduce it.
 */
export function parseNumberOrLiteral(literal: string): number | RawNumber {
  const value = Number(literal)
  return String(value) === literal ? value : createRawNumber(literal)
}

export function isRawNumber(value: unknown): value is RawNumber {
  return json.isRawJSON(value)
}

export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value)
}

/** An own property or undefined, never an inherited one such as `constructor` or `__proto__`. */
export function getOwnValue(object: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined
}

/** Sets an own property under any key, `__proto__` included. */
export function setOwnValue(object: JsonObject, key: string, value: JsonValue): void {
  if (key === '__proto__')
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })
  else object[key] = value
}

/** A copy with the own keys of both; keys of `over` win. Safe for any key. */
export function mergeObjects(base: JsonObject, over: JsonObject): JsonObject {
  const merged: JsonObject = {}
  for (const key of Object.keys(base)) setOwnValue(merged, key, base[key]!)
  for (const key of Object.keys(over)) setOwnValue(merged, key, over[key]!)
  return merged
}

/** Whether lists and objects nest more than `depthMax` deep, so that recursive code could overflow the stack. */
export function isDeeperThan(value: JsonValue, depthMax: number): boolean {
  return mayNest(value) && nestsBeyond(value, depthMax)
}

function nestsBeyond(value: JsonValue[] | JsonObject | RawNumber, depthLeft: number): boolean {
  if (depthLeft === 0) return !isRawNumber(value)
  if (Array.isArray(value)) return value.some(element => mayNest(element) && nestsBeyond(element, depthLeft - 1))
  const object = value as JsonObject
  // Iterates over the keys, since `Object.values` of an object that was built key by key takes four times as long.
  for (const key of Object.keys(object)) {
    const member = object[key]!
    if (mayNest(member) && nestsBeyond(member, depthLeft - 1)) return true
  }
  return false
}

/**
 * Whether the value may be a list or an object. Also true for a number that is kept as a literal; the caller rules that
 * out at the deepest level.
 */
function mayNest(value: JsonValue): value is JsonValue[] | JsonObject | RawNumber {
  return typeof value === 'object' && value !== null
}

const twoTo64 = 18446744073709551615n
const minusTwoTo63 = -9223372036854775808n
const integerCharsMax = 20

/**
 * The text form of a JSON value, which operators compare and hash: strings without quotes, whole literals as digits,
 * other numbers with a fraction or an exponent, lists and objects as compact JSON with keys sorted by code point.
 * Source: docs/wire/evaluation.md 0.
 */
export function toComparableText(value: JsonValue): string {
  return typeof value === 'string' ? value : toCompactJson(value)
}

/** Compact JSON with object keys sorted by code point and numbers in their text form. */
export function toCompactJson(value: JsonValue): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'number':
      return formatNumber(value)
    case 'boolean':
      return value ? 'true' : 'false'
  }
  if (value === null) return 'null'
  if (Array.isArray(value)) return `[${value.map(toCompactJson).join(',')}]`
  if (isRawNumber(value)) return formatLiteral(value.rawJSON)
  const keys = sortByCodePoint(Object.keys(value))
  return `{${keys.map(key => `${JSON.stringify(key)}:${toCompactJson(value[key]!)}`).join(',')}}`
}

/** The double that a number or a kept literal represents; undefined for anything else. */
export function readJsonNumber(value: JsonValue): number | undefined {
  if (typeof value === 'number') return value
  return isRawNumber(value) ? Number(value.rawJSON) : undefined
}

/**
 * The value with plain numbers instead of kept literals, for code that does not support literals; the value itself when it
 * holds none.
 */
export function toPlainNumbers(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value
  if (isRawNumber(value)) return Number(value.rawJSON)
  if (Array.isArray(value)) {
    const plain = value.map(toPlainNumbers)
    return plain.some((entry, index) => entry !== value[index]) ? plain : value
  }
  let plain: JsonObject | null = null
  for (const key of Object.keys(value)) {
    const entry = toPlainNumbers(value[key]!)
    if (entry === value[key]) continue
    plain ??= { ...value }
    setOwnValue(plain, key, entry)
  }
  return plain ?? value
}

function formatNumber(value: number): string {
  if (Object.is(value, -0)) return '-0.0'
  return Number.isInteger(value) && Math.abs(value) < 1e21 ? String(value) : formatFloat(value)
}

function formatLiteral(literal: string): string {
  // A longer literal does not fit 64 bits, and making a BigInt of a million digits takes half a second.
  if (literal.length <= integerCharsMax && /^-?\d+$/.test(literal) && literal !== '-0') {
    const integer = BigInt(literal)
    if (integer <= twoTo64 && integer >= minusTwoTo63) return integer.toString()
  }
  const value = Number(literal)
  // An infinite number stays as its text: if all such texts became `Infinity`, different values, or persons, would be taken
  // for the same.
  return Number.isFinite(value) ? formatFloat(value) : literal
}

/** Shortest decimal of a double, always with a fraction or an exponent; `1e+16` style from 1e16, `1e-7` below 1e-5. */
function formatFloat(value: number): string {
  if (Object.is(value, -0)) return '-0.0'
  const magnitude = Math.abs(value)
  if (magnitude !== 0 && (magnitude >= 1e16 || magnitude < 1e-5)) return value.toExponential()
  const text = magnitude < 1e-6 && magnitude !== 0 ? value.toFixed(20) : String(value)
  return /[.e]/.test(text) ? text : `${text}.0`
}

/** A key with such a UTF-16 unit may sort differently by UTF-16 units than by code points. */
const surrogateOrHigher = /[\ud800-\uffff]/

/** Uses only the engine's native comparison, since anyone may send many long keys with a long common prefix. */
function sortByCodePoint(keys: string[]): string[] {
  if (!keys.some(key => surrogateOrHigher.test(key))) return keys.sort()
  // UTF-8 bytes sort in the same order as code points.
  const entries = keys.map(key => ({ key, bytes: Buffer.from(key) }))
  return entries.sort((a, b) => Buffer.compare(a.bytes, b.bytes)).map(({ key }) => key)
}

/** A double reproduces every integer of up to this many digits. */
const exactDigitsMax = 15
/** Slices up to this length are copied by the engine. A longer slice would keep the whole text in memory. */
const copiedCharsMax = 12

/**
 * Reads valid JSON text, however deep it nests. Our own parser, because a reviver of `JSON.parse` takes one to two
 * microseconds for every value: 64 KiB of `0,` alone would hold the event loop for 40 ms.
 */
class JsonReader {
  readonly #text: string
  readonly #numberOf: (literal: string) => JsonValue
  #at = 0
  /** Index of the first backslash at or after the place last searched from; the text's length when there is none. */
  #escapeAt = -1

  /** @param numberOf makes a number of any literal but a short integer. */
  constructor(text: string, numberOf: (literal: string) => JsonValue) {
    this.#text = text
    this.#numberOf = numberOf
  }

  value(): JsonValue {
    const root: JsonValue[] = []
    /** `holder` is the list or object that contains the current value; `around` has those that contain `holder`. */
    let holder: JsonValue[] | JsonObject = root
    const around: (typeof holder)[] = []
    do {
      let unit = this.#next()
      if (unit === comma) {
        this.#at++
        unit = this.#next()
      }
      if (unit === closeBracket || unit === closeBrace) {
        this.#at++
        holder = around.pop()!
        continue
      }
      let value: JsonValue
      if (Array.isArray(holder)) {
        value = this.#readStart(unit)
        holder.push(value)
      } else {
        const key = this.#string()
        this.#next()
        this.#at++ // the colon
        unit = this.#next()
        value = this.#readStart(unit)
        setOwnValue(holder, key, value)
      }
      if (unit === openBracket || unit === openBrace) {
        around.push(holder)
        holder = value as typeof holder
      }
    } while (around.length > 0)
    return root[0]!
  }

  /** Reads a whole value, or only the opening of a list or an object. */
  #readStart(unit: number): JsonValue {
    switch (unit) {
      case quote:
        return this.#string()
      case openBrace:
        this.#at++
        return {}
      case openBracket:
        this.#at++
        return []
      case lowerT:
        this.#at += 4
        return true
      case lowerF:
        this.#at += 5
        return false
      case lowerN:
        this.#at += 4
        return null
      default:
        return this.#number()
    }
  }

  /** Skips blanks and returns the next character. */
  #next(): number {
    let unit = this.#text.charCodeAt(this.#at)
    while (unit <= 0x20) unit = this.#text.charCodeAt(++this.#at)
    return unit
  }

  #string(): string {
    const text = this.#text
    const at = this.#at
    if (this.#escapeAt < at) {
      const found = text.indexOf('\\', at)
      this.#escapeAt = found < 0 ? text.length : found
    }
    let end = text.indexOf('"', at + 1)
    const isEscaped = this.#escapeAt < end
    if (isEscaped) {
      // A backslash also consumes the next character, which may be a quote or another backslash.
      end = this.#escapeAt
      for (let unit = backslash; unit !== quote; unit = text.charCodeAt(end)) end += unit === backslash ? 2 : 1
    }
    this.#at = end + 1
    return isEscaped || end - at - 1 > copiedCharsMax
      ? (JSON.parse(text.slice(at, end + 1)) as string)
      : text.slice(at + 1, end)
  }

  #number(): JsonValue {
    const text = this.#text
    const at = this.#at
    const isNegative = text.charCodeAt(at) === minus
    const firstDigit = isNegative ? at + 1 : at
    let end = firstDigit
    let integer = 0
    let unit = text.charCodeAt(end)
    while (unit >= zero && unit <= nine) {
      integer = integer * 10 + (unit - zero)
      unit = text.charCodeAt(++end)
    }
    // No point and no exponent follows; `-0` is excluded below.
    const isInteger = unit !== dot && (unit | caseBit) !== lowerE
    if (isInteger && end - firstDigit <= exactDigitsMax && !(isNegative && integer === 0)) {
      this.#at = end
      return isNegative ? -integer : integer
    }
    while (unit > 0x20 && unit !== comma && (unit | caseBit) !== closeBrace) unit = text.charCodeAt(++end)
    this.#at = end
    return this.#numberOf(text.slice(at, end))
  }
}
