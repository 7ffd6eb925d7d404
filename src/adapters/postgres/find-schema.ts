// Whether a database holds state, and of which version, without making or changing any of it.

import pg from 'pg'
import { endQuietly } from './end-in-time.ts'
import { clientSettings } from './open-postgres.ts'
import { postgresPortError } from './postgres-errors.ts'

const answerMsMax = 10_000

/**
 * @returns how many migrations the state has had; null when there is none.
 * @throws PortError when the database cannot be reached or read.
 */
export async function findPostgresSchema(url: string): Promise<number | null> {
  const client = new pg.Client({ ...clientSettings(url, 'find schema', answerMsMax), query_timeout: answerMsMax })
  client.on('error', () => undefined) // told by the call that it breaks
  try {
    await client.connect()
    const { rows } = await client.query<{ found: string }>(
      `SELECT count(to_regclass(name)) AS found FROM unnest(ARRAY['schema_version', 'project', 'personal_api_key']) AS name`,
    )
    if (Number(rows[0]!.found) < 3) return null
    const { rows: versions } = await client.query<{ version: string | null }>(
      'SELECT max(version) AS version FROM schema_version',
    )
    return Number(versions[0]!.version ?? 0)
  } catch (cause) {
    throw postgresPortError(cause)
  } finally {
    await endQuietly(client)
  }
}
