// Which records a mapping lets through. Source: docs/wire/import.md §1.9 (`filters`).

import { isRawNumber, type JsonObject, type JsonValue } from '#core/json.ts'
import { ImportConfigError } from '#importer/records/import-source.ts'
import { isEmptyValue } from '#importer/records/record-fields.ts'
import { valueAt } from './field-path.ts'
import type { MappingFilters } from './mapping-schema.ts'

interface Condition {
  readonly field: string
  readonly op: string
  readonly values: readonly JsonValue[]
}

/** @returns whether a record matches all filters. @throws ImportConfigError for a filter without the value it needs. */
export function recordFilter(filters: MappingFilters | undefined): (record: JsonObject) => boolean {
  const conditions = conditionsOf(filters ?? [])
  return record => conditions.every(condition => matches(valueAt(record, condition.field), condition))
}

function conditionsOf(filters: MappingFilters): readonly Condition[] {
  if (!Array.isArray(filters))
    return Object.entries(filters).map(([field, value]) => ({ field, op: 'in', values: [value].flat() }))
  return filters.map(({ field, op, value }) => {
    if (value === undefined && !/exists|set$/.test(op))
      throw new ImportConfigError(`the filter of ${field} in the mapping needs a value`)
    return { field, op, values: [value ?? null].flat() }
  })
}

function matches(value: JsonValue | undefined, { op, values }: Condition): boolean {
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
      return value !== undefined && value !== null && values.every(each => isOrdered(compare(value, each), op))
  }
}

/** All cells of CSV are texts, so a number equals its digits; an absent field is null. */
function isSame(a: JsonValue | undefined, b: JsonValue): boolean {
  return scalarText(a ?? null) === scalarText(b)
}

/** @returns below, at or above 0; NaN where the two have no order. */
function compare(a: JsonValue, b: JsonValue): number {
  const [textA, textB] = [scalarText(a), scalarText(b)]
  const [numberA, numberB] = [Number(textA), Number(textB)]
  if (textA.trim() !== '' && textB.trim() !== '' && !Number.isNaN(numberA) && !Number.isNaN(numberB))
    return numberA - numberB
  return textA < textB ? -1 : textA > textB ? 1 : 0
}

function isOrdered(order: number, op: string): boolean {
  return op === 'gt' ? order > 0 : op === 'gte' ? order >= 0 : op === 'lt' ? order < 0 : order <= 0
}

function scalarText(value: JsonValue): string {
  return isRawNumber(value) ? value.rawJSON : typeof value === 'string' ? value : JSON.stringify(value)
}
