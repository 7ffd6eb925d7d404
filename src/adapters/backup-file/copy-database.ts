// Copies a SQLite database while others write to it; the copy is of one moment.

import Database from 'better-sqlite3'

/** More pages than any database has: copied in one step, so that no write makes the copy start again. */
const allPages = 0x7fffffff

/** A database that stays readable even when its file is removed or replaced. */
export type HeldDatabase = Database.Database

/** Not read only: such a connection leaves its side files behind. @throws SqliteError */
export function holdDatabase(path: string): HeldDatabase {
  const database = new Database(path, { fileMustExist: true, timeout: 10_000 })
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
