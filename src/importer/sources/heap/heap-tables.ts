// Finds the Heap table of a row: by the name of its file, or else by columns that only one table has.
// Source: docs/wire/import.md §1.4.

import type { JsonObject } from '#core/json.ts'
import type { SourceRecord } from '#importer/records/import-source.ts'

/** File names of the pieces of a table, which do not name the table. */
const piece = /^(?:part|file|data|chunk)?[-_]?\d/i

/** @returns the table's own name, without project and schema: `app.heap_main_production.pageviews` is `pageviews`. */
export function findHeapTable({ table, value }: SourceRecord): string | null {
  const name = table === null ? '' : table.slice(table.lastIndexOf('.') + 1)
  return name === '' || piece.test(name) ? findTableByColumns(value) : name
}

/** Rows of `pageviews` and of labelled events have the same columns, so only a file name can tell those apart. */
function findTableByColumns(row: JsonObject): string | null {
  if (Object.hasOwn(row, 'from_user_id') && Object.hasOwn(row, 'to_user_id')) return 'user_migrations'
  const isUser = Object.hasOwn(row, 'joindate') || Object.hasOwn(row, 'last_modified')
  return isUser && !Object.hasOwn(row, 'event_id') ? 'users' : null
}
