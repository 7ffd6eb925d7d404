// Tests the PostgreSQL server that other tests rely on: databases are separate, and committed data survives a kill.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noPostgres, startPostgresForTests } from './postgres.ts'

test('each test gets a separate database, which survives a kill of the server', { skip: noPostgres() }, async t => {
  const postgres = await startPostgresForTests(t)
  const first = await postgres.createDatabase()
  await postgres.query('CREATE TABLE thing AS SELECT 1 AS a', [], first)
  const copy = await postgres.createDatabase({ template: first })
  await postgres.query('INSERT INTO thing VALUES (2)', [], copy)
  const empty = await postgres.createDatabase()
  await postgres.restart()
  assert.deepEqual(await postgres.query('SELECT a FROM thing', [], first), [{ a: 1 }])
  assert.deepEqual(await postgres.query('SELECT a FROM thing ORDER BY a', [], copy), [{ a: 1 }, { a: 2 }])
  await assert.rejects(postgres.query('SELECT a FROM thing', [], empty))
})
