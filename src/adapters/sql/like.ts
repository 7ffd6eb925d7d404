// Searching for a part of a text, as every list of the private API does.

import { type RawBuilder, sql } from 'kysely'

/**
 * Whether `column` holds `text` somewhere, taken literally, whatever the case. The engine folds both sides: what it does
 * not fold, as SQLite does with letters beyond ASCII, then still finds itself.
 */
export function containsText(column: string, text: string): RawBuilder<boolean> {
  const pattern = `%${text.replace(/[\\%_]/g, '\\$&')}%`
  return sql<boolean>`lower(${sql.ref(column)}) LIKE lower(${pattern}) ESCAPE '\\'`
}
