// The record filters of a mapping. Source: docs/wire/import.md §1.9 (`filters`).

import { isRawNumber, type JsonObject, type JsonValue } from '#core/json.ts'
import { type Static, Type } from '#importer/records/file-schema.ts'
import { ImportConfigError } from '#importer/records/import-source.ts'
import { isEmptyValue } from '#importer/records/record-fields.ts'
import { findValueAtPath } from './field-path.ts'

type Operator = (value: JsonValue | undefined, others: readonly JsonValue[]) => boolean

const exists: Operator = value => !isEmptyValue(value)
const equalsAny: Operator = (value, others) => others.some(each => isSame(value, each))
const isEmpty: Operator = isEmptyValue
const equalsNone: Operator = (value, others) => !equalsAny(value, others)

/** Each operator also has the names used by flag conditions and other tools. */
const operators = {
  eq: equalsAny,
  equals: equalsAny,
  exact: equalsAny,
  ne: equalsNone,
  not_equals: equalsNone,
  is_not: equalsNone,
  in: equalsAny,
  not_in: equalsNone,
  exists,
  is_set: exists,
  not_exists: isEmpty,
  is_not_set: isEmpty,
  gt: createOrderOperator(order => order > 0),
  gte: createOrderOperator(order => order >= 0),
  lt: createOrderOperator(order => order < 0),
  lte: createOrderOperator(order => order <= 0),
}

export const scalar = Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()])
const oneOrMore = Type.Union([scalar, Type.Array(scalar)])
export const filterSchema = Type.Object(
  {
    field: Type.String({ minLength: 1 }),
    op: Type.Enum(Object.keys(operators) as (keyof typeof operators)[]),
    value: Type.Optional(oneOrMore),
  },
  { additionalProperties: false },
)
/** A list of filters, or an object that maps each field to the wanted value or values. */
export const filtersSchema = Type.Union([Type.Array(filterSchema), Type.Record(oneOrMore)])

/**
 * @returns a function that tests whether a record matches all filters. @throws ImportConfigError for a filter that lacks
 * its value.
 */
export function createRecordFilter(filters: Static<typeof filtersSchema> = []): (record: JsonObject) => boolean {
  const conditions = Array.isArray(filters)
    ? filters.map(({ field, op, value }) => {
        const meets = operators[op]
        if (value === undefined && meets !== exists && meets !== isEmpty)
          throw new ImportConfigError(`the filter of ${field} in the mapping needs a value`)
        return { field, meets, others: [value ?? null].flat() }
      })
    : Object.entries(filters).map(([field, value]) => ({ field, meets: equalsAny, others: [value].flat() }))
  return record => conditions.every(({ field, meets, others }) => meets(findValueAtPath(record, field), others))
}

function createOrderOperator(hasOrder: (order: number) => boolean): Operator {
  return (value, others) =>
    value !== undefined && value !== null && others.every(each => hasOrder(compareValues(value, each)))
}

/** All cells of CSV are text, so a number equals a text with its digits, and 1.0 is 1. An absent field equals null. */
function isSame(a: JsonValue | undefined, b: JsonValue): boolean {
  const [textA, textB] = [formatScalar(a ?? null), formatScalar(b)]
  // Two texts of digits are compared as text: 007 is not 7.
  const areNumbers = isNumber(a) || isNumber(b)
  return textA === textB || (areNumbers && isNumeral(textA) && isNumeral(textB) && compareNumerals(textA, textB) === 0)
}

function isNumber(value: JsonValue | undefined): boolean {
  return typeof value === 'number' || isRawNumber(value)
}

/** @returns a number below 0, 0, or a number above 0. */
function compareValues(a: JsonValue, b: JsonValue): number {
  const [textA, textB] = [formatScalar(a), formatScalar(b)]
  if (isNumeral(textA) && isNumeral(textB)) return compareNumerals(textA, textB)
  return textA < textB ? -1 : textA > textB ? 1 : 0
}

function isNumeral(text: string): boolean {
  return text.trim() !== '' && !Number.isNaN(Number(text))
}

/** Compares integers exactly. */
function compareNumerals(a: string, b: string): number {
  const [integerA, integerB] = [parseInteger(a), parseInteger(b)]
  if (integerA === null || integerB === null) return Number(a) - Number(b)
  return integerA < integerB ? -1 : integerA > integerB ? 1 : 0
}

function parseInteger(text: string): bigint | null {
  const digits = /^\s*(-?\d{1,400})(?:\.0{0,400})?\s*$/.exec(text)?.[1]
  return digits === undefined ? null : BigInt(digits)
}

function formatScalar(value: JsonValue): string {
  return isRawNumber(value) ? value.rawJSON : typeof value === 'string' ? value : JSON.stringify(value)
}
