// With the state in PostgreSQL and the log on the instance's disk, acknowledged events are processed once, into the
// state that they were accepted for, whichever folder and database a start is given.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import pg from 'pg'
import { definitionsLock } from '#adapters/postgres/kysely-on-postgres.ts'
import { readLogIdentity } from '#adapters/sqlite-log/log-identity.ts'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennon, testProjectKey } from '../support/pennon.ts'
import { noPostgres, startPostgres } from '../support/postgres.ts'
import { countStored } from '../support/postgres-state.ts'
import { refusedStart } from '../support/refused-start.ts'
import { stateWithLog } from '../support/sqlite-log-files.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { tempDir } from '../support/temp-dir.ts'

describe('an embedded log and its state in PostgreSQL', { skip: noPostgres() }, () => {
  const postgres = startedForTests(startPostgres)

  const running = new Set<Pennon>()
  async function started(t: { after: (f: () => Promise<void>) => void }, dataFolder: string, databaseUrl?: string) {
    const pennon = await startPennon({ dataFolder, ...(databaseUrl && { settings: { DATABASE_URL: databaseUrl } }) })
    running.add(pennon)
    t.after(async () => {
      if (running.delete(pennon)) await pennon.killTree()
    })
    return pennon
  }
  async function stopped(pennon: Pennon) {
    running.delete(pennon)
    assert.equal(await pennon.stop(), 0)
  }

  async function capture(pennon: Pennon, prefix: string, count: number) {
    const batch = Array.from({ length: count }, (_, n) => ({ event: `${prefix}${n}`, distinct_id: 'ada' }))
    const answer = await pennon.post('/batch/', { api_key: testProjectKey, batch })
    assert.equal(answer.status, 200, await answer.text())
  }

  const storedCount = (url: string) => countStored(postgres, url)

  it('processing continues without gaps in another data folder, or in the first after a start in a wrong folder', async t => {
    const url = await postgres.createDatabase()
    const [right, wrong, next] = [tempDir(t), tempDir(t), tempDir(t)]
    const first = await started(t, right, url)
    await capture(first, 'first', 20)
    await first.caughtUp()
    await stopped(first)
    await stopped(await started(t, wrong, url))
    const again = await started(t, right, url)
    await capture(again, 'again', 30)
    await again.caughtUp()
    assert.equal(await storedCount(url), 50)
    await stopped(again)

    const second = await started(t, next, url)
    assert.match(second.output(), /instead of the one in/)
    const { lanes } = await second.api<{ lanes: unknown }>('GET', '/api/projects/@current/ingestion_status/')
    assert.match(JSON.stringify(lanes), /"appended":50,"processed":50/)
    await capture(second, 'second', 50)
    await second.caughtUp()
    assert.equal(await storedCount(url), 100)
    await stopped(second)

    assert.match(
      await refusedStart(right, { DATABASE_URL: url }),
      new RegExp(`another state: .* follows the log in .*${next}`),
    )
  })

  it('only one instance at a time can use a database, even after the server restarts', async t => {
    const url = await postgres.createDatabase()
    const folders = [tempDir(t), tempDir(t)] as const
    const first = await started(t, folders[0], url)
    assert.match(await refusedStart(folders[1], { DATABASE_URL: url }), /is in use by another instance on .+\. Stop it/)
    await capture(first, 'kept', 30)
    await first.caughtUp()
    assert.equal(await storedCount(url), 30)
    running.delete(first)
    await first.killTree()

    const second = await started(t, folders[1], url)
    await postgres.restart()
    await eventually(async () => (await holders(url)) === 1, { what: 'the lock' })
    await capture(second, 'after', 10)
    await second.caughtUp()
    assert.equal(await storedCount(url), 40)

    // Another session waits for the lock, and gets it as soon as this instance loses its session.
    const other = new pg.Client({ connectionString: url })
    await other.connect()
    t.after(() => other.end())
    const taken = other.query(`SELECT pg_advisory_lock(${definitionsLock}, 1)`)
    await postgres.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'pennon instance %'`,
      [],
      url,
    )
    await taken
    await eventually(() => /took over/.test(second.output()), { what: 'the end' })
    running.delete(second)
    assert.equal(await second.stop(), 2)
  })

  it('an instance stops if its database was replaced by a copy that belongs to another log', async t => {
    const url = await postgres.createDatabase()
    const pennon = await started(t, tempDir(t), url)
    await capture(pennon, 'kept', 10)
    await pennon.caughtUp()
    await postgres.query(
      `WITH other AS (UPDATE followed_log SET log_id = '${randomUUID()}')
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'pennon instance %'`,
      [],
      url,
    )
    await eventually(() => /follows another log; this instance stops/.test(pennon.output()), {
      what: 'the end',
    })
    running.delete(pennon)
    assert.equal(await pennon.stop(), 2)
  })

  it('a log that belongs to another state is refused with SQLite and PostgreSQL, and log and state are unchanged', async t => {
    const url = await postgres.createDatabase()
    const folder = tempDir(t)
    const alone = await started(t, folder)
    await capture(alone, 'alone', 10)
    await alone.caughtUp()
    await stopped(alone)
    assert.match(
      await refusedStart(folder, { DATABASE_URL: url }),
      /log in .* belongs to another state: .*PostgreSQL at .* follows no log yet/,
    )
    assert.equal(await storedCount(url), 0)
    const [{ n }] = (await postgres.query<{ n: string }>('SELECT count(*) AS n FROM project', [], url)) as [
      { n: string },
    ]
    assert.equal(n, '0')

    const other = tempDir(t)
    const there = await started(t, other, url)
    await stopped(there)
    const beside =
      /state\.db is missing, and log\/ .*belongs? to another state\. If that state is in PostgreSQL, set DATABASE_URL/
    assert.match(await refusedStart(other), beside)
    assert.ok(!existsSync(join(other, 'state.db')))
    await stopped(await started(t, folder))
  })

  it('the first successful start binds the log in a folder to a state, but a refused start does not', async t => {
    const url = await postgres.createDatabase()
    const folder = tempDir(t)
    assert.match(await refusedStart(folder, { PENNON_PROJECT_KEY: 'phc_a/b' }), /PENNON_PROJECT_KEY cannot be used/)
    assert.equal(readLogIdentity(join(folder, 'log')), null, 'a refused start binds nothing')

    await stateWithLog(folder)
    const there = await started(t, folder, url)
    await capture(there, 'there', 10)
    await there.caughtUp()
    await stopped(there)
    assert.match(await refusedStart(folder), /belongs to another state: the state in this data folder follows/)
  })

  it('two simultaneous first starts create only one project', async t => {
    const url = await postgres.createDatabase()
    const folders = [tempDir(t), tempDir(t)]
    const starts = await Promise.allSettled(folders.map(folder => started(t, folder, url)))
    assert.deepEqual(starts.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    const failed = starts.find(start => start.status === 'rejected')!
    assert.match(String(failed.reason), /ended with 2: .*is in use by another instance/s)
    assert.equal((await postgres.query('SELECT 1 FROM project', [], url)).length, 1)
    assert.equal((await postgres.query('SELECT 1 FROM personal_api_key', [], url)).length, 1)
  })

  async function holders(url: string): Promise<number> {
    const rows = await postgres.query(
      `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      [],
      url,
    )
    return rows.length
  }
})
