// Finds the version of the state's schema in a database, and creates the schema.

import pg from 'pg'
import { endIgnoringErrors } from './end-in-time.ts'
import { buildClientSettings } from './open-postgres.ts'
import { toPostgresPortError } from './postgres-errors.ts'

const answerMsMax = 10_000

/**
 * For a database in which `checkPostgres` found state.
 * @returns the number of the state's last migration; NaN when it does not say.
 * @throws PortError when the database cannot be reached or read.
 */
export async function findPostgresSchema(url: string): Promise<number> {
  return withClient(url, async client => {
    const { rows } = await client.query<{ version: string | null }>(
      'SELECT max(version) AS version FROM schema_version',
    )
    return Number(rows[0]!.version) || Number.NaN
  })
}

/** @throws PortError, which says what to do when the role lacks the right. */
export async function makePostgresSchema(url: string, schema: string): Promise<void> {
  await withClient(url, async client => {
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${pg.escapeIdentifier(schema)}`)
  })
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ ...buildClientSettings(url, 'find schema', answerMsMax), query_timeout: answerMsMax })
  client.on('error', () => undefined) // the call that fails because of it reports it
  try {
    await client.connect()
    return await work(client)
  } catch (cause) {
    throw toPostgresPortError(cause)
  } finally {
    await endIgnoringErrors(client)
  }
}
