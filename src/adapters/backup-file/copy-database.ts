// Copies a SQLite database while other processes write to it; the copy shows one moment.

import { statSync } from 'node:fs'
import Database from 'better-sqlite3'

/**
 * A page count that no database reaches: the copy then takes a single step, so no concurrent write makes it start again.
 */
const allPages = 0x7fffffff

/** An open database, which stays readable even when its file is removed or replaced. */
export type OpenDatabase = Database.Database

/**
 * Opens the database read-only if it has a side file with content: SQLite may not see all of that content, and must not
 * change the file. Otherwise opens it read-write, since a read-only connection would leave side files of its own.
 * @throws SqliteError
 */
export function openDatabaseForCopying(path: string): OpenDatabase {
  const readonly = (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
  const database = new Database(path, { readonly, fileMustExist: true, timeout: 10_000 })
  try {
    database.pragma('query_only = ON')
    // SQLite opens the files only at the first query.
    database.pragma('schema_version')
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** Blocks the event loop while it copies. @throws SqliteError */
export async function copyDatabase(database: OpenDatabase, path: string): Promise<void> {
  await database.backup(path, { progress: () => allPages })
}
