// Converts the values that hyparquet has read to JSON. hyparquet's own conversions round decimals to doubles and times to
// milliseconds, so it gets a schema without those types, which are applied here instead. Source: docs/wire/import.md §1.9,
// LogicalTypes.md of apache/parquet-format.

import type { SchemaElement, SchemaTree } from 'hyparquet'
import { type JsonObject, type JsonValue, setOwnValue } from '#core/json.ts'
import { parseJsonText } from '../records/record-fields.ts'
import {
  timeDigits,
  toBytesValue,
  toDateValue,
  toDecimalValue,
  toDoubleValue,
  toFloatValue,
  toIntegerValue,
  toTimeOfDayValue,
  toTimestampValue,
  toUuidValue,
} from './typed-records.ts'

/** Types that this file converts itself, and removes from the schema for hyparquet. */
const ownTypes = new Set('DECIMAL DATE TIME TIMESTAMP JSON BSON UUID INTERVAL GEOMETRY GEOGRAPHY'.split(' '))
const ownConvertedTypes = /^(?:DECIMAL|DATE|TIME_|TIMESTAMP_|JSON|BSON|INTERVAL)/

/** The schema for hyparquet: without the types converted here, and with `converted_type` added to lists and maps. */
export function toHyparquetSchema(schema: readonly SchemaElement[]): SchemaElement[] {
  return schema.map(element => {
    const { converted_type, logical_type, ...others } = element
    if (element.num_children) {
      const group = logical_type?.type
      return group === 'LIST' || group === 'MAP' ? { ...element, converted_type: group } : element
    }
    const isOwn = ownTypes.has(logical_type?.type ?? '') || ownConvertedTypes.test(converted_type ?? '')
    return isOwn ? others : element
  })
}

type Convert = (value: never) => JsonValue

/** Creates the function that converts a row to JSON; call this once per file. */
export function createRowConverter({ children }: SchemaTree): (row: Record<string, unknown>) => JsonObject {
  const fields = children.map(child => [child.element.name, createConverter(child)] as const)
  return row => {
    const object: JsonObject = {}
    for (const [name, convert] of fields) setOwnValue(object, name, convert(row[name] as never))
    return object
  }
}

function createConverter(node: SchemaTree): Convert {
  const convert = allowNull(createPresentConverter(node))
  if (node.element.repetition_type !== 'REPEATED') return convert
  return (values: unknown) => (Array.isArray(values) ? values.map(convert) : convert(values))
}

function allowNull(convert: Convert): (value: unknown) => JsonValue {
  return value => (value === undefined || value === null ? null : convert(value as never))
}

function createPresentConverter(node: SchemaTree): Convert {
  const { element, children } = node
  const kind = element.logical_type?.type ?? element.converted_type
  const [inner] = children
  if (inner === undefined) return createLeafConverter(element)
  if (kind === 'LIST') {
    const [only] = inner.children
    const convert = inner.children.length === 1 ? createConverter(only!) : allowNull(createPresentConverter(inner))
    return (values: never[]) => values.map(each => convert(each))
  }
  if ((kind === 'MAP' || kind === 'MAP_KEY_VALUE') && inner.children.length === 2) {
    const convert = createConverter(inner.children[1]!)
    return (map: Record<string, never>) =>
      Object.fromEntries(Object.entries(map).map(([key, value]) => [key, convert(value)]))
  }
  if (kind === 'VARIANT') return toJsonValue
  return createRowConverter(node)
}

function createLeafConverter(element: SchemaElement): Convert {
  const { logical_type: logical, converted_type: converted, type } = element
  const kind = logical?.type ?? converted?.replace(/_(?:MILLIS|MICROS)$/, '')
  const unit = logical !== undefined && 'unit' in logical ? logical.unit : converted?.split('_')[1]
  const digits = timeDigits[unit ?? ''] ?? 3
  switch (kind) {
    case 'TIMESTAMP': {
      // Without the newer logical type, the file does not say whether times are instants; writers then mean instants.
      const isUtc = logical === undefined || !('isAdjustedToUTC' in logical) || logical.isAdjustedToUTC
      return (count: bigint) => toTimestampValue(BigInt(count), digits, isUtc)
    }
    case 'TIME':
      return (count: bigint | number) => toTimeOfDayValue(BigInt(count), digits)
    case 'DATE':
      return (days: number) => toDateValue(days)
    case 'DECIMAL': {
      const scale = element.scale ?? (logical !== undefined && 'scale' in logical ? logical.scale : 0)
      return (value: number | bigint | Uint8Array) =>
        toDecimalValue(value instanceof Uint8Array ? value : BigInt(value), scale)
    }
    case 'UUID':
      return (bytes: Uint8Array) => toUuidValue(bytes)
    case 'JSON':
      return (bytes: Uint8Array) => parseJsonOrText(toBytesValue(bytes))
  }
  // Gets nanoseconds, from the `timestampFromNanoseconds` parser that is passed to hyparquet.
  if (type === 'INT96') return (nanoseconds: bigint) => toTimestampValue(nanoseconds, 9, true)
  return type === 'FLOAT' ? (value: number) => toFloatValue(value) : toJsonValue
}

function toJsonValue(value: unknown): JsonValue {
  if (typeof value === 'bigint') return toIntegerValue(value)
  if (typeof value === 'number') return toDoubleValue(value)
  if (value instanceof Uint8Array) return toBytesValue(value)
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return value.map(toJsonValue)
  if (typeof value !== 'object' || value === null) return (value ?? null) as JsonValue
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, toJsonValue(member)]))
}

function parseJsonOrText(text: string): JsonValue {
  const value = parseJsonText(text)
  return value === undefined ? text : value
}
