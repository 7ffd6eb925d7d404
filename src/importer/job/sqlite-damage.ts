// Tells a damaged file of SQLite from a disk that fails or is full.

import Database from 'better-sqlite3'

/** A file of SQLite that is damaged, or one with other tables, gives statements that cannot be run. */
export function isSqliteDamage(error: unknown): boolean {
  return error instanceof Database.SqliteError && /^SQLITE_(NOTADB|CORRUPT|ERROR)/.test(error.code)
}
