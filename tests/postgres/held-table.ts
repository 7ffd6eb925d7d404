// A table that somebody else has locked, for as long as a test needs it.

import pg from 'pg'

/**
 * Locks a table in a session of its own.
 * @param mode as PostgreSQL names it, `ACCESS EXCLUSIVE` for one that nobody may read either.
 * @returns what gives the lock back; the session ends with the server too.
 */
export async function holdTable(url: string, table: string, mode: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {}) // a test that fails ends the server under it
  await client.connect()
  await client.query(`BEGIN; LOCK TABLE ${table} IN ${mode} MODE`)
  return () => client.end()
}
