// Converts items of declared resources to rows and back.

import type { FieldKind, ItemOf, Resource, RowOf } from '#core/resources/resource.ts'
import { authorOf, authorText, flagBit, jsonObjectOf } from './rows.ts'

type Column = string | number | null

export function rowOf<R extends Resource>({ fields }: R, item: ItemOf<R>): RowOf<R> {
  const columns = Object.entries(fields).map(([key, { name, kind }]) => [
    name,
    toColumn(kind, item[key as keyof ItemOf<R>]),
  ])
  return Object.fromEntries(columns)
}

export function itemOf<R extends Resource>({ fields }: R, row: RowOf<R>): ItemOf<R> {
  const values = Object.entries(fields).map(([key, { name, kind }]) => [
    key,
    fromColumn(kind, (row as Readonly<Record<string, Column>>)[name]!),
  ])
  return Object.fromEntries(values)
}

function toColumn(kind: FieldKind, value: unknown): Column {
  if (value === null) return null
  switch (kind) {
    case 'boolean':
      return flagBit(value as boolean)
    case 'object':
    case 'members':
      return JSON.stringify(value)
    case 'author':
      return authorText(value as Parameters<typeof authorText>[0])
    default:
      return value as string | number
  }
}

/** A PostgreSQL driver may hand out BIGINT as text. */
function fromColumn(kind: FieldKind, column: Column): unknown {
  if (column === null) return null
  switch (kind) {
    case 'boolean':
      return column === 1
    case 'integer':
    case 'instant':
      return Number(column)
    case 'object':
    case 'members':
      return jsonObjectOf(column as string)
    case 'author':
      return authorOf(column as string)
    default:
      return column
  }
}
