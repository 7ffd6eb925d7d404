// Locks a table from another session for as long as a test needs.

import pg from 'pg'

/**
 * Locks a table in a separate session.
 * @param mode PostgreSQL's name of the lock; `ACCESS EXCLUSIVE` also blocks reads.
 * @returns a function that releases the lock; the session also ends with the server.
 */
export async function holdTable(url: string, table: string, mode: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {}) // a failing test ends the server under it
  await client.connect()
  await client.query(`BEGIN; LOCK TABLE ${table} IN ${mode} MODE`)
  return () => client.end()
}
