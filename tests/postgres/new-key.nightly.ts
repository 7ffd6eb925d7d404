// `pennon new-key` with the state in PostgreSQL writes to that database and nothing to the data folder.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { keyItself, newKey } from '../support/new-key.ts'
import { startPennonFor } from '../support/pennon.ts'
import { guardedRole, noPostgres, startPostgres } from '../support/postgres.ts'
import { migratedTemplate } from '../support/postgres-state.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { tempDir } from '../support/temp-dir.ts'

describe('pennon new-key with DATABASE_URL', { skip: noPostgres() }, () => {
  const postgres = startedForTests(startPostgres)

  it('creates a key next to a running instance, and for a stopped instance', async t => {
    const databaseUrl = await postgres.createDatabase()
    const settings = { DATABASE_URL: databaseUrl }
    const pennon = await startPennonFor(t, { settings, waitForProcessing: false })
    const elsewhere = join(tempDir(t), 'data')
    const made = await newKey({ ...settings, PENNON_DATA: elsewhere }, '--label', 'ci')
    assert.equal(made.exitCode, 0, made.stderr)
    const known = await keyItself(pennon.url, made.key)
    assert.deepEqual([known.label, known.scopes], ['ci', ['*']])
    assert.equal(await pennon.stop(), 0)
    assert.equal((await newKey({ ...settings, PENNON_DATA: elsewhere })).exitCode, 0)
    const labels = await postgres.query<{ label: string }>('SELECT label FROM personal_api_key', [], databaseUrl)
    assert.deepEqual(labels.map(({ label }) => label).sort(), ['First start', 'ci', 'pennon new-key'])
    assert.equal(existsSync(elsewhere), false)
  })

  it('creates no tables, key or folder in a database without Pennon’s tables', async t => {
    const tablesOf = (url: string) =>
      postgres.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", [], url)
    const empty = await postgres.createDatabase()
    const ofOthers = await postgres.createDatabase()
    await postgres.query('CREATE TABLE schema_version (version TEXT)', [], ofOthers)
    const unfinished = await migratedTemplate(postgres)
    for (const url of [empty, ofOthers, unfinished]) {
      const before = await tablesOf(url)
      const dataFolder = join(tempDir(t), 'data')
      const settings = url === unfinished ? { PENNON_DATABASE_SCHEMA: 'public' } : {}
      const { exitCode, stdout, stderr } = await newKey({ DATABASE_URL: url, PENNON_DATA: dataFolder, ...settings })
      assert.deepEqual([exitCode, stdout], [2, ''], stderr)
      assert.match(stderr, /^pennon: There is no state in PostgreSQL at 127\.0\.0\.1:\d+\/test_[^\n]+\n$/)
      assert.deepEqual(await tablesOf(url), before)
      assert.equal(existsSync(dataFolder), false)
    }
    assert.deepEqual(await postgres.query('SELECT * FROM personal_api_key', [], unfinished), [])
  })

  it('reports an unusable database in one line, without the password', async t => {
    const newer = await migratedTemplate(postgres)
    await postgres.query("INSERT INTO schema_version (version, name) VALUES (999, 'future')", [], newer)
    const wrong = `postgres://${guardedRole}:not-the-right-one@127.0.0.1:${postgres.port}/postgres`
    for (const [url, reason] of [
      [newer, /newer Pennon \(schema 999/],
      [wrong, /password authentication failed/],
      ['postgres://pennon:not-the-right-one@127.0.0.1:1/state', /127\.0\.0\.1:1\/state.*ECONNREFUSED/],
    ] as const) {
      const settings = { PENNON_DATABASE_SCHEMA: 'public', PENNON_DATA: join(tempDir(t), 'data') }
      const { exitCode, stdout, stderr } = await newKey({ DATABASE_URL: url, ...settings })
      assert.deepEqual([exitCode, stdout], [2, ''], stderr)
      assert.match(stderr, /^pennon: [^\n]+\n$/)
      assert.match(stderr, reason)
      assert.ok(!stderr.includes('not-the-right-one'))
    }
  })
})
