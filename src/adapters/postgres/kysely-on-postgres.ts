// The queries of `adapters/sql` on PostgreSQL: Kysely on a pool. Transactions that write run one after another, as on
// SQLite, so that the queries mean the same on both engines; only the private API has such transactions, and they are rare.

import {
  CompiledQuery,
  Kysely,
  PostgresAdapter,
  PostgresDriver,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type TransactionSettings,
} from 'kysely'
import type { StateSchema } from '#adapters/sql/tables/schema.ts'
import type { Pool } from './open-postgres.ts'

/**
 * Transactions that write definitions take this lock first. The number must be unique among programs on the database.
 */
export const definitionsLock = 0x70656e6e

/**
 * @param begin `one_by_one`: a transaction waits until no other transaction of this kind runs, in any process. `snapshot`:
 * a transaction only reads, and sees the data of one moment.
 */
export function createPostgresKysely(pool: Pool, begin: 'one_by_one' | 'snapshot'): Kysely<StateSchema> {
  return new Kysely<StateSchema>({
    dialect: {
      createDriver: () => new StateDriver(pool, begin),
      createQueryCompiler: () => new PostgresQueryCompiler(),
      createAdapter: () => new PostgresAdapter(),
      createIntrospector: db => new PostgresIntrospector(db),
    },
  })
}

type Connection = Parameters<PostgresDriver['rollbackTransaction']>[0]

class StateDriver extends PostgresDriver {
  readonly #begin: 'one_by_one' | 'snapshot'
  constructor(pool: Pool, begin: 'one_by_one' | 'snapshot') {
    super({ pool: { connect: () => pool.connect() as never, end: () => pool.end(), options: {} } })
    this.#begin = begin
  }

  override async beginTransaction(connection: Connection, settings: TransactionSettings): Promise<void> {
    if (this.#begin === 'snapshot') {
      await connection.executeQuery(CompiledQuery.raw('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'))
      return
    }
    await super.beginTransaction(connection, settings)
    try {
      await connection.executeQuery(CompiledQuery.raw(`SELECT pg_advisory_xact_lock(${definitionsLock})`))
    } catch (cause) {
      await this.rollbackTransaction(connection).catch(() => undefined) // the session is then closed: rolled back too
      throw cause
    }
  }
}
