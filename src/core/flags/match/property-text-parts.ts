// Finds the parts that a JSON text of properties always contains if it has a certain property, or if the property
// matches an `exact` filter. A store skips texts without these parts. A text that has the parts may still not match:
// the evaluator decides. Source: docs/wire/evaluation.md 5.9.

import { type JsonValue, toComparableText } from '../../json.ts'

/** Parts of a text, in their order: ASCII in lower case. Each is searched for without regard to case. */
export type TextParts = readonly string[]

/** Bounded because a store searches each text for each alternative. */
const alternativeCountMax = 20
const charsMax = 100

/**
 * Characters that the text may have in another form: those that JSON may escape, those whose case stores fold in
 * different ways, and the two ASCII letters to which other characters fold, `i` (from `İ`) and `k` (from the Kelvin
 * sign).
 */
const unsure = /[^ -~]|["\\/ik]/g
/** Replaces the `unsure` characters. No stored text contains it. */
const gap = '\0'
/**
 * Values whose stored text may differ: numbers that are not whole have many literals, and objects may order their keys in
 * another way.
 */
const hasManyForms = /^(?![-]?\d+$)[-+.\de]+$|^[[{]/
/** A text that may be stored as a string, or without quotes as a value of another type. */
const isLiteral = /^-?\d+$|^true$|^false$|^null$/
/** A part whose characters all occur in every text. */
const isMarkup = /^[":]*$/

/**
 * @param exact the value of an `exact` filter; undefined for any value.
 * @returns alternatives, one of which the compact JSON text contains whenever the property is present with such a value; an
 * alternative without parts matches any text. A text with a `\u` escape may match without containing any of them.
 */
export function findPropertyTextParts(key: string, exact: JsonValue | undefined): readonly TextParts[] {
  const start = `"${maskUnsure(key)}${key.length <= charsMax ? '":' : ''}`
  const texts = exact === undefined ? null : listExactTexts(exact)
  return texts === null ? [splitAtGaps(start)] : texts.map(text => splitAtGaps(`${start}${maskUnsureValue(text)}`))
}

/** The texts that match an `exact` filter; null when they are too many, as when boolean-like values are compared. */
function listExactTexts(filter: JsonValue): readonly string[] | null {
  const texts = (Array.isArray(filter) ? filter : [filter]).map(value => toComparableText(value).toLowerCase())
  if (texts.length > alternativeCountMax || texts.every(text => text === 'true' || text === 'false')) return null
  return texts
}

function maskUnsureValue(text: string): string {
  if (hasManyForms.test(text)) return ''
  if (isLiteral.test(text)) return `${gap}${maskUnsure(text)}`
  return `"${maskUnsure(text)}${text.length <= charsMax ? '"' : ''}`
}

function maskUnsure(text: string): string {
  return text.toLowerCase().slice(0, charsMax).replace(unsure, gap)
}

function splitAtGaps(text: string): TextParts {
  return text.split(gap).filter(part => !isMarkup.test(part))
}
