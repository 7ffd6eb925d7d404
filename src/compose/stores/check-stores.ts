// Asks the stores what they are, for `doctor` and `version`; opens none of them for use.

import Database from 'better-sqlite3'

export { endpointOfUrl } from '#adapters/clickhouse/connection/clickhouse-clients.ts'
export { engineLibraryPath } from '#adapters/clickhouse-embedded/engine-library.ts'

/** Calls `checkPostgres`, which is loaded only when there is a server to ask. */
export async function checkPostgresAt(url: string) {
  const { checkPostgres } = await import('#adapters/postgres/check-postgres.ts')
  return checkPostgres(url)
}

export function sqliteVersion(): string {
  const database = new Database(':memory:')
  try {
    return database.prepare<[], string>('SELECT sqlite_version()').pluck().get()!
  } finally {
    database.close()
  }
}
