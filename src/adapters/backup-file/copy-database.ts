// A copy of a SQLite database that others write to meanwhile: all of it as of one moment.

import Database from 'better-sqlite3'

/** More pages than any database has: with all in one step, no writer makes the copy begin anew. */
const allPages = 0x7fffffff

/** A database that stays readable as it is, also when its file is removed or replaced. */
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

/** Holds the event loop while it copies. @throws SqliteError */
export async function copyDatabase(database: HeldDatabase, path: string): Promise<void> {
  await database.backup(path, { progress: () => allPages })
}
