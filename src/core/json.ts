// JSON values that keep the client's own number literals: `1` and `1.0` are different texts to a flag's filter, and a
// 64-bit id does not fit a double. Literals that a double cannot give back are `RawNumber`s (JSON.rawJSON), which
// JSON.stringify writes out unchanged. Everything else is what JSON.parse makes.

/** A number kept as its literal, made by `JSON.rawJSON`; recognised with `isRawNumber`. */
export type RawNumber = { readonly rawJSON: string }
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject | RawNumber
export type JsonObject = { [key: string]: JsonValue }
/** Properties of a person, group or event. May have any own key, `__proto__` included: read with `Object.hasOwn`. */
export type PropertyBag = JsonObject

// Node 26 has the JSON source-text API; TypeScript's library does not declare all of it yet.
type SourceReviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown
const json = JSON as unknown as {
  parse(text: string, reviver: SourceReviver): JsonValue
  rawJSON(text: string): RawNumber
  isRawJSON(value: unknown): value is RawNumber
}

/**
 * A number, where JSON text can hold one, whose literal a double would not give back: `-0`, 16 digits or more, an
 * exponent, a fraction that ends in 0, or one below a millionth. Text inside strings may look like one; that costs only
 * time. Any other literal has at most 15 digits, and then a double names it uniquely.
 */
const mayLoseLiteral = /[:[,]\s*(?:-0(?!\.)|-?(?:(?:\d\.?){16}|\d+(?:\.\d+)?[eE]|\d+\.\d*0(?=\s*(?:[,}\]]|$))|0\.0{6}))/
const startsAsNumber = /^\s*[-\d]/

/**
 * Parses JSON text and keeps number literals. Plain `JSON.parse` speed unless the text holds a number that a double
 * would rewrite (3 against 13 ms per MiB).
 * @throws SyntaxError for text that is not JSON.
 * Source: docs/wire/evaluation.md 0.
 */
export function parseJson(text: string): JsonValue {
  return mayKeepLiterals(text) ? json.parse(text, keepLiteral) : (JSON.parse(text) as JsonValue)
}

/** Whether parsing the text has to look at each value's own text: some 2 µs for each of them, objects and lists included. */
export function mayKeepLiterals(text: string): boolean {
  return mayLoseLiteral.test(text) || startsAsNumber.test(text)
}

function keepLiteral(_key: string, value: unknown, context: { source?: string }): unknown {
  if (typeof value !== 'number' || context.source === undefined) return value
  return String(value) === context.source ? value : json.rawJSON(context.source)
}

export function rawNumber(literal: string): RawNumber {
  return json.rawJSON(literal)
}

export function isRawNumber(value: unknown): value is RawNumber {
  return json.isRawJSON(value)
}

export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value)
}

/** An own property, or undefined: never what a prototype would answer for `constructor` or `__proto__`. */
export function ownValue(object: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined
}

/** Sets an own property under any key, `__proto__` included. */
export function setOwn(object: JsonObject, key: string, value: JsonValue): void {
  if (key === '__proto__')
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })
  else object[key] = value
}

/** A copy with the own keys of both; keys of `over` win. Safe for any key. */
export function mergeObjects(base: JsonObject, over: JsonObject): JsonObject {
  const merged: JsonObject = {}
  for (const key of Object.keys(base)) setOwn(merged, key, base[key]!)
  for (const key of Object.keys(over)) setOwn(merged, key, over[key]!)
  return merged
}

const twoTo64 = 18446744073709551615n
const minusTwoTo63 = -9223372036854775808n
const integerCharsMax = 20

/**
 * The text form of a JSON value, which operators compare and hash: strings bare, whole literals as digits, other
 * numbers with a fraction or an exponent, lists and objects as compact JSON with keys sorted by code point.
 * Source: docs/wire/evaluation.md 0.
 */
export function textOf(value: JsonValue): string {
  return typeof value === 'string' ? value : compactJson(value)
}

/** Compact JSON with object keys sorted by code point and numbers in their text form. */
export function compactJson(value: JsonValue): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'number':
      return numberText(value)
    case 'boolean':
      return value ? 'true' : 'false'
  }
  if (value === null) return 'null'
  if (Array.isArray(value)) return `[${value.map(compactJson).join(',')}]`
  if (isRawNumber(value)) return literalText(value.rawJSON)
  const keys = sortByCodePoint(Object.keys(value))
  return `{${keys.map(key => `${JSON.stringify(key)}:${compactJson(value[key]!)}`).join(',')}}`
}

/** The double that a number or a kept literal stands for; undefined for anything else. */
export function numberOf(value: JsonValue): number | undefined {
  if (typeof value === 'number') return value
  return isRawNumber(value) ? Number(value.rawJSON) : undefined
}

function numberText(value: number): string {
  if (Object.is(value, -0)) return '-0.0'
  return Number.isInteger(value) && Math.abs(value) < 1e21 ? String(value) : floatText(value)
}

function literalText(literal: string): string {
  // Longer ones do not fit 64 bits, and making a BigInt of a million digits takes half a second.
  if (literal.length <= integerCharsMax && /^-?\d+$/.test(literal) && literal !== '-0') {
    const integer = BigInt(literal)
    if (integer <= twoTo64 && integer >= minusTwoTo63) return integer.toString()
  }
  const value = Number(literal)
  // No double stands for it: texts that all read `Infinity` would make one value, or one person, of different ones.
  return Number.isFinite(value) ? floatText(value) : literal
}

/** Shortest decimal of a double, always with a fraction or an exponent; `1e+16` style from 1e16, `1e-7` below 1e-5. */
function floatText(value: number): string {
  if (Object.is(value, -0)) return '-0.0'
  const magnitude = Math.abs(value)
  if (magnitude !== 0 && (magnitude >= 1e16 || magnitude < 1e-5)) return value.toExponential()
  const text = magnitude < 1e-6 && magnitude !== 0 ? value.toFixed(20) : String(value)
  return /[.e]/.test(text) ? text : `${text}.0`
}

/** From here on the order of UTF-16 units is not that of code points. */
const surrogateOrHigher = /[\ud800-\uffff]/

/** Long keys with a long beginning in common are compared by the engine alone: many of them come from the public. */
function sortByCodePoint(keys: string[]): string[] {
  if (!keys.some(key => surrogateOrHigher.test(key))) return keys.sort()
  // Bytes of UTF-8 sort as code points do.
  const entries = keys.map(key => ({ key, bytes: Buffer.from(key) }))
  return entries.sort((a, b) => Buffer.compare(a.bytes, b.bytes)).map(({ key }) => key)
}
