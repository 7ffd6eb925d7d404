// Reads JSON text without parsing it: finds the parts of an object, so that some can be picked or left out, and bounds the
// depth and the number of values of any text before it is parsed. Walking over a text takes one or two nanoseconds per
// character, for any content. `wire/bytes/json-walk.ts` does the same with bytes.

import { ascii } from './ascii.ts'

const { quote, comma, colon, openBracket, backslash, closeBracket, openBrace, closeBrace, lowerU } = ascii

/**
 * @returns the index after the string that begins at `start`.
 * @throws SyntaxError when no string begins there or it does not end.
 */
export function findStringEnd(text: string, start: number): number {
  if (text.charCodeAt(start) !== quote) throw new SyntaxError(`no string begins at ${start}`)
  for (let at = start; ; ) {
    at = text.indexOf('"', at + 1)
    if (at === -1) throw new SyntaxError('the text ends within a string')
    let escapes = at
    while (text.charCodeAt(escapes - 1) === backslash) escapes--
    if ((at - escapes) % 2 === 0) return at + 1
  }
}

/**
 * @returns the index after the member value that begins at `start`: the index of the next comma or closing brace.
 * @throws SyntaxError
 */
export function findValueEnd(text: string, start: number): number {
  let depth = 0
  for (let at = start; at < text.length; ) {
    const char = text.charCodeAt(at)
    if (char === quote) {
      at = findStringEnd(text, at)
      continue
    }
    if (depth === 0 && (char === comma || char === closeBrace)) return at
    if (char === openBrace || char === openBracket) depth++
    else if (char === closeBrace || char === closeBracket) depth--
    at++
  }
  throw new SyntaxError('the text ends within a value')
}

/** The key that a JSON string spells. @param end the index after its closing quote. */
export function readKeyAt(text: string, start: number, end: number): string {
  const bare = text.slice(start + 1, end - 1)
  return bare.includes('\\') ? (JSON.parse(`"${bare}"`) as string) : bare
}

/**
 * The object's text without the members of these names, repeats included; all other members stay as they were written.
 * @param text valid JSON text of an object.
 */
export function removeMembers(text: string, names: ReadonlySet<string>): string {
  const nameAt: MemberNames['nameAt'] = (text, start, end) => {
    const name = readKeyAt(text, start, end)
    return names.has(name) ? name : null
  }
  return editMembers(text, findMembersNamed(text, { nameAt }), () => null)
}

/** A few names that are looked for in many texts. The length of a key alone rules out most other keys. */
export class MemberNames {
  readonly #byLength: string[][] = []
  readonly #all: ReadonlySet<string>

  /** @param names of letters, digits, `$` and `_`. */
  constructor(names: readonly string[]) {
    this.#all = new Set(names)
    for (const name of names) {
      this.#byLength[name.length] ??= []
      this.#byLength[name.length]!.push(name)
    }
  }

  /**
   * The name that the JSON string from `start` to `end` spells; null for any other string. @param hasEscapes whether the
   * text has `\u` escapes.
   */
  nameAt(text: string, start: number, end: number, hasEscapes: boolean): string | null {
    if (hasEscapes) {
      const name = readKeyAt(text, start, end)
      return this.#all.has(name) ? name : null
    }
    const candidates = this.#byLength[end - start - 2]
    if (candidates !== undefined) for (const name of candidates) if (text.startsWith(name, start + 1)) return name
    return null
  }
}

/** Where a member is in the text of its object. */
export interface JsonMember {
  readonly name: string
  /** The indexes at which the member's key and its value begin. */
  readonly start: number
  readonly valueStart: number
  /** The index of the comma or brace after the value; blanks may lie between. */
  readonly end: number
}

/** The members with these names, in their order, repeats included. @param text valid JSON text of an object. */
export function findMembersNamed(text: string, names: Pick<MemberNames, 'nameAt'>): JsonMember[] {
  const members: JsonMember[] = []
  // Only a `\u` escape can stand for a character of a name.
  const hasEscapes = text.includes('\\u')
  let start = skipBlanks(text, text.indexOf('{') + 1)
  while (text.charCodeAt(start) !== closeBrace) {
    const keyEnd = findStringEnd(text, start)
    const valueStart = skipBlanks(text, skipBlanks(text, keyEnd) + 1)
    const end = findValueEnd(text, valueStart)
    const name = names.nameAt(text, start, keyEnd, hasEscapes)
    if (name !== null) members.push({ name, start, valueStart, end })
    start = text.charCodeAt(end) === comma ? skipBlanks(text, end + 1) : end
  }
  return members
}

/**
 * The object's text with some members edited, each repeat separately; all other members, and the blanks before and around
 * them, stay as they were written. An object without members is `{}`.
 * @param text valid JSON text of an object.
 * @param members members of that object, in their order. @param edit the replacement for a member: null leaves it out, a
 * text replaces its value, and undefined keeps it.
 */
export function editMembers(
  text: string,
  members: readonly JsonMember[],
  edit: (member: JsonMember) => string | null | undefined,
): string {
  let edited = ''
  // The text before this index has been copied or left out.
  let done = 0
  let isAnyKept = false
  const first = skipBlanks(text, text.indexOf('{') + 1)
  for (const member of members) {
    const value = edit(member)
    if (value === undefined) continue
    const { start, valueStart, end } = member
    isAnyKept ||= start > Math.max(first, done)
    if (value !== null) {
      edited += text.slice(done, valueStart) + value
      done = skipBlanks(text, end)
      isAnyKept = true
    } else if (isAnyKept) {
      edited += text.slice(done, text.lastIndexOf(',', start - 1))
      done = skipBlanks(text, end)
    } else {
      edited += text.slice(done, start)
      done = skipBlanks(text, end)
      if (text.charCodeAt(done) === comma) done = skipBlanks(text, done + 1)
    }
  }
  if (!isAnyKept && text.charCodeAt(Math.max(first, done)) === closeBrace) return '{}'
  return edited + text.slice(done)
}

/**
 * The members of an object, in their order, each as it is written: `"name":value`.
 * @param text as JSON.stringify writes it.
 */
export function listMemberTexts(text: string): string[] {
  const members: string[] = []
  for (let at = 1; at < text.length - 1; ) {
    const end = findValueEnd(text, findStringEnd(text, at) + 1)
    members.push(text.slice(at, end))
    at = end + 1
  }
  return members
}

/**
 * The first key that one object of the text repeats, which parsing would hide; null when no key is repeated.
 * @param text valid JSON.
 */
export function findRepeatedKey(text: string): string | null {
  const open: Set<string>[] = []
  for (let at = 0; at < text.length; ) {
    const char = text.charCodeAt(at)
    if (char === openBrace) open.push(new Set())
    else if (char === closeBrace) open.pop()
    if (char !== quote) {
      at++
      continue
    }
    const end = findStringEnd(text, at)
    if (text.charCodeAt(skipBlanks(text, end)) === colon) {
      const key = readKeyAt(text, at, end)
      const keys = open.at(-1)!
      if (keys.has(key)) return key
      keys.add(key)
    }
    at = end
  }
  return null
}

function skipBlanks(text: string, start: number): number {
  let at = start
  while (text.charCodeAt(at) <= 0x20) at++
  return at
}

/**
 * An object's text with as many of its first members as fit; unchanged when all fit.
 * @param text valid JSON text of an object.
 */
export function truncateToFirstMembers(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text
  let end = 0
  let depth = 0
  for (let at = 0; at < lengthMax; at++) {
    switch (text.charCodeAt(at)) {
      case quote:
        at++
        while (at < lengthMax && text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1
        break
      case openBrace:
      case openBracket:
        depth++
        break
      case closeBrace:
      case closeBracket:
        depth--
        break
      case comma:
        if (depth === 1) end = at
    }
  }
  return end === 0 ? '{}' : `${text.slice(0, end)}}`
}

/** Whether lists and objects nest more than `depthMax` deep. The text need not be valid JSON. */
export function isNestedDeeperThan(text: string, depthMax: number): boolean {
  if (!opensMoreThan(text, depthMax)) return false
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === quote) at = findClosingQuote(text, at)
    else if (unit === openBracket || unit === openBrace) {
      if (++depth > depthMax) return true
    } else if (unit === closeBracket || unit === closeBrace) depth--
  }
  return false
}

/**
 * Whether the text has more opening brackets than `countMax`. Hardly any text has so many, so this quick search nearly
 * always decides.
 */
function opensMoreThan(text: string, countMax: number): boolean {
  let count = 0
  for (const bracket of '[{')
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1))
      if (++count > countMax) return true
  return false
}

/** Whether the text holds more than `valuesMax` values. A parsed value takes tens of bytes, however short its text. */
export function hasMoreValuesThan(text: string, valuesMax: number): boolean {
  // A value has at least one character, and another character separates it from the next value.
  return text.length >= 2 * valuesMax && hasMoreSeparatorsThan(text, valuesMax - 1, comma)
}

/**
 * Whether the text has more than `fieldsMax` objects, lists and fields of objects together. Parsing and checking one of
 * these takes about a microsecond, ten times as long as a value in a list.
 */
export function hasMoreFieldsThan(text: string, fieldsMax: number): boolean {
  return text.length > fieldsMax && hasMoreSeparatorsThan(text, fieldsMax, colon)
}

/** Whether the separators and opening brackets outside strings are more than `countMax` together. */
export function hasMoreSeparatorsThan(text: string, countMax: number, separator: number): boolean {
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === quote) at = findClosingQuote(text, at)
    else if (unit === separator || unit === openBracket || unit === openBrace) {
      if (++count > countMax) return true
    }
  }
  return false
}

/**
 * Unlike the native search of `findStringEnd`, this is equally fast for short strings and for many escapes, which an attacker
 * may send.
 * @returns the index of the quote that ends the string that begins at `start`, or of the end of the text.
 */
function findClosingQuote(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === quote) return at
    if (unit === backslash) at++
  }
  return text.length
}

/**
 * Whether valid JSON text holds the escape of a lone UTF-16 surrogate (`"\ud800"`): `JSON.parse` accepts those, but
 * databases and other parsers do not. One native search for text without any surrogate escape; linear otherwise.
 * Source: docs/wire/ingestion.md 2.2.
 */
export function hasLoneSurrogateEscape(json: string): boolean {
  if (!json.includes('\\') || !surrogateEscape.test(json)) return false
  for (let at = json.indexOf('\\'); at !== -1; at = json.indexOf('\\', at)) {
    if (json.charCodeAt(at + 1) !== lowerU) {
      at += 2
      continue
    }
    const unit = Number.parseInt(json.slice(at + 2, at + 6), 16)
    at += 6
    if (unit >= 0xdc00 && unit <= 0xdfff) return true
    if (unit >= 0xd800 && unit <= 0xdbff) {
      lowSurrogateEscape.lastIndex = at
      if (!lowSurrogateEscape.test(json)) return true
      at += 6
    }
  }
  return false
}

const surrogateEscape = /\\u[dD][89a-fA-F]/
const lowSurrogateEscape = /\\u[dD][c-fC-F][0-9a-fA-F]{2}/y
