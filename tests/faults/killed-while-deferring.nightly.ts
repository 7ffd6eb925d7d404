// All processes are killed repeatedly while a project is deferred: every acknowledged event is stored once.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import Database from 'better-sqlite3'
import { eventually } from '../support/eventually.ts'
import { largePersonEvents, makeLargePerson } from '../support/large-person.ts'
import { outcomesOf } from '../support/outcomes-of.ts'
import { type Pennon, startPennon } from '../support/pennon.ts'
import { seededRandom, testSeed } from '../support/seeded-random.ts'

/** Some seconds of the worker's time, or half a minute on a slow machine. */
const batchEvents = 2_000
const killCount = 3

it('kills while a project is deferred neither lose nor duplicate events', async t => {
  const seed = testSeed()
  console.log(`SEED=${seed}`)
  const random = seededRandom(seed)
  const dataFolder = mkdtempSync(join(tmpdir(), 'pennon-deferring-'))
  let pennon: Pennon = await startPennon({ dataFolder })
  t.after(async () => {
    await pennon.killTree()
    rmSync(dataFolder, { recursive: true, force: true })
  })
  type NewProject = { id: number; api_token: string }
  const large = await pennon.api<NewProject>('POST', '/api/projects/', { name: 'large' })
  const quiet = await pennon.api<NewProject>('POST', '/api/projects/', { name: 'quiet' })
  await makeLargePerson(pennon, large.api_token)
  const batch = Array.from({ length: batchEvents }, (_, n) => ({
    event: 'large',
    properties: { distinct_id: 'large', n },
  }))
  const isDeferring = () => deferredCount(dataFolder) === 1
  let batchCount = 0
  let quietCount = 0
  for (let kill = 0; kill < killCount; kill++) {
    if (!isDeferring()) {
      assert.equal((await pennon.post('/batch/', { api_key: large.api_token, batch })).status, 200)
      batchCount++
    }
    await eventually(isDeferring, { what: 'a deferred project' })
    const sent = await pennon.post('/capture/', { api_key: quiet.api_token, event: 'quiet', distinct_id: 'q' })
    assert.equal(sent.status, 200)
    quietCount++
    await new Promise(resolve => setTimeout(resolve, random() * 1_500))
    await pennon.killTree()
    pennon = await startPennon({ dataFolder })
  }
  await pennon.caughtUp()
  await eventually(() => deferredCount(dataFolder) === 0, { what: 'the release' })
  assert.deepEqual(await outcomesOf(pennon, large.id), [['stored', batchCount * batchEvents + largePersonEvents]])
  assert.deepEqual(await outcomesOf(pennon, quiet.id), [['stored', quietCount]])
})

function deferredCount(dataFolder: string): number {
  const database = new Database(join(dataFolder, 'state.db'), { readonly: true })
  try {
    return Number(database.prepare('SELECT count(*) FROM deferred_project').pluck().get())
  } finally {
    database.close()
  }
}
