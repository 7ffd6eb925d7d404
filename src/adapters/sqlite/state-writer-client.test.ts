import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { UnfitSchemaError } from '#ports/port-error.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { aChange, aNewFlag, aNewProject } from '../../../tests/support/values.ts'
import { migrateSqlite } from './kysely-on-sqlite.ts'
import { openStateForWriting } from './open-sqlite.ts'
import { startStateThread } from './state-thread.ts'
import { openStateWriter } from './state-writer-client.ts'
import type { StateMethod } from './state-writer-protocol.ts'

async function openWriter(t: TestContext, dataFolder: string, busyTimeoutMs = 5_000): Promise<ManagementStore> {
  const store = await openStateWriter({ dataFolder, logger: createSilentLogger(), busyTimeoutMs })
  t.after(() => store.close())
  return store
}

test('a write waits for another process’s lock, and fails with `timeout` when it takes too long', async t => {
  const dataFolder = tempDir(t)
  const store = await openWriter(t, dataFolder, 400)
  const other = openStateForWriting(dataFolder, 0)
  t.after(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  await assert.rejects(store.createProject(aNewProject(), aChange()), { code: 'timeout' })
  const waiting = store.createProject(aNewProject(), aChange())
  other.exec('ROLLBACK')
  const result = await waiting
  assert.ok(result.ok && result.value.value.id === 1)
})

test('the state thread answers searches while a write waits for the lock', async t => {
  const dataFolder = tempDir(t)
  const store = await openWriter(t, dataFolder, 5_000)
  const other = openStateForWriting(dataFolder, 0)
  t.after(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  let isWritten = false
  const writing = store.createProject(aNewProject(), aChange()).then(() => {
    isWritten = true
  })
  assert.deepEqual(await store.listPersons(1, { search: 'x', limit: 1, offset: 0 }), { results: [], hasMore: false })
  assert.equal(isWritten, false)
  other.exec('ROLLBACK')
  await writing
})

test('a stored flag version that lacks a newer field is read with the field’s default', async t => {
  const dataFolder = tempDir(t)
  const store = await openWriter(t, dataFolder)
  await store.createFlag(aNewFlag({ tags: ['old'] }), aChange())
  const database = openStateForWriting(dataFolder, 5_000)
  database.exec(`UPDATE feature_flag_version SET snapshot = json_remove(snapshot, '$.tags', '$.isRemoteConfiguration')`)
  database.close()
  const version = await store.findFlagVersion(1, 1, 1)
  assert.deepEqual(version?.flag.tags, [])
  assert.equal(version?.flag.isRemoteConfiguration, false)
  assert.equal(version?.flag.key, 'beta')
})

test('the state thread refuses to start on a state of a newer version', async t => {
  const dataFolder = tempDir(t)
  await migrateSqlite(dataFolder)
  const database = openStateForWriting(dataFolder, 0)
  database.exec(`INSERT INTO schema_version (version, name) VALUES (99, 'from the future')`)
  database.close()
  await assert.rejects(
    openStateWriter({ dataFolder, logger: createSilentLogger() }),
    (error: unknown) =>
      error instanceof UnfitSchemaError && /schema 99/.test(error.message) && !error.message.includes('\n'),
  )
})

test('calls in progress fail when the state thread dies, and a new thread serves the next calls', async t => {
  const dataFolder = tempDir(t)
  const thread = startStateThread({ dataFolder, access: 'write', busyTimeoutMs: 100, logger: createSilentLogger() })
  t.after(() => thread.close())
  await thread.started
  // A call that is not on the list is our own mistake: it ends the thread.
  const fatal = assert.rejects(thread.call('constructor' as StateMethod, []), { code: 'unavailable' })
  const other = assert.rejects(thread.call('listProjects', [{ limit: 1, offset: 0 }]), { code: 'unavailable' })
  await Promise.all([fatal, other])
  const page = await eventually(() => thread.call('listProjects', [{ limit: 1, offset: 0 }]))
  assert.deepEqual(page, { count: 0, results: [] })
})

test('the state thread accepts a thousand calls at once and refuses the next one', async t => {
  const store = await openWriter(t, tempDir(t))
  const calls = Array.from({ length: 1_001 }, () => store.listProjectIds())
  await assert.rejects(calls.at(-1)!, { code: 'unavailable' })
  const lists = await Promise.all(calls.slice(0, 1_000))
  assert.equal(lists.length, 1_000)
})

test('the state thread finishes pending calls before it closes, and refuses calls after that', async t => {
  const dataFolder = tempDir(t)
  const store = await openStateWriter({ dataFolder, logger: createSilentLogger() })
  await store.createProject(aNewProject(), aChange())
  const writing = Array.from({ length: 20 }, (_, index) =>
    store.createFlag(aNewFlag({ key: `flag-${index}` }), aChange()),
  )
  await store.close()
  const results = await Promise.all(writing)
  assert.ok(results.every(result => result.ok))
  await assert.rejects(store.listProjectIds(), { code: 'unavailable' })
})
