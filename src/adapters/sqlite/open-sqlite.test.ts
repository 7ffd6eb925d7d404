import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { migrations } from '#adapters/sql/known-migrations.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { migrateSqlite } from './kysely-on-sqlite.ts'
import { openStateForReading, openStateForWriting, stateFilePath } from './open-sqlite.ts'

test('opening SQLite creates the folder and the state, and changes nothing the second time', async t => {
  const dataFolder = join(tempDir(t), 'deep', 'data')
  await migrateSqlite(dataFolder)
  await migrateSqlite(dataFolder)
  const database = openStateForReading(dataFolder)
  assert.deepEqual(
    database.prepare('SELECT version FROM schema_version').pluck().all(),
    migrations.map(({ version }) => version),
  )
  database.close()
})

test('the SQLite state is durable: it uses WAL, a sync at each commit, and checked foreign keys', t => {
  const database = openStateForWriting(tempDir(t), 0)
  assert.equal(database.pragma('journal_mode', { simple: true }), 'wal')
  assert.equal(database.pragma('synchronous', { simple: true }), 2)
  assert.equal(database.pragma('foreign_keys', { simple: true }), 1)
  assert.equal(database.pragma('busy_timeout', { simple: true }), 0)
  database.close()
})

test('a read-only connection to the state can read, and sees what others commit', async t => {
  const dataFolder = tempDir(t)
  await migrateSqlite(dataFolder)
  const reader = openStateForReading(dataFolder)
  const writer = openStateForWriting(dataFolder, 0)
  writer.exec(`UPDATE revision SET value = 7`)
  assert.equal(reader.prepare('SELECT value FROM revision').pluck().get(), 7)
  assert.throws(() => reader.exec('UPDATE revision SET value = 8'), /readonly/)
  reader.close()
  writer.close()
})

test('opening SQLite fails with `corrupt` for a file that is not a state, and `unavailable` for one it cannot open', async t => {
  const dataFolder = tempDir(t)
  writeFileSync(stateFilePath(dataFolder), 'this is not a database file, whatever its name says'.repeat(100))
  await assert.rejects(migrateSqlite(dataFolder), { code: 'corrupt' })
  const other = tempDir(t)
  mkdirSync(stateFilePath(other))
  await assert.rejects(migrateSqlite(other), { code: 'unavailable' })
  await assert.rejects(migrateSqlite(join(stateFilePath(dataFolder), 'below-a-file')), { code: 'unavailable' })
  assert.throws(() => openStateForReading(join(other, 'nowhere')), { code: 'unavailable' })
})
