// Converts items of declared resources to rows and back.

import {
  buildInitialFields,
  type Field,
  type FieldKind,
  type ItemOf,
  type Resource,
  type ResourceFields,
  type RowOf,
} from '#core/resource.ts'
import { parseStoredAuthor, parseStoredJson, parseStoredJsonObject, toAuthorText, toSqlBoolean } from './rows.ts'

type Column = string | number | null
type Declared = Pick<Resource, 'fields'>

export function toResourceRow<R extends Declared>({ fields }: R, item: ItemOf<R>): RowOf<R> {
  return toRowColumns(fields, item) as RowOf<R>
}

/** The columns of the fields that `part` has. */
export function toPartialResourceRow<R extends Declared>({ fields }: R, part: Partial<ItemOf<R>>): Partial<RowOf<R>> {
  return toRowColumns(fields, part) as Partial<RowOf<R>>
}

function toRowColumns(fields: ResourceFields, item: Readonly<Record<string, unknown>>): Record<string, Column> {
  const row: Record<string, Column> = {}
  for (const [key, { column, kind }] of prepareFields(fields).listed)
    if (item[key] !== undefined) row[column] = toColumn(kind, item[key])
  return row
}

export function toResourceItem<R extends Declared>({ fields }: R, row: RowOf<R>): ItemOf<R> {
  const { listed, empty } = prepareFields(fields)
  // A copy of `empty` has all properties from the start, which is faster than adding them one by one.
  const item = { ...empty }
  for (const [key, field] of listed)
    item[key] = fromColumn(field, (row as Readonly<Record<string, Column>>)[field.column]!)
  return item as ItemOf<R>
}

interface Prepared {
  readonly listed: readonly (readonly [string, Field])[]
  readonly empty: Readonly<Record<string, unknown>>
}

/** Prepared once: a front reads thousands of definitions in a row. */
const preparedOf = new WeakMap<ResourceFields, Prepared>()

function prepareFields(fields: ResourceFields): Prepared {
  const known = preparedOf.get(fields)
  if (known !== undefined) return known
  const listed = Object.entries(fields)
  const prepared = { listed, empty: Object.fromEntries(listed.map(([key]) => [key, null])) }
  preparedOf.set(fields, prepared)
  return prepared
}

function toColumn(kind: FieldKind, value: unknown): Column {
  if (value === null) return null
  switch (kind) {
    case 'boolean':
      return toSqlBoolean(value as boolean)
    case 'object':
    case 'members':
    case 'group':
    case 'texts':
    case 'integers':
      return JSON.stringify(value)
    case 'author':
      return toAuthorText(value as Parameters<typeof toAuthorText>[0])
    default:
      return value as string | number
  }
}

/** A PostgreSQL driver may hand out BIGINT as text. */
function fromColumn({ kind, fields }: Field, column: Column): unknown {
  if (column === null) return null
  switch (kind) {
    case 'boolean':
      return column === 1
    case 'integer':
    case 'instant':
      return Number(column)
    case 'object':
    case 'members':
      return parseStoredJsonObject(column as string)
    case 'texts':
    case 'integers':
      return parseStoredJson(column as string)
    case 'group':
      // Fields that a later release added are missing from older rows.
      return { ...buildInitialFields({ fields }), ...parseStoredJsonObject(column as string) }
    case 'author':
      return parseStoredAuthor(column as string)
    default:
      return column
  }
}
