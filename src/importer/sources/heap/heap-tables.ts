// Which of Heap's tables a row is from: what its file is called, else what only one table has.
// Source: docs/wire/import.md §1.4.

import type { JsonObject } from '#core/json.ts'
import type { SourceRecord } from '#importer/records/import-source.ts'

/** The names of the pieces that exports cut a table into: these are no names of tables. */
const piece = /^(?:part|file|data|chunk)?[-_]?\d/i

/** @returns the table's own name, without project and schema: `app.heap_main_production.pageviews` is `pageviews`. */
export function heapTable({ table, value }: SourceRecord): string | null {
  const name = table === null ? '' : table.slice(table.lastIndexOf('.') + 1)
  return name === '' || piece.test(name) ? tableByColumns(value) : name
}

/** Rows of `pageviews` and of labelled events look alike, so these have to be told by name. */
function tableByColumns(row: JsonObject): string | null {
  if (Object.hasOwn(row, 'from_user_id') && Object.hasOwn(row, 'to_user_id')) return 'user_migrations'
  const isUser = Object.hasOwn(row, 'joindate') || Object.hasOwn(row, 'last_modified')
  return isUser && !Object.hasOwn(row, 'event_id') ? 'users' : null
}
