// The SQLite files of an import: opening and transactions, and what their errors mean.

import Database from 'better-sqlite3'

/** @typeParam S prepared statements. */
export class SqliteFile<S = void> implements Disposable {
  readonly sql: Database.Database
  protected readonly statements: S

  /** @param setUp SQL that runs each time the file is opened. */
  constructor(file: string | Buffer, setUp: string, prepare: (sql: Database.Database) => S) {
    this.sql = new Database(file)
    try {
      this.sql.exec(setUp)
      this.statements = prepare(this.sql)
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** Starts a transaction that `commit` ends. What follows the last commit is lost when the file is closed. */
  begin(): void {
    this.sql.exec('BEGIN')
  }

  commit(): void {
    this.sql.exec('COMMIT')
  }

  close(): void {
    this.sql.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }
}

/** Thrown when a file's content is not what an import writes. */
export class ContentDamage extends Error {
  readonly code = 'SQLITE_CORRUPT'
}

/** SQLITE_ERROR counts as damage, since statements fail with it if the file does not have the expected tables. */
export function isSqliteDamage(error: unknown): boolean {
  return hasCode(error, /^SQLITE_(NOTADB|CORRUPT|ERROR)/)
}

/** SQLITE_IOERR_SHMSIZE means that there is no space for the `-shm` file next to the WAL. */
export function isSqliteDiskFull(error: unknown): boolean {
  return hasCode(error, /^SQLITE_(FULL|IOERR_SHMSIZE)/)
}

export function isSqliteNotWritable(error: unknown): boolean {
  return hasCode(error, /^SQLITE_(READONLY|CANTOPEN)/)
}

function hasCode(error: unknown, codes: RegExp): boolean {
  return error instanceof Error && codes.test(String((error as { readonly code?: unknown }).code))
}
