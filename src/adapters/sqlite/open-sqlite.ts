// Opens the state file with the settings that every connection needs, since SQLite keeps them per connection, and tells
// which of SQLite's failures is which kind of PortError. Who may wait for a lock, and how long, is the caller's word.

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import {
  CompiledQuery,
  type DatabaseConnection,
  Kysely,
  SqliteAdapter,
  SqliteDriver,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { migrateState } from '#adapters/sql/migrate-state.ts'
import { sqliteWords } from '#adapters/sql/migration.ts'
import type { StateSchema } from '#adapters/sql/schema.ts'
import { PortError, type PortErrorCode } from '#ports/port-error.ts'

export type SqliteDatabase = Database.Database

export function stateFileOf(dataFolder: string): string {
  return join(dataFolder, 'state.db')
}

/** How long a writer of the state waits for the other ones: their transactions are short, so longer means trouble. */
export const writerWaitMs = 2_000

/**
 * A connection that writes. Durable: a commit has been synced before it returns.
 * @param busyTimeoutMs how long to wait for another writer; 0 = not at all.
 * @throws PortError when the file cannot be opened.
 */
export function openStateForWriting(dataFolder: string, busyTimeoutMs: number): SqliteDatabase {
  return translating(() => {
    mkdirSync(dataFolder, { recursive: true })
    const database = new Database(stateFileOf(dataFolder), { timeout: busyTimeoutMs })
    database.pragma('journal_mode = WAL')
    database.pragma('synchronous = FULL')
    // macOS answers fsync before the disk has it.
    if (process.platform === 'darwin') database.pragma('fullfsync = 1')
    database.pragma('foreign_keys = ON')
    return database
  })
}

/** A connection that only reads an existing state; it never waits and never holds up a writer. */
export function openStateForReading(dataFolder: string): SqliteDatabase {
  return translating(() => {
    const database = new Database(stateFileOf(dataFolder), { readonly: true, fileMustExist: true, timeout: 0 })
    database.pragma('cache_size = -8000')
    return database
  })
}

/**
 * Brings the state of a data folder up to the newest schema, creating it when there is none.
 * @throws SchemaTooNewError, or PortError when the file cannot be opened or written.
 */
export async function migrateSqlite(dataFolder: string): Promise<void> {
  const db = kyselyOn(openStateForWriting(dataFolder, writerWaitMs), 'immediate')
  try {
    await migrateState(db, { words: sqliteWords })
  } catch (cause) {
    throw statePortError(cause)
  } finally {
    await db.destroy()
  }
}

/**
 * Kysely on an open connection. Transactions that write begin `immediate`, so that they wait for the lock at their
 * start instead of failing half way; SQLite does not wait when a reader turns into a writer.
 */
export function kyselyOn(database: SqliteDatabase, begin: 'immediate' | 'deferred'): Kysely<StateSchema> {
  const cached = withStatementCache(database)
  return new Kysely<StateSchema>({
    dialect: {
      createDriver: () => new StateDriver(cached, begin, database),
      createQueryCompiler: () => new SqliteQueryCompiler(),
      createAdapter: () => new SqliteAdapter(),
      createIntrospector: db => new SqliteIntrospector(db),
    },
  })
}

class StateDriver extends SqliteDriver {
  readonly #begin: string
  readonly #database: SqliteDatabase
  constructor(cached: ReturnType<typeof withStatementCache>, begin: string, database: SqliteDatabase) {
    super({ database: cached })
    this.#begin = begin
    this.#database = database
  }
  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw(`begin ${this.#begin}`))
  }
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    // SQLite rolls back by itself on some failures (a full disk); a second rollback would hide the first error.
    if (this.#database.inTransaction) await super.rollbackTransaction(connection)
  }
}

const cachedStatementsMax = 300

/** Kysely prepares each query anew; the texts of ours are few. */
function withStatementCache(database: SqliteDatabase) {
  const statements = new Map<string, Database.Statement<unknown[]>>()
  return {
    prepare(text: string) {
      let statement = statements.get(text)
      if (statement === undefined) {
        if (statements.size >= cachedStatementsMax) statements.clear()
        statement = database.prepare(text)
        statements.set(text, statement)
      }
      return statement as Database.Statement<unknown[]> & { all(parameters: readonly unknown[]): unknown[] }
    },
    close: () => {
      database.close()
    },
  }
}

/** A PortError for a failure of SQLite's or of the files; anything else, our own mistakes included, comes back as it is. */
export function statePortError(cause: unknown): unknown {
  if (cause instanceof Database.SqliteError) return new PortError('state', portErrorCodeOf(cause.code), cause)
  const isFileError = cause instanceof Error && 'syscall' in cause
  const isGone =
    cause instanceof TypeError && /database connection is not open|directory does not exist/.test(cause.message)
  if (isFileError || isGone) return new PortError('state', 'unavailable', cause)
  return cause
}

function portErrorCodeOf(sqliteCode: string): PortErrorCode {
  if (sqliteCode.startsWith('SQLITE_BUSY') || sqliteCode === 'SQLITE_LOCKED') return 'timeout'
  if (sqliteCode.startsWith('SQLITE_CONSTRAINT')) return 'conflict'
  if (sqliteCode === 'SQLITE_FULL') return 'full'
  if (sqliteCode.startsWith('SQLITE_CORRUPT') || sqliteCode === 'SQLITE_NOTADB') return 'corrupt'
  return 'unavailable'
}

/** Runs `work`; failures of SQLite's come out as PortErrors. */
export function translating<T>(work: () => T): T {
  try {
    return work()
  } catch (cause) {
    throw statePortError(cause)
  }
}
