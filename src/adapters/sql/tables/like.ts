// The search for a part of a text, for every list of the private API.

import { type RawBuilder, sql } from 'kysely'

/**
 * Whether `column` contains `text` literally, ignoring case. The engine folds the case of both sides, so letters that
 * it does not fold, which in SQLite are those beyond ASCII, still match themselves.
 */
export function containsText(column: string, text: string): RawBuilder<boolean> {
  const pattern = `%${text.replace(/[\\%_]/g, '\\$&')}%`
  return sql<boolean>`lower(${sql.ref(column)}) LIKE lower(${pattern}) ESCAPE '\\'`
}
