// The management store on PostgreSQL, and the migration of its state to the newest schema. It runs on a front's main
// thread, since sessions on a server need no thread.

import { setTimeout as sleep } from 'node:timers/promises'
import { loadDefinitionChanges } from '#adapters/sql/definitions/definition-queries.ts'
import { logStateMigration, migrations } from '#adapters/sql/known-migrations.ts'
import { migrateState } from '#adapters/sql/migrate-state.ts'
import { postgresDialect } from '#adapters/sql/migrations/migration.ts'
import { createSqlManagementStore } from '#adapters/sql/sql-management-store.ts'
import { type Methods, wrapMethods } from '#adapters/sql/tables/wrap-methods.ts'
import { computeBackOffMs } from '#core/back-off.ts'
import type { DefinitionStore } from '#ports/state/definition-store.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { createPostgresKysely } from './kysely-on-postgres.ts'
import { openPool } from './open-postgres.ts'
import { isConcurrencyRollback, toPostgresPortError } from './postgres-errors.ts'

const sessionsMax = 4
const connectMsMax = 5_000
/** A starting process may wait longer for a connection than a request, since no client waits for it. */
const startConnectMsMax = 15_000
const statementMsMax = 10_000
/**
 * How long a write waits for other writes. Their transactions are short, so a longer wait means that something is wrong.
 */
const lockMsMax = 2_000
/** How long a migration waits for its lock, which another process may hold during a long migration. */
const migrationLockMsMax = 120_000
const retryCount = 3
const retryWaits = { firstMs: 60, longestMs: 240 }

/**
 * Brings the state of a database up to the newest schema. When several processes call it, one migrates and the others
 * wait.
 * @param known other migrations in tests.
 * @throws UnfitSchemaError, or PortError when the database cannot be reached or written.
 */
export async function migratePostgres(options: { url: string; logger: Logger }, known = migrations): Promise<void> {
  const pool = openPool({
    ...options,
    name: 'migrate',
    sizeMax: 1,
    statementMsMax: 0,
    lockMsMax: migrationLockMsMax,
    connectMsMax: startConnectMsMax,
  })
  const beganAtMs = performance.now()
  try {
    const versions = await migrateState(createPostgresKysely(pool, 'one_by_one'), {
      dialect: postgresDialect,
      migrations: known,
    })
    const durationMs = Math.round(performance.now() - beganAtMs)
    logStateMigration({ ...versions, durationMs, copy: null }, options.logger)
  } catch (cause) {
    throw toPostgresPortError(cause)
  } finally {
    await pool.end()
  }
}

/** The state has to be migrated. Opens nothing before the first call. */
export function openPostgresManagementStore(options: {
  url: string
  logger: Logger
}): ManagementStore & Pick<DefinitionStore, 'loadChanges'> {
  const pool = openPool({ ...options, name: 'state', sizeMax: sessionsMax, statementMsMax, lockMsMax, connectMsMax })
  const snapshots = createPostgresKysely(pool, 'snapshot')
  const { close: _, ...store } = createSqlManagementStore(createPostgresKysely(pool, 'one_by_one'), toPostgresPortError)
  return {
    ...retryMethods(store),
    loadChanges: async (revision, held) => {
      try {
        return await loadDefinitionChanges(snapshots, revision, held)
      } catch (cause) {
        throw toPostgresPortError(cause)
      }
    },
    close: () => pool.end(),
  }
}

/** Every method is one transaction, so if it was rolled back because of another transaction, it can simply run again. */
function retryMethods<T extends Methods<T>>(methods: T): T {
  return wrapMethods(methods, method => async (...args) => {
    for (let attempt = 0; ; attempt++) {
      try {
        return await method(...args)
      } catch (cause) {
        if (!isConcurrencyRollback(cause) || attempt >= retryCount) throw cause
        await sleep(computeBackOffMs(retryWaits, attempt, Math.random()))
      }
    }
  })
}
