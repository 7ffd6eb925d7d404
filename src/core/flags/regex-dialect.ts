// Regular expressions of flags and cohorts: the linear-time part of the dialect that patterns are written in, translated
// to RE2 syntax. Patterns come from project members and subjects from the public, so nothing here may backtrack.
// Source: docs/wire/evaluation.md 5.9.1.

import { RE2JS } from 're2js'
import { err, ok, type Result } from '../result.ts'

export const patternCharsMax = 1_000
export const subjectBytesMax = 16 * 1024

export interface FlagRegex {
  /** Whether the pattern is found anywhere in the text; null when the text is too long to ask. */
  find(text: string): boolean | null
}

/**
 * What is compiled, as long as somebody uses it: compiling takes up to 50 ms, and every write to a project compiles all of
 * its flags again, nearly always with the patterns they had.
 */
const inUse = new Map<string, WeakRef<FlagRegex>>()
const unused = new FinalizationRegistry<string>(pattern => {
  if (inUse.get(pattern)?.deref() === undefined) inUse.delete(pattern)
})

/** @returns err with the reason, in words for whoever wrote the pattern, when it is outside the dialect. */
export function compileFlagRegex(pattern: string): Result<FlagRegex, string> {
  const known = inUse.get(pattern)?.deref()
  if (known !== undefined) return ok(known)
  const compiled = compile(pattern)
  if (compiled.ok) {
    inUse.set(pattern, new WeakRef(compiled.value))
    unused.register(compiled.value, pattern)
  }
  return compiled
}

function compile(pattern: string): Result<FlagRegex, string> {
  if (Array.from(pattern).length > patternCharsMax) return err(`longer than ${patternCharsMax} characters`)
  const translated = translate(pattern)
  if (!translated.ok) return translated
  try {
    const compiled = RE2JS.compile(translated.value)
    return ok({ find: text => (isTooLong(text) ? null : compiled.test(text)) })
  } catch (cause) {
    return err(cause instanceof Error ? cause.message : 'not a regular expression')
  }
}

/** Why a pattern cannot be used, in a sentence for whoever wrote it, or null when it can. */
export function regexProblem(pattern: string): string | null {
  const compiled = compileFlagRegex(pattern)
  return compiled.ok ? null : `This regular expression cannot be used: ${compiled.error}.`
}

function isTooLong(text: string): boolean {
  if (text.length * 3 <= subjectBytesMax) return false
  return text.length > subjectBytesMax || Buffer.byteLength(text, 'utf8') > subjectBytesMax
}

// Contents of classes, so that each can stand in brackets of its own or inside others.
const wordClass = '\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}'
const spaceClass =
  '\\x{9}-\\x{D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}'
const notSpaceClass =
  '\\x{0}-\\x{8}\\x{E}-\\x{1F}\\x{21}-\\x{84}\\x{86}-\\x{9F}\\x{A1}-\\x{167F}\\x{1681}-\\x{1FFF}\\x{200B}-\\x{2027}' +
  '\\x{202A}-\\x{202E}\\x{2030}-\\x{205E}\\x{2060}-\\x{2FFF}\\x{3001}-\\x{10FFFF}'

const refusedGroups: readonly (readonly [string, string])[] = [
  ['(?=', 'look-ahead'],
  ['(?!', 'look-ahead'],
  ['(?<=', 'look-behind'],
  ['(?<!', 'look-behind'],
  ['(?>', 'an atomic group'],
]

function translate(pattern: string): Result<string, string> {
  let out = ''
  let at = 0
  while (at < pattern.length) {
    const char = pattern[at]!
    if (char === '\\') {
      const piece = translateEscape(pattern, at, false)
      if (!piece.ok) return piece
      out += piece.value.text
      at = piece.value.next
    } else if (char === '[') {
      const charClass = translateClass(pattern, at)
      if (!charClass.ok) return charClass
      out += charClass.value.text
      at = charClass.value.next
    } else {
      const refused = refusalAt(pattern, at)
      if (refused !== null) return err(refused)
      out += char
      at++
    }
  }
  return ok(out)
}

function refusalAt(pattern: string, at: number): string | null {
  const char = pattern[at]!
  if (char === '(') {
    const group = refusedGroups.find(([opening]) => pattern.startsWith(opening, at))
    if (group !== undefined) return `${group[1]} (${group[0]}…) is outside the linear-time dialect`
    if (/^\(\?[a-z-]*x/.test(pattern.slice(at, at + 8))) return 'the flag x is outside the dialect'
  }
  if (char === '+' && at > 0 && '*+?}'.includes(pattern[at - 1]!) && !isEscaped(pattern, at - 1)) {
    return 'a possessive quantifier is outside the linear-time dialect'
  }
  return null
}

function isEscaped(pattern: string, at: number): boolean {
  let slashes = 0
  while (pattern[at - 1 - slashes] === '\\') slashes++
  return slashes % 2 === 1
}

interface Piece {
  readonly text: string
  readonly next: number
}

function translateEscape(pattern: string, at: number, inClass: boolean): Result<Piece, string> {
  const letter = pattern[at + 1]
  if (letter === undefined) return err('a backslash at the end')
  const next = at + 2
  const piece = (text: string, end = next) => ok({ text, next: end })
  const wrapped = (content: string, negated: string) => piece(inClass ? content : `[${negated}${content}]`)
  switch (letter) {
    case 'd':
      return piece('\\p{Nd}')
    case 'D':
      return piece('\\P{Nd}')
    case 'w':
      return wrapped(wordClass, '')
    case 'W':
      return inClass ? piece(notWordClass()) : wrapped(wordClass, '^')
    case 's':
      return wrapped(spaceClass, '')
    case 'S':
      return inClass ? piece(notSpaceClass) : wrapped(spaceClass, '^')
    case 'u':
    case 'U':
      return codePointEscape(pattern, at)
    case 'b':
      return pattern[next] === '{' ? err('\\b{…} is outside the dialect') : piece('\\b')
    case 'h':
    case 'Q':
    case 'E':
    case 'C':
    case '<':
    case '>':
      return err(`\\${letter} is outside the dialect`)
    default:
      if (/\d/.test(letter) || letter === 'k') return err('a back-reference is outside the linear-time dialect')
      if (letter === 'x' || letter === 'p' || letter === 'P') return bracedEscape(pattern, at)
      return piece(pattern.slice(at, next))
  }
}

/** `\x{41}`, `\p{Greek}`: taken whole, so that nothing inside is mistaken for syntax. */
function bracedEscape(pattern: string, at: number): Result<Piece, string> {
  if (pattern[at + 2] !== '{') return ok({ text: pattern.slice(at, at + 2), next: at + 2 })
  const end = pattern.indexOf('}', at)
  if (end < 0) return err(`\\${pattern[at + 1]}{ without a }`)
  return ok({ text: pattern.slice(at, end + 1), next: end + 1 })
}

function codePointEscape(pattern: string, at: number): Result<Piece, string> {
  const form = /^\\(?:[uU]\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))/.exec(pattern.slice(at, at + 12))
  if (form === null) return err('\\u needs four hex digits or \\u{…}')
  return ok({ text: `\\x{${form[1] ?? form[2] ?? form[3]}}`, next: at + form[0].length })
}

function translateClass(pattern: string, start: number): Result<Piece, string> {
  let at = start + 1
  let out = '['
  if (pattern[at] === '^') {
    out += '^'
    at++
  }
  if (pattern[at] === ']') {
    out += '\\]'
    at++
  }
  while (at < pattern.length && pattern[at] !== ']') {
    const char = pattern[at]!
    const posix = char === '[' ? /^\[:\^?[a-z]+:\]/.exec(pattern.slice(at, at + 16)) : null
    if (posix !== null) {
      out += posix[0]
      at += posix[0].length
    } else if (char === '[') return err('a class inside a class is outside the dialect')
    else if ('&-~'.includes(char) && pattern[at + 1] === char) {
      return err(`the class operation ${char}${char} is outside the dialect`)
    } else if (char === '\\') {
      const piece = translateEscape(pattern, at, true)
      if (!piece.ok) return piece
      out += piece.value.text
      at = piece.value.next
    } else {
      out += char
      at++
    }
  }
  return at < pattern.length ? ok({ text: `${out}]`, next: at + 1 }) : err('a class without a ]')
}

let notWordRanges: string | undefined

/** Everything that `\w` does not hold, as ranges: RE2 has no complement inside a class. Worked out when first needed. */
function notWordClass(): string {
  if (notWordRanges !== undefined) return notWordRanges
  const word = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]/u
  const ranges: string[] = []
  let from = -1
  for (let code = 0; code <= 0x10ffff + 1; code++) {
    const outside = code <= 0x10ffff && !word.test(String.fromCodePoint(code))
    if (outside && from < 0) from = code
    if (code === 0x40000) code = 0xdffff // nothing is assigned in between, nor from U+E1000 on
    if (code === 0xe1000) code = 0x10ffff
    if (!outside && from >= 0) {
      ranges.push(`\\x{${from.toString(16)}}-\\x{${(code - 1).toString(16)}}`)
      from = -1
    }
  }
  notWordRanges = ranges.join('')
  return notWordRanges
}
