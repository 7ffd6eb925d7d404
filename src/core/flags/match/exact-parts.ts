// What a JSON text has to contain for a value in it to match an `exact` filter, so that a store can leave out most others
// without reading them. It lets others through: the evaluator decides.
// Source: docs/wire/evaluation.md 5.9.

import { type JsonValue, textOf } from '../../json.ts'

/** Parts of a text, in their order: ASCII in lower case. Each is to be found whatever its case. */
export type TextParts = readonly string[]

/** A store looks for each of them in each text. */
const alternativeCountMax = 20
/** Shorter ones are in nearly every text. */
const charsMin = 3
const charsMax = 100

/**
 * Characters that the text may have in another form: those that JSON may escape, those whose case stores fold in different
 * ways, and the two ASCII letters that others fold to, `i` (from `İ`) and `k` (from the Kelvin sign).
 */
const unsure = /[^ -~]|["\\/ik]/
/** Numbers have many literals with the same text form, save whole ones. Keys of objects may be in another order. */
const hasManyForms = /^(?![-]?\d+$)[-+.\de]*$|^[[{]/

/**
 * @returns alternatives, one of which the JSON text contains wherever a value in it matches; null when that cannot be said. A
 *   text with an escape by number (`\u`) may match without them.
 */
export function partsOfExact(filter: JsonValue): readonly TextParts[] | null {
  const texts = (Array.isArray(filter) ? filter : [filter]).map(value => textOf(value).toLowerCase())
  // Truth is compared then, which many values share.
  if (texts.every(text => text === 'true' || text === 'false')) return null
  if (texts.length > alternativeCountMax || texts.some(text => hasManyForms.test(text))) return null
  const alternatives = texts.map(text =>
    text
      .slice(0, charsMax)
      .split(unsure)
      .filter(part => part !== ''),
  )
  return alternatives.every(parts => parts.join('').length >= charsMin) ? alternatives : null
}
