import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { openStateForWriting } from '#adapters/sqlite/open-sqlite.ts'
import { openSqliteSubjectStore } from '#adapters/sqlite/sqlite-subject-store.ts'
import { openMemoryState, openSqliteState, writeNewState } from '../support/state.ts'
import { tempDir } from '../support/temp-dir.ts'
import { subjectStoreContract } from './subject-store.contract.ts'

subjectStoreContract('memory', openMemoryState)
subjectStoreContract('sqlite', openSqliteState)

describe('SubjectStore on sqlite', () => {
  it('reports `unavailable` without a state file', t => {
    assert.throws(() => openSqliteSubjectStore({ dataFolder: tempDir(t) }), { code: 'unavailable' })
  })

  it('reads while a writer holds the lock', async t => {
    const { store, writer } = await openedWithWriter(t)
    writer.exec('BEGIN EXCLUSIVE')
    assert.equal(store.findPerson(1, 'ada'), null)
    writer.exec('ROLLBACK')
  })

  it('keeps no transaction open after a look-up, so that a writer can checkpoint the WAL', async t => {
    const { store, writer } = await openedWithWriter(t)
    const foldBack = () => (writer.pragma('wal_checkpoint(TRUNCATE)') as [{ busy: number }])[0].busy
    writer.exec('UPDATE revision SET value = 7')
    assert.equal(store.findPerson(1, 'ada'), null)
    assert.equal(foldBack(), 1, 'held up within the turn')
    await nextTurn()
    assert.equal(foldBack(), 0)
  })

  it('can be closed during a look-up', async t => {
    const dataFolder = tempDir(t)
    await writeNewState(dataFolder)
    const store = openSqliteSubjectStore({ dataFolder })
    assert.equal(store.findPerson(1, 'ada'), null)
    store.close()
    await nextTurn()
  })

  it('reports `corrupt` when stored properties are not JSON, and `unavailable` once closed', async t => {
    const dataFolder = tempDir(t)
    await writeNewState(dataFolder)
    const writer = openStateForWriting(dataFolder, 0)
    writer.exec(`INSERT INTO person VALUES (1, 1, 'u', '{"a":', '{}', 0, 0, 0, 0);
      INSERT INTO person_distinct_id VALUES (1, 'ada', 1, 0)`)
    writer.close()
    const store = openSqliteSubjectStore({ dataFolder })
    assert.throws(() => store.findPerson(1, 'ada'), { code: 'corrupt' })
    store.close()
    assert.throws(() => store.findPerson(1, 'ada'), { code: 'unavailable' })
  })
})

async function openedWithWriter(t: TestContext) {
  const dataFolder = tempDir(t)
  await writeNewState(dataFolder)
  const store = openSqliteSubjectStore({ dataFolder })
  const writer = openStateForWriting(dataFolder, 0)
  t.after(() => {
    store.close()
    writer.close()
  })
  return { store, writer }
}
