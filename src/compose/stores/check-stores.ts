// Checks versions and schemas of the stores, for `doctor` and `version`; opens none of them for use.

import Database from 'better-sqlite3'
import { parseEndpointUrl } from '#adapters/clickhouse/connection/clickhouse-clients.ts'
import { findTablesProblem } from '#adapters/clickhouse/migrate.ts'
import { findSchemaProblem } from '#adapters/sql/known-migrations.ts'
import type { Config } from '#config.ts'

export { findEngineLibraryPath } from '#adapters/clickhouse-embedded/engine-library.ts'
export { parseEndpointUrl }

/** Calls `checkPostgres`, which is loaded only when there is a server to ask. */
export async function checkPostgresUrl(url: string) {
  const { checkPostgres } = await import('#adapters/postgres/check-postgres.ts')
  return checkPostgres(url)
}

/**
 * For a database in which `checkPostgresUrl` found state.
 * @returns one line for the operator if another version wrote the state, so that a start would refuse it.
 */
export async function findPostgresProblem(url: string): Promise<string | null> {
  const { findPostgresSchemaVersion } = await import('#adapters/postgres/check-postgres.ts')
  return findSchemaProblem(await findPostgresSchemaVersion(url))
}

/** Like `findPostgresProblem`, for the tables of CLICKHOUSE_URL; null also while its server does not answer. */
export async function findEventStoreProblem({ clickhouseUrl, queryTimeoutSeconds }: Config): Promise<string | null> {
  return clickhouseUrl === null ? null : findTablesProblem(parseEndpointUrl(clickhouseUrl), queryTimeoutSeconds)
}

export function readSqliteVersion(): string {
  const database = new Database(':memory:')
  try {
    return database.prepare<[], string>('SELECT sqlite_version()').pluck().get()!
  } finally {
    database.close()
  }
}
