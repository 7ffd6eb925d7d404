// The database is replaced by an older copy while an instance keeps running: a point-in-time restore, or a standby that
// lagged. Processed events that the copy lacks are processed again, and none counts twice.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennonFor, testProjectKey } from '../support/pennon.ts'
import { noPostgres, startPostgresForTests } from '../support/postgres.ts'
import { countStored } from '../support/postgres-state.ts'
import { tempDir } from '../support/temp-dir.ts'

interface Listed {
  readonly results: readonly unknown[]
}

test('events that an older copy of the database lacks are processed again, with and without new events', {
  skip: noPostgres(),
}, async t => {
  const postgres = await startPostgresForTests(t)
  const url = await postgres.createDatabase()
  const pennon = await startPennonFor(t, { dataFolder: tempDir(t), settings: { DATABASE_URL: url } })
  const everyone = { groups: [{ rollout_percentage: 100 }] }
  await pennon.api('POST', '/api/projects/@current/feature_flags/', { key: 'first', filters: everyone })
  await capture(pennon, 'old', 5)
  await pennon.caughtUp()
  const copy = await postgres.copy()
  await writing(() => pennon.api('POST', '/api/projects/@current/feature_flags/', { key: 'lost', filters: everyone }))
  await capture(pennon, 'gap', 10)
  await pennon.caughtUp()

  await copy.comeBack()
  await eventually(async () => (await countStored(postgres, url)) === 15, { what: 'the gap' })
  assert.match(pennon.output(), /"before":15,"offset":5.*the position in the state changed/)
  await writing(() => pennon.api('POST', '/api/projects/@current/feature_flags/', { key: 'second', filters: everyone }))
  const answer = await pennon.post('/decide?v=3', { api_key: testProjectKey, distinct_id: 'nobody' })
  const { featureFlags } = (await answer.json()) as { featureFlags: Record<string, boolean> }
  assert.deepEqual(featureFlags, { first: true, second: true }, 'a write is visible as soon as it is answered')

  await copy.comeBack()
  await capture(pennon, 'new', 2)
  await eventually(async () => (await countStored(postgres, url)) === 17, { what: 'the missing and the new events' })
  const persons = await postgres.query<{ name: string; count: number }>(
    `SELECT substr(distinct_id, 1, 3) AS name, count(*)::int AS count FROM person_distinct_id GROUP BY 1 ORDER BY 1`,
    [],
    url,
  )
  assert.deepEqual(persons, [
    { name: 'gap', count: 10 },
    { name: 'new', count: 2 },
    { name: 'old', count: 5 },
  ])
  const events = await pennon.api<Listed>('GET', '/api/projects/@current/events/?limit=100')
  assert.equal(events.results.length, 17)
  const usage = await pennon.api<{ results: { events_charged: number }[] }>('GET', '/api/projects/@current/usage/')
  assert.ok(usage.results.reduce((sum, day) => sum + day.events_charged, 0) <= 17)
  assert.equal(await pennon.stop(), 0)

  /** Just after a restart, old sessions are still used and fail. */
  async function writing(write: () => Promise<unknown>): Promise<void> {
    await eventually(() => write().then(() => true), { what: 'the write' })
  }
})

async function capture(pennon: Pennon, name: string, count: number): Promise<void> {
  const batch = Array.from({ length: count }, (_, n) => ({
    event: 'seen',
    distinct_id: `${name}${n}`,
    properties: { $set: { from: name } },
  }))
  const answer = await pennon.post('/batch/', { api_key: testProjectKey, batch })
  assert.equal(answer.status, 200, await answer.text())
}
