// The queries of `adapters/sql` on the state file: Kysely on a connection of `open-sqlite.ts`, and the migrations. The
// state threads, the worker and tools load this file; a front's main thread does not.

import type Database from 'better-sqlite3'
import {
  CompiledQuery,
  type DatabaseConnection,
  Kysely,
  type SelectModifierNode,
  SqliteAdapter,
  SqliteDriver,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { migrations, type StateMigration } from '#adapters/sql/known-migrations.ts'
import { migrateState } from '#adapters/sql/migrate-state.ts'
import { sqliteDialect } from '#adapters/sql/migrations/migration.ts'
import type { StateSchema } from '#adapters/sql/tables/schema.ts'
import { copyBeforeMigration } from './copy-before-migration.ts'
import { openStateForWriting, type SqliteDatabase, toStatePortError, writerWaitMs } from './open-sqlite.ts'

/**
 * Brings the state of a data folder up to the newest schema, creating it when there is none. It copies a state before
 * it changes it.
 * @param known other migrations in tests.
 * @throws UnfitSchemaError, or PortError when the file cannot be opened or written.
 */
export async function migrateSqlite(dataFolder: string, known = migrations): Promise<StateMigration> {
  try {
    const beganAtMs = performance.now()
    const copy = await copyBeforeMigration(dataFolder, known)
    const db = createSqliteKysely(openStateForWriting(dataFolder, writerWaitMs), 'immediate')
    let versions: Pick<StateMigration, 'from' | 'to'>
    try {
      versions = await migrateState(db, { dialect: sqliteDialect, migrations: known })
    } finally {
      await db.destroy()
    }
    copy?.complete()
    return { ...versions, durationMs: Math.round(performance.now() - beganAtMs), copy: copy?.name ?? null }
  } catch (cause) {
    throw toStatePortError(cause)
  }
}

/**
 * Kysely on an open connection. Transactions that write begin `immediate`, so that they wait for the lock at their start
 * instead of failing halfway; SQLite does not wait when a transaction that has read begins to write.
 */
export function createSqliteKysely(database: SqliteDatabase, begin: 'immediate' | 'deferred'): Kysely<StateSchema> {
  const cached = withStatementCache(database)
  return new Kysely<StateSchema>({
    dialect: {
      createDriver: () => new StateDriver(cached, begin, database),
      createQueryCompiler: () => new StateQueryCompiler(),
      createAdapter: () => new SqliteAdapter(),
      createIntrospector: db => new SqliteIntrospector(db),
    },
  })
}

class StateQueryCompiler extends SqliteQueryCompiler {
  /** Leaves out row locks (FOR UPDATE), which SQLite does not have: a transaction that writes locks the whole file. */
  protected override visitSelectModifier(node: SelectModifierNode): void {
    if (node.modifier !== 'ForUpdate') super.visitSelectModifier(node)
  }
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

/** Caches statements by their text: Kysely would prepare every query again, although we have few different texts. */
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
