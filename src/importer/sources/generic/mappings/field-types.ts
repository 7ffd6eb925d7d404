// Converts values, such as the texts of CSV, to the types in a mapping. Source: docs/wire/import.md §1.9 (`types`).

import { isRawNumber, type JsonValue, parseNumberOrLiteral } from '#core/json.ts'
import { parseJsonText } from '#importer/records/record-fields.ts'
import { formatTime, readTime, type TimeForm } from '#importer/records/source-time.ts'

const decimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i
const integer = /^-?(?:0|[1-9]\d*)$/
const truths: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['false', false],
  ['t', true],
  ['f', false],
  ['yes', true],
  ['no', false],
  ['1', true],
  ['0', false],
])

export interface TypeForm extends TimeForm {
  /** Whether numbers use a decimal comma, and may have points between thousands. */
  readonly hasDecimalComma?: boolean
}

/** @returns undefined when the value is not of the type. @throws RecordReject `timestamp_zone_unknown`, naming the field. */
type Convert = (value: JsonValue, form: TypeForm, field: string) => JsonValue | undefined

const toInteger: Convert = (value, form) => {
  const number = toNumber(value, form)
  return Number.isInteger(number) || (isRawNumber(number) && integer.test(number.rawJSON)) ? number : undefined
}
const toBoolean: Convert = value =>
  typeof value === 'boolean' ? value : truths.get(String(toText(value)).trim().toLowerCase())
const toTimestamp: Convert = (value, form, field) => {
  const timeUs = readTime(value, form, field)
  return timeUs === null ? undefined : formatTime(timeUs)
}

/** Types of fields, with the aliases used by other tools. */
export const fieldTypes = {
  text: toText,
  string: toText,
  number: toNumber,
  float: toNumber,
  integer: toInteger,
  int: toInteger,
  boolean: toBoolean,
  bool: toBoolean,
  json: value => (typeof value === 'string' ? parseJsonText(value) : value),
  timestamp: toTimestamp,
  datetime: toTimestamp,
} satisfies Record<string, Convert>

function toText(value: JsonValue): JsonValue {
  if (isRawNumber(value)) return value.rawJSON
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
}

function toNumber(value: JsonValue, { hasDecimalComma }: TypeForm): JsonValue | undefined {
  if (typeof value === 'number' || isRawNumber(value)) return value
  const written = typeof value === 'string' ? value.trim() : ''
  const text = hasDecimalComma === true ? replaceDecimalComma(written) : written
  if (!decimal.test(text)) return undefined
  // Only integers keep their literal: a price of `12.50` is the number 12.5.
  if (integer.test(text)) return parseNumberOrLiteral(text)
  const number = Number(text)
  return Number.isFinite(number) ? number : undefined
}

/**
 * Converts a decimal comma to a decimal point. @returns an empty text for a number with a decimal point, which is invalid
 * here.
 */
function replaceDecimalComma(text: string): string {
  const [whole = '', ...fraction] = text.split(',')
  const digits = thousands.test(whole) ? whole.replaceAll(/[.'\s]/g, '') : whole
  return digits.includes('.') ? '' : [digits, ...fraction].join('.')
}

const thousands = /^[+-]?\d{1,3}(?:([.'\s])\d{3}(?:\1\d{3})*)$/
