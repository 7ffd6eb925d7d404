// GA4's lists of `{key, value: {string_value, int_value, …}}`. Source: docs/wire/import.md §1.5.

import { isJsonObject, type JsonObject, type JsonValue, numberOrLiteral, ownValue, setOwn } from '#core/json.ts'
import { isEmptyValue } from '#importer/records/record-fields.ts'

const integer = /^-?(?:0|[1-9]\d*)$/
const decimal = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i

/** @returns each key with its set value; the last one of a repeated key. */
export function readKeyedValues(list: JsonValue | undefined): JsonObject {
  const values: JsonObject = {}
  for (const entry of Array.isArray(list) ? list : []) {
    const key = isJsonObject(entry) ? ownValue(entry, 'key') : null
    if (typeof key !== 'string') continue
    const value = findValueThatIsSet(ownValue(entry as JsonObject, 'value'))
    if (value !== null) setOwn(values, key, value)
  }
  return values
}

function findValueThatIsSet(value: JsonValue | undefined): JsonValue | null {
  if (!isJsonObject(value)) return null
  const text = ownValue(value, 'string_value')
  if (!isEmptyValue(text)) return text!
  for (const field of ['int_value', 'float_value', 'double_value']) {
    const number = ownValue(value, field)
    if (!isEmptyValue(number)) return parseNumber(number!)
  }
  return null
}

/** Whole numbers are exported as text, since JSON parsers would round them; so are values such as `NaN`. */
function parseNumber(value: JsonValue): JsonValue {
  if (typeof value !== 'string') return value
  if (integer.test(value)) return numberOrLiteral(value)
  return decimal.test(value) && Number.isFinite(Number(value)) ? Number(value) : value
}
