// Regular expressions of flags and cohorts: translates the linear-time part of the patterns' dialect to RE2 syntax.
// Patterns come from project members and subjects from the public, so nothing may backtrack.
// Source: docs/wire/evaluation.md 5.9.1.

import { RE2JS } from 're2js'
import { err, ok, type Result } from '../../result.ts'
import { RegexCost, regexUnits } from './regex-cost.ts'

export const patternCharsMax = 1_000
export const subjectBytesMax = 16 * 1024
/**
 * The maximum cost of searching a text, in instructions times characters: some 50 ms. Usually the engine takes time
 * proportional to the text, but some patterns run all their instructions at each character, and a search cannot be
 * interrupted. Source: ours.
 */
export const searchStepsMax = 2_500_000
/** Before a search of more steps than this (about 2 ms at worst), the time is checked. */
const quickSearchSteps = 100_000
/**
 * About 10 ms of compiling. Real patterns need far less: one for an e-mail address, with lengths and `\w`, has a few
 * hundred.
 */
export const patternUnitsMax = 10_000

export interface FlagRegex {
  /** The estimated cost of compiling the pattern, in the units of `regex-cost.ts`. */
  readonly units: number
  /** The pattern in the syntax of the original RE2, whose character tables may differ beyond ASCII. */
  readonly re2Pattern: string
  /** A text with more UTF-16 units than this is too expensive to search. */
  readonly textCharsMax: number
  /** Whether searching the text may take more than 2 ms. */
  isSlow(text: string): boolean
  /** Whether the text is too long to be searched, in general or for this pattern. */
  isTooLong(text: string): boolean
  /** Whether the pattern is found anywhere in the text; null when the text is too long. */
  find(text: string): boolean | null
}

/**
 * Compiled patterns, for as long as a compiled flag uses them. Compiling takes some ms, and changed definitions compile
 * flags again, nearly always with the same patterns.
 */
const inUse = new Map<string, WeakRef<FlagRegex>>()
const unused = new FinalizationRegistry<string>(pattern => {
  if (inUse.get(pattern)?.deref() === undefined) inUse.delete(pattern)
})

/** @returns err when the pattern is outside the dialect, with the reason in words for its author. */
export function compileFlagRegex(pattern: string): Result<FlagRegex, string> {
  const known = inUse.get(pattern)?.deref()
  if (known !== undefined) return ok(known)
  const compiled = compile(pattern)
  if (compiled.ok) {
    inUse.set(pattern, new WeakRef(compiled.value))
    unused.register(compiled.value, pattern)
    retainNewest(compiled.value)
  }
  return compiled
}

/** The newest patterns, used or not: a validated flag is compiled for evaluation a little later. */
const newest: FlagRegex[] = []
const newestUnitsMax = 30_000
let newestUnits = 0

function retainNewest(regex: FlagRegex): void {
  newest.push(regex)
  newestUnits += regex.units
  while (newestUnits > newestUnitsMax) newestUnits -= newest.shift()!.units
}

/** The estimated cost of compiling a pattern, in the units of `regex-cost.ts`; 0 for one outside the dialect. */
export function countPatternUnits(pattern: string): number {
  const translated = pattern.length > 2 * patternCharsMax ? null : translate(pattern)
  return translated?.ok ? translated.value.units : 0
}

function compile(pattern: string): Result<FlagRegex, string> {
  if (Array.from(pattern).length > patternCharsMax) return err(`longer than ${patternCharsMax} characters`)
  const translated = translate(pattern)
  if (!translated.ok) return translated
  try {
    const { text: re2Pattern, units, instructions } = translated.value
    if (units > patternUnitsMax) {
      return err('too large: counted repetitions and classes such as \\w expand it beyond what can be compiled in time')
    }
    const compiled = RE2JS.compile(re2Pattern)
    const isTooLong = (text: string) => isTooLongForAny(text) || instructions * text.length > searchStepsMax
    return ok({
      units,
      // RE2 has no table of alphabetic characters; letters, marks and numerals are nearly all of them.
      re2Pattern: re2Pattern.replaceAll('\\p{Alphabetic}', '\\p{L}\\p{Nl}'),
      textCharsMax: Math.floor(searchStepsMax / Math.max(instructions, 1)),
      isSlow: text => instructions * text.length > quickSearchSteps,
      isTooLong,
      find: text => (isTooLong(text) ? null : compiled.test(text)),
    })
  } catch (cause) {
    return err(cause instanceof Error ? cause.message : 'not a regular expression')
  }
}

function isTooLongForAny(text: string): boolean {
  if (text.length * 3 <= subjectBytesMax) return false
  return text.length > subjectBytesMax || Buffer.byteLength(text, 'utf8') > subjectBytesMax
}

// The contents of classes without brackets, so that they can be used alone or inside another class.
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

/** Whether case is ignored somewhere in the pattern. */
const folds = /\(\?[a-zA-Z]*i/
const countedRepetition = /\{(\d{1,9})(?:(,)(\d{0,9}))?\}/y

function translate(pattern: string): Result<{ text: string; units: number; instructions: number }, string> {
  const cost = new RegexCost()
  const isFolded = folds.test(pattern)
  let out = ''
  let at = 0
  let followsRepetition = false
  while (at < pattern.length) {
    const char = pattern[at]!
    let isRepetition = false
    if (char === '\\') {
      const piece = translateEscape(pattern, at, false)
      if (!piece.ok) return piece
      out += piece.value.text
      at = piece.value.next
      cost.piece(countPieceUnits(piece.value, isFolded))
    } else if (char === '[') {
      const charClass = translateClass(pattern, at, isFolded)
      if (!charClass.ok) return charClass
      out += charClass.value.text
      at = charClass.value.next
      cost.piece(charClass.value.units)
    } else {
      const refused = findRefusalAt(pattern, at, followsRepetition)
      if (refused !== null) return err(refused)
      const length = scanOperator(pattern, at, cost)
      isRepetition = length > 1 || '*+?'.includes(char)
      out += pattern.slice(at, at + length)
      at += length
    }
    followsRepetition = isRepetition
  }
  return ok({ text: out, units: cost.units, instructions: cost.instructions })
}

/** @returns the length in characters of the operator or literal at `at`. */
function scanOperator(pattern: string, at: number, cost: RegexCost): number {
  const char = pattern[at]!
  if (char === '(') cost.openGroup()
  else if (char === ')') cost.closeGroup()
  else if (char === '*' || char === '+' || char === '?') cost.repeatAny()
  else if (char === '{') {
    countedRepetition.lastIndex = at
    const [text, least, comma, most] = countedRepetition.exec(pattern) ?? []
    if (text === undefined) cost.piece()
    else {
      const [leastCount, mostCount] = [Number(least), Number(most)]
      cost.repeatCounted(leastCount, comma === undefined || most === '' ? leastCount : mostCount)
      return text.length
    }
  } else cost.piece()
  return 1
}

/** @param followsRepetition false after the `}` of `\p{Greek}` and after `\+`, which are not repetitions. */
function findRefusalAt(pattern: string, at: number, followsRepetition: boolean): string | null {
  const char = pattern[at]!
  if (char === '(') {
    const group = refusedGroups.find(([opening]) => pattern.startsWith(opening, at))
    if (group !== undefined) return `${group[1]} (${group[0]}…) is outside the linear-time dialect`
    if (/^\(\?[a-z-]*x/.test(pattern.slice(at, at + 8))) return 'the flag x is outside the dialect'
  }
  if (char === '+' && followsRepetition) return 'a possessive quantifier is outside the linear-time dialect'
  return null
}

interface Piece {
  readonly text: string
  readonly next: number
  /** How many character tables the regular expression engine reads for this piece. */
  readonly tables: number
  readonly hasWideRange?: true
}

function countPieceUnits({ tables, hasWideRange }: Piece, isFolded: boolean): number {
  if (tables === 0) return regexUnits.char
  if (isFolded && hasWideRange) return regexUnits.foldedRange
  return tables * (isFolded ? regexUnits.foldedTable : regexUnits.table)
}

function translateEscape(pattern: string, at: number, inClass: boolean): Result<Piece, string> {
  const letter = pattern[at + 1]
  if (letter === undefined) return err('a backslash at the end')
  const next = at + 2
  const regexPiece = (text: string, tables: number) => ok({ text, next, tables })
  const wrapClass = (content: string, negated: string, tables: number) =>
    regexPiece(inClass ? content : `[${negated}${content}]`, tables)
  switch (letter) {
    case 'd':
      return regexPiece('\\p{Nd}', 1)
    case 'D':
      return regexPiece('\\P{Nd}', 1)
    case 'w':
      return wrapClass(wordClass, '', 4)
    case 'W':
      return inClass ? regexPiece(buildNotWordClass(), notWordTables) : wrapClass(wordClass, '^', 4)
    case 's':
      return wrapClass(spaceClass, '', 1)
    case 'S':
      return inClass ? ok({ ...regexPiece(notSpaceClass, 1).value, hasWideRange: true }) : wrapClass(spaceClass, '^', 1)
    case 'u':
    case 'U':
      return translateCodePoint(pattern, at)
    case 'b':
      return pattern[next] === '{' ? err('\\b{…} is outside the dialect') : regexPiece('\\b', 0)
    case 'h':
    case 'Q':
    case 'E':
    case 'C':
    case '<':
    case '>':
      return err(`\\${letter} is outside the dialect`)
    default:
      if (/\d/.test(letter) || letter === 'k') return err('a back-reference is outside the linear-time dialect')
      if (letter === 'x' || letter === 'p' || letter === 'P') return translateBracedEscape(pattern, at)
      return regexPiece(pattern.slice(at, next), 0)
  }
}

/** Takes `\x{41}` or `\p{Greek}` whole, so that nothing inside is mistaken for syntax. */
function translateBracedEscape(pattern: string, at: number): Result<Piece, string> {
  const tables = pattern[at + 1] === 'x' ? 0 : 1
  if (pattern[at + 2] !== '{') return ok({ text: pattern.slice(at, at + 2), next: at + 2, tables })
  const end = pattern.indexOf('}', at)
  if (end < 0) return err(`\\${pattern[at + 1]}{ without a }`)
  return ok({ text: pattern.slice(at, end + 1), next: end + 1, tables })
}

function translateCodePoint(pattern: string, at: number): Result<Piece, string> {
  const form = /^\\(?:[uU]\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))/.exec(pattern.slice(at, at + 12))
  if (form === null) return err('\\u needs four hex digits or \\u{…}')
  return ok({ text: `\\x{${form[1] ?? form[2] ?? form[3]}}`, next: at + form[0].length, tables: 0 })
}

function translateClass(
  pattern: string,
  start: number,
  isFolded: boolean,
): Result<{ text: string; next: number; units: number }, string> {
  let at = start + 1
  let units = 0
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
      units += isFolded ? regexUnits.foldedRange : regexUnits.char
    } else if (char === '[') return err('a class inside a class is outside the dialect')
    else if ('&-~'.includes(char) && pattern[at + 1] === char) {
      return err(`the class operation ${char}${char} is outside the dialect`)
    } else if (char === '\\') {
      const piece = translateEscape(pattern, at, true)
      if (!piece.ok) return piece
      out += piece.value.text
      at = piece.value.next
      units += countPieceUnits(piece.value, isFolded)
    } else {
      const isWideRange = char === '-' && /[^\0-\x5b\x5d-\x7f]/.test(pattern[at + 1] ?? '')
      units += isFolded && isWideRange ? regexUnits.foldedRange : regexUnits.char
      out += char
      at++
    }
  }
  return at < pattern.length ? ok({ text: `${out}]`, next: at + 1, units }) : err('a class without a ]')
}

/** The complement of `\w` has some 700 ranges, which take as long as this many tables. */
const notWordTables = 25
let notWordRanges: string | undefined

/** Everything that `\w` does not match, as ranges: RE2 has no complement inside a class. Computed when first needed. */
function buildNotWordClass(): string {
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
