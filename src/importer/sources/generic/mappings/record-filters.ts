// The record filters of a mapping. Source: docs/wire/import.md §1.9 (`filters`).

import { isRawNumber, type JsonObject, type JsonValue } from '#core/json.ts'
import { ImportConfigError } from '#importer/records/import-source.ts'
import { isEmptyValue } from '#importer/records/record-fields.ts'
import { findValue } from './field-path.ts'
import type { MappingFilters } from './mapping-schema.ts'

interface Condition {
  readonly field: string
  readonly op: string
  readonly values: readonly JsonValue[]
}

/** @returns a test whether a record matches all filters. @throws ImportConfigError for a filter that lacks its value. */
export function createRecordFilter(filters: MappingFilters | undefined): (record: JsonObject) => boolean {
  const conditions = readConditions(filters ?? [])
  return record => conditions.every(condition => meetsCondition(findValue(record, condition.field), condition))
}

function readConditions(filters: MappingFilters): readonly Condition[] {
  if (!Array.isArray(filters))
    return Object.entries(filters).map(([field, value]) => ({ field, op: 'in', values: [value].flat() }))
  return filters.map(({ field, op, value }) => {
    if (value === undefined && !/exists|set$/.test(op))
      throw new ImportConfigError(`the filter of ${field} in the mapping needs a value`)
    return { field, op, values: [value ?? null].flat() }
  })
}

function meetsCondition(value: JsonValue | undefined, { op, values }: Condition): boolean {
  switch (op) {
    case 'exists':
    case 'is_set':
      return !isEmptyValue(value)
    case 'not_exists':
    case 'is_not_set':
      return isEmptyValue(value)
    case 'eq':
    case 'equals':
    case 'exact':
    case 'in':
      return values.some(each => isSame(value, each))
    case 'ne':
    case 'not_equals':
    case 'is_not':
    case 'not_in':
      return !values.some(each => isSame(value, each))
    default:
      return value !== undefined && value !== null && values.every(each => hasOrder(compareValues(value, each), op))
  }
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

/** @returns below, at or above 0. */
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

function hasOrder(order: number, op: string): boolean {
  return op === 'gt' ? order > 0 : op === 'gte' ? order >= 0 : op === 'lt' ? order < 0 : order <= 0
}

function formatScalar(value: JsonValue): string {
  return isRawNumber(value) ? value.rawJSON : typeof value === 'string' ? value : JSON.stringify(value)
}
