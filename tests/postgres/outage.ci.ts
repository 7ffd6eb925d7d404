// A database that is down or hangs affects only what needs it.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assertLeftAlone } from '../faults/continuity-questions.ts'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennon, testProjectKey } from '../support/pennon.ts'
import { noPostgres, startPostgres } from '../support/postgres.ts'
import { countStored } from '../support/postgres-state.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { holdTable } from './held-table.ts'

interface Decided {
  readonly featureFlags: Record<string, boolean>
  readonly errorsWhileComputingFlags: boolean
}

const everyone = { groups: [{ rollout_percentage: 100 }] }
const planIsPro = { groups: [{ properties: [{ key: 'plan', type: 'person', operator: 'exact', value: 'pro' }] }] }
const planIsNotPro = { groups: [{ properties: [{ key: 'plan', type: 'person', operator: 'is_not', value: 'pro' }] }] }

describe('an instance whose state is in PostgreSQL', { skip: noPostgres() }, () => {
  const postgres = startedForTests(startPostgres)
  let url: string
  let pennon: Pennon

  before(async () => {
    url = await postgres.createDatabase()
    pennon = await startPennon({ settings: { DATABASE_URL: url, PENNON_LOG_LEVEL: 'error' } })
    for (const [key, filters] of Object.entries({
      everyone,
      'plan-is-pro': planIsPro,
      'plan-is-not-pro': planIsNotPro,
    }))
      await pennon.api('POST', '/api/projects/@current/feature_flags/', { key, filters })
    await send('$identify', { $set: { plan: 'pro' } })
    await pennon.caughtUp()
  })

  after(() => pennon?.stop())

  async function send(event: string, properties: object): Promise<number> {
    const response = await pennon.post('/capture/', {
      api_key: testProjectKey,
      event,
      distinct_id: 'ada',
      properties,
    })
    await response.arrayBuffer()
    return response.status
  }

  async function decide(personProperties = {}): Promise<Decided> {
    const response = await pennon.post('/decide?v=3', {
      api_key: testProjectKey,
      distinct_id: 'ada',
      person_properties: personProperties,
    })
    assert.equal(response.status, 200)
    return (await response.json()) as Decided
  }

  async function isWhole(): Promise<boolean> {
    const { featureFlags, errorsWhileComputingFlags } = await decide()
    if (errorsWhileComputingFlags) return false
    assert.deepEqual(featureFlags, { everyone: true, 'plan-is-pro': true, 'plan-is-not-pro': false })
    return true
  }

  it('flags are evaluated with stored persons', async () => {
    assert.ok(await isWhole())
  })

  it('in an outage, flags that need no state are evaluated, and accepted events are processed once afterwards', async () => {
    await postgres.kill()
    for (let count = 0; count < 10; count++) {
      const { featureFlags, errorsWhileComputingFlags } = await decide()
      assert.deepEqual(featureFlags, { everyone: true })
      assert.equal(errorsWhileComputingFlags, true)
      assert.equal(await send('while away', { count }), 200)
    }
    const sent = await decide({ plan: 'free' })
    assert.deepEqual(sent.featureFlags, { everyone: true, 'plan-is-pro': false, 'plan-is-not-pro': true })
    assert.equal(sent.errorsWhileComputingFlags, false)
    await assert.rejects(pennon.api('GET', '/api/projects/@current/feature_flags/'), /503/)
    const readiness = (await (await fetch(`${pennon.url}/_readiness`)).json()) as Record<string, string>
    assert.deepEqual([readiness.flags, readiness.capture], ['ok', 'ok'])

    await postgres.restart()
    await eventually(isWhole, { what: 'the stored person' })
    await eventually(() => pennon.caughtUp().then(() => true), { what: 'the worker' })
    const { results } = await pennon.api<{ results: unknown[] }>(
      'GET',
      '/api/projects/@current/events/?event=while%20away&limit=100',
    )
    assert.equal(results.length, 10)
    assert.equal(await countStored(postgres, url), 11, 'counted once')
  })

  it('a hanging database delays flags for a limited time, and later requests not at all', async () => {
    const release = await holdTable(url, 'person', 'ACCESS EXCLUSIVE')
    const assertPartial = async () => assert.deepEqual((await decide()).featureFlags, { everyone: true })
    for (let count = 0; count < 12; count++) await assertPartial()
    await assertLeftAlone(pennon.url, assertPartial)
    await release()
    await eventually(isWhole, { what: 'the stored person' })
  })

  it('a write is visible at once, even a write of another front without a notification', async () => {
    const flag = await pennon.api<{ id: number }>('POST', '/api/projects/@current/feature_flags/', {
      key: 'late',
      filters: everyone,
    })
    assert.equal((await decide()).featureFlags.late, true)
    // Written as another front would.
    await postgres.query(`UPDATE feature_flag SET active = 0, version = version + 1 WHERE id = ${flag.id}`, [], url)
    await postgres.query(
      `WITH bumped AS (UPDATE revision SET value = value + 1 RETURNING value)
        UPDATE project SET revision = bumped.value FROM bumped`,
      [],
      url,
    )
    await eventually(async () => (await decide()).featureFlags.late === undefined, {
      what: 'the write of the other front',
    })
  })
})
