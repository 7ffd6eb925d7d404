// The salts of an instance with its state in PostgreSQL.

import { PortError } from '#ports/port-error.ts'
import type { CookielessSalts } from '#ports/state/cookieless-visitors.ts'
import type { Logger } from '#telemetry/log.ts'
import { openPool } from './open-postgres.ts'

const statementMsMax = 2_000
const connectMsMax = 2_000

/** Writes nothing if the day already has a salt. `findText` then reads the stored salt, whichever process wrote it. */
const insertText = 'INSERT INTO cookieless_salt (day, salt) VALUES ($1, $2) ON CONFLICT (day) DO NOTHING'
const findText = 'SELECT salt FROM cookieless_salt WHERE day = $1'
const deleteText = 'DELETE FROM cookieless_salt WHERE day < $1 OR day > $2 RETURNING day'

/** Requires a migrated state. The first call opens the session. */
export function openPostgresSalts(options: { readonly url: string; readonly logger: Logger }): CookielessSalts {
  const pool = openPool({ ...options, name: 'salts', sizeMax: 1, statementMsMax, connectMsMax })
  const run = async <T>(text: string, values: unknown[]) =>
    (await pool.query<[T]>({ text, values, rowMode: 'array' })).rows
  const findSalt = async (day: string) => (await run<Buffer>(findText, [day]))[0]?.[0]
  return {
    findOrCreateSalt: async (day, fresh) => {
      const known = await findSalt(day)
      if (known !== undefined) return new Uint8Array(known)
      await run(insertText, [day, Buffer.from(fresh)])
      const kept = await findSalt(day)
      // A worker whose clock is ahead may have deleted the salt since. Fails, since hashing must not continue without a
      // salt.
      if (kept === undefined) throw new PortError('state', 'unavailable')
      return new Uint8Array(kept)
    },
    deleteSaltsExcept: async ({ first, last }) => (await run<string>(deleteText, [first, last])).map(([day]) => day),
    close: () => pool.end(),
  }
}
