// A log-in whose row is committed during the merge of its person: the merge must not delete the row unseen.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import pg from 'pg'
import { eventually } from '../support/eventually.ts'
import { noPostgres, startPostgres } from '../support/postgres.ts'
import { migratedDatabases, postgresStates } from '../support/postgres-state.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { aMapping, aPerson, chunkChanges, created } from '../support/values.ts'

const position = { stream: 'main', ownerId: 'w1', committedAtMs: 0 } as const
const ada = aPerson()
const bob = aPerson({ uuid: '22222222-2222-5222-8222-222222222222' })

describe('a merge on PostgreSQL', { skip: noPostgres() }, () => {
  const postgres = startedForTests(startPostgres)

  it('fails with a conflict and is retried if a flag assignment arrives after the merge has looked for them', async t => {
    let url = ''
    const newDatabase = await migratedDatabases(postgres)
    const openState = postgresStates(postgres, async test => {
      url = await newDatabase(test)
      return url
    })
    const { chunkStore, hashKeys, addOverride, overridesOf } = await openState(t)
    await chunkStore.claimPosition('main', 'w1')
    const mappings = [created(aMapping(ada, 'ada')), created(aMapping(bob, 'bob'))]
    const persons = chunkChanges({ persons: [created(ada), created(bob)], mappings })
    await chunkStore.commitChunk(persons, { ...position, offset: 1 })
    await addOverride(1, bob.uuid, 'early', 'anon')
    const merge = (offset: number) =>
      chunkStore.commitChunk(
        chunkChanges({
          deletedPersons: [{ projectId: 1, uuid: bob.uuid, survivorUuid: ada.uuid, loadedVersion: 0 }],
          mappings: [{ row: aMapping(ada, 'bob', 1), loadedVersion: 0 }],
        }),
        { ...position, offset },
      )

    // The same row for the survivor, uncommitted: the merge has looked for rows and waits for this transaction.
    const holder = new pg.Client({ connectionString: url })
    await holder.connect()
    holder.on('error', () => {}) // if the test fails, the database is dropped before this session ends
    await holder.query('BEGIN')
    await holder.query(
      `INSERT INTO flag_hash_key_override SELECT project_id, id, 'early', 'held' FROM person WHERE uuid = $1`,
      [ada.uuid],
    )
    const merging = merge(2)
    const waitsText = `SELECT 1 AS waits FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%flag_hash%'`
    await eventually(async () => (await postgres.query(waitsText, [], url)).length > 0, { what: 'the merge' })
    const assignment = { projectId: 1, distinctId: 'bob', anonDistinctId: 'anon', flagKeys: ['late'] }
    await hashKeys.addMissingHashKeys(assignment)
    await holder.query('ROLLBACK')
    await holder.end()

    assert.equal(await merging, 'version_conflict')
    assert.deepEqual(await overridesOf(1, bob.uuid), ['early=anon', 'late=anon'])
    assert.equal(await merge(3), 'committed')
    assert.deepEqual(await overridesOf(1, ada.uuid), ['early=anon', 'late=anon'])
  })
})
