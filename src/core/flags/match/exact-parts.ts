// What the JSON text of properties has to contain for a property to be in it, or for its value to match an `exact` filter,
// so that a store can leave out most other texts without reading them. It lets others through: the evaluator decides.
// Source: docs/wire/evaluation.md 5.9.

import { type JsonValue, textOf } from '../../json.ts'

/** Parts of a text, in their order: ASCII in lower case. Each is to be found whatever its case. */
export type TextParts = readonly string[]

/** A store looks for each of them in each text. */
const alternativeCountMax = 20
const charsMax = 100

/**
 * Characters that the text may have in another form: those that JSON may escape, those whose case stores fold in different
 * ways, and the two ASCII letters that others fold to, `i` (from `İ`) and `k` (from the Kelvin sign).
 */
const unsure = /[^ -~]|["\\/ik]/g
/** Stands for them. No text that is stored has it. */
const gap = '\0'
/** Numbers have many literals with the same text form, save whole ones. Keys of objects may be in another order. */
const hasManyForms = /^(?![-]?\d+$)[-+.\de]+$|^[[{]/
/** What may be stored as a text or as a value of another type. */
const isLiteral = /^-?\d+$|^true$|^false$|^null$/
/** What is in every text. */
const isMarkup = /^[":]*$/

/**
 * @param exact the value of an `exact` filter; undefined for any value.
 * @returns alternatives, one of which the compact JSON text has wherever the property is there with such a value; one of no
 *   parts says nothing. A text with an escape by number (`\u`) may match without them.
 */
export function partsOfProperty(key: string, exact: JsonValue | undefined): readonly TextParts[] {
  const start = `"${sure(key)}${key.length <= charsMax ? '":' : ''}`
  const texts = exact === undefined ? null : exactTexts(exact)
  return texts === null ? [partsOf(start)] : texts.map(text => partsOf(`${start}${sureValue(text)}`))
}

/** Null when truth is compared, which many values share, or there are too many. */
function exactTexts(filter: JsonValue): readonly string[] | null {
  const texts = (Array.isArray(filter) ? filter : [filter]).map(value => textOf(value).toLowerCase())
  if (texts.length > alternativeCountMax || texts.every(text => text === 'true' || text === 'false')) return null
  return texts
}

function sureValue(text: string): string {
  if (hasManyForms.test(text)) return ''
  if (isLiteral.test(text)) return `${gap}${sure(text)}`
  return `"${sure(text)}${text.length <= charsMax ? '"' : ''}`
}

function sure(text: string): string {
  return text.toLowerCase().slice(0, charsMax).replace(unsure, gap)
}

function partsOf(text: string): TextParts {
  return text.split(gap).filter(part => !isMarkup.test(part))
}
