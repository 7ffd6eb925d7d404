// Folds the case of texts and searches texts. Works in linear time, since property values come from the public and may
// be millions of characters long. Remembers the last long text, since many filters test the same property.

import { type JsonValue, toComparableText } from '../../json.ts'

/** Folding a shorter text again costs less than remembering it. */
const longTextChars = 1_024

/**
 * Text forms of lists, objects and kept number literals: many filters test the same property, and converting a large value
 * takes long.
 */
const knownTexts = new WeakMap<object, string>()

export function toPropertyText(value: JsonValue): string {
  if (typeof value !== 'object' || value === null) return toComparableText(value)
  let text = knownTexts.get(value)
  if (text === undefined) {
    text = toComparableText(value)
    knownTexts.set(value, text)
  }
  return text
}

/** The text form in lower case. Never shorter than the text form itself. */
export function toFoldedText(value: JsonValue): string {
  return foldLong(typeof value === 'string' ? value : toPropertyText(value), lowerCase)
}

/** The text form with only A–Z in lower case: `É` stays `É`. */
export function toAsciiFoldedText(value: JsonValue): string {
  return foldLong(typeof value === 'string' ? value : toPropertyText(value), asciiFold)
}

interface Fold {
  (text: string): string
  /** The most recently folded long text, and the result. */
  lastText: string
  lastFolded: string
}

const lowerCase: Fold = Object.assign((text: string) => text.toLowerCase(), { lastText: '', lastFolded: '' })

const notAscii = /[^\0-\x7f]/
const upperAscii = /[A-Z]/

const asciiFold: Fold = Object.assign(
  (text: string) => {
    if (text.length > longTextChars) return foldLongAscii(text)
    const lower = text.toLowerCase()
    if (lower === text) return text // nothing to fold, the usual case
    return notAscii.test(text) ? text.replace(/[A-Z]+/g, letters => letters.toLowerCase()) : lower
  },
  { lastText: '', lastFolded: '' },
)

function foldLong(text: string, fold: Fold): string {
  if (text.length <= longTextChars) return fold(text)
  if (text !== fold.lastText) {
    fold.lastFolded = fold(text)
    fold.lastText = text
  }
  return fold.lastFolded
}

/** Works code unit by code unit: replacing letter by letter takes ten times as long. */
function foldLongAscii(text: string): string {
  if (!upperAscii.test(text)) return text
  if (!notAscii.test(text)) return text.toLowerCase()
  const units = toUtf16Units(text)
  for (let index = 0; index < units.length; index++) {
    const unit = units[index]!
    if (unit >= 0x41 && unit <= 0x5a) units[index] = unit + 0x20
  }
  return Buffer.from(units.buffer).toString('utf16le')
}

/** V8's own search is linear for parts up to this length; it may compare a longer part completely at every position. */
const quickPartChars = 128
const quickProduct = 1_000_000
/** How many characters are searched between two checks of the time: at most a millisecond. */
const charsPerStep = 256 * 1024

/** The answer, or steps towards it between which the caller can stop. */
export type BooleanOrSteps = boolean | Generator<void, boolean>

/** `text.includes(part)`, in linear time for any two texts. */
export function containsText(text: string, part: string): BooleanOrSteps {
  return isQuick(text, part) ? text.includes(part) : containsInSteps(text, part)
}

/** Whether the text contains one of the parts. */
export function containsAny(text: string, parts: readonly string[]): BooleanOrSteps {
  return text.length * parts.length <= charsPerStep && parts.every(part => isQuick(text, part))
    ? parts.some(part => text.includes(part))
    : containsAnyInSteps(text, parts)
}

function isQuick(text: string, part: string): boolean {
  return part.length <= quickPartChars || part.length > text.length || text.length * part.length <= quickProduct
}

function* containsAnyInSteps(text: string, parts: readonly string[]): Generator<void, boolean> {
  let chars = 0
  for (const part of parts) {
    if (isQuick(text, part) ? text.includes(part) : yield* containsInSteps(text, part)) return true
    chars += text.length
    if (chars < charsPerStep) continue
    chars = 0
    yield
  }
  return false
}

/** Knuth-Morris-Pratt search. */
function* containsInSteps(text: string, part: string): Generator<void, boolean> {
  const wanted = toUtf16Units(part)
  const borders = computeBorders(wanted)
  let matched = 0
  for (let from = 0; from < text.length; from += charsPerStep) {
    if (from > 0) yield
    const units = toUtf16Units(text.slice(from, from + charsPerStep))
    for (let at = 0; at < units.length; at++) {
      const unit = units[at]!
      while (matched > 0 && wanted[matched] !== unit) matched = borders[matched - 1]!
      if (wanted[matched] === unit && ++matched === wanted.length) return true
    }
  }
  return false
}

/** For each prefix of the part, the length of the longest shorter prefix that is also its suffix. */
function computeBorders(part: Uint16Array): Int32Array {
  const borders = new Int32Array(part.length)
  let border = 0
  for (let at = 1; at < part.length; at++) {
    const unit = part[at]!
    while (border > 0 && part[border] !== unit) border = borders[border - 1]!
    if (part[border] === unit) border++
    borders[at] = border
  }
  return borders
}

function toUtf16Units(text: string): Uint16Array<ArrayBuffer> {
  const units = new Uint16Array(text.length)
  Buffer.from(units.buffer).write(text, 'utf16le')
  return units
}
