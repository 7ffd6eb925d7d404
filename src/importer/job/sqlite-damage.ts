// Distinguishes a damaged SQLite file from a disk that fails or is full.

import Database from 'better-sqlite3'

/** SQLITE_ERROR counts as damage because statements fail with it on a file with other tables. */
export function isSqliteDamage(error: unknown): boolean {
  return error instanceof Database.SqliteError && /^SQLITE_(NOTADB|CORRUPT|ERROR)/.test(error.code)
}
