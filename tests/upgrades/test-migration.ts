// Runs the tests of a migration of the state on SQLite and on PostgreSQL.

import { describe, type TestContext } from 'node:test'
import { toNumberedParameters } from '#adapters/postgres/chunk-statements.ts'
import { migratePostgres, openPostgresManagementStore } from '#adapters/postgres/postgres-management-store.ts'
import { migrations } from '#adapters/sql/known-migrations.ts'
import { migrateSqlite } from '#adapters/sqlite/kysely-on-sqlite.ts'
import { openStateForWriting } from '#adapters/sqlite/open-sqlite.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { noPostgres, startPostgres } from '../support/postgres.ts'
import { logger } from '../support/postgres-state.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { tempDir } from '../support/temp-dir.ts'

const newest = migrations.at(-1)!.version
const known = (version: number) => migrations.filter(migration => migration.version <= version)

interface State {
  /** Applies the migrations up to this one. */
  migrate(version: number): Promise<void>
  query(text: string, ...values: readonly unknown[]): Promise<readonly Record<string, unknown>[]>
  openStore(): ManagementStore
}

/** A state of before the migration, with these rows, that was migrated. */
export type Migrated = (
  t: TestContext,
  rows: readonly (readonly [table: string, row: object])[],
) => Promise<{ readonly store: ManagementStore; readonly query: State['query'] }>

/** @param from the migration before the tested one. */
export function testMigration(what: string, from: number, define: (migrated: Migrated) => void): void {
  const migratedBy =
    (openState: (t: TestContext) => Promise<State>): Migrated =>
    async (t, rows) => {
      const state = await openState(t)
      await state.migrate(from)
      for (const [table, row] of rows) {
        const columns = Object.keys(row)
        const text = `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
        await state.query(text, ...Object.values(row))
      }
      await state.migrate(newest)
      const store = state.openStore()
      t.after(() => store.close())
      return { store, query: state.query }
    }

  describe(`${what} on SQLite`, () => define(migratedBy(sqliteState)))

  describe(`${what} on PostgreSQL`, { skip: noPostgres() }, () => {
    const postgres = startedForTests(startPostgres)
    define(migratedBy(async () => {
      const url = await postgres.createDatabase()
      return {
        migrate: version => migratePostgres({ url, logger }, known(version)),
        query: (text, ...values) => postgres.query(toNumberedParameters(text), [...values], url),
        openStore: () => openPostgresManagementStore({ url, logger }),
      }
    }))
  })
}

async function sqliteState(t: TestContext): Promise<State> {
  const dataFolder = tempDir(t)
  return {
    migrate: async version => void (await migrateSqlite(dataFolder, known(version))),
    query: async (text, ...values) => {
      const database = openStateForWriting(dataFolder, 1_000)
      try {
        const statement = database.prepare<unknown[], Record<string, unknown>>(text)
        if (statement.reader) return statement.all(...values)
        statement.run(...values)
        return []
      } finally {
        database.close()
      }
    },
    openStore: () => openSqliteManagementStore({ dataFolder, access: 'write' }),
  }
}
