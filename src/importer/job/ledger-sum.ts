// A checksum of the ledger rows that sending reads. SQLite does not notice flipped bits in a page that is still well formed.

import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type Database from 'better-sqlite3'
import { checkPause } from './job-paused.ts'

/** Ordered as sent, or by key: row ids do not depend on the content alone. */
const queries = [
  'SELECT kind, time_us, uuid, event FROM generated ORDER BY kind, time_us, uuid, id',
  'SELECT device, user FROM link ORDER BY device',
  'SELECT kind, key, value FROM fact ORDER BY kind, key',
]
/** Yield to timers and signals after this many characters (not rows: one row may hold all properties of a group). */
const charsAtOnce = 256 * 1024

/**
 * Reads everything once: a million events and a million links take about 2.5 s of CPU time. The database accepts no other
 * statement until it returns.
 * @returns hex; the same for every ledger built from the same staged bytes.
 * @throws JobPaused
 */
export async function computeLedgerSum(database: Database.Database, signal: AbortSignal): Promise<string> {
  const sum = createHash('sha256')
  for (const query of queries) {
    sum.update(`${query}\n`)
    let rows = ''
    const take = async () => {
      sum.update(rows)
      rows = ''
      await setImmediate()
      checkPause(signal)
    }
    for (const row of database.prepare(query).raw().iterate()) {
      rows += `${JSON.stringify(row)}\n`
      if (rows.length >= charsAtOnce) await take()
    }
    await take()
  }
  return sum.digest('hex')
}
