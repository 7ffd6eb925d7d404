// Copies a SQLite database while others write to it; the copy is of one moment.

import { statSync } from 'node:fs'
import Database from 'better-sqlite3'

/** More pages than any database has: copied in one step, so that no write makes the copy start again. */
const allPages = 0x7fffffff

/** A database that stays readable even when its file is removed or replaced. */
export type HeldDatabase = Database.Database

/**
 * Read only where there is a side file with content, which stays as it is: SQLite may not see all of it. Otherwise not, since
 * such a connection leaves its side files behind.
 * @throws SqliteError
 */
export function openHeldDatabase(path: string): HeldDatabase {
  const readonly = (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
  const database = new Database(path, { readonly, fileMustExist: true, timeout: 10_000 })
  try {
    database.pragma('query_only = ON')
    // Opens the files, which SQLite does at the first query.
    database.pragma('schema_version')
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** Blocks the event loop while it copies. @throws SqliteError */
export async function copyDatabase(database: HeldDatabase, path: string): Promise<void> {
  await database.backup(path, { progress: () => allPages })
}
