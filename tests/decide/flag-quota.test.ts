// A project's quota of flag requests per UTC month, checked against the counts in memory and those written by all
// fronts.
// Source: docs/wire/evaluation.md 2.8, 3.1; docs/wire/private-api.md §8.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { migrateSqlite } from '#adapters/sqlite/kysely-on-sqlite.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { noQuotas, type Project } from '#core/project.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { type FlagRequestCounter, startFlagRequestCounter } from '#services/flags/flag-request-counter.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { eventually } from '../support/eventually.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { startFront } from '../support/front.ts'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'
import { aChange, aNewProject, aProject } from '../support/values.ts'

type Counter = FlagRequestCounter & { times(count: number): void }

/** A real state, on which several fronts can count. */
async function openUsage(t: TestContext, startsAt: string) {
  const dataFolder = tempDir(t)
  await migrateSqlite(dataFolder)
  const store: ManagementStore = openSqliteManagementStore({ dataFolder, access: 'write' })
  const clock = fixedClock(startsAt)
  const counters: FlagRequestCounter[] = []
  t.after(async () => {
    await Promise.all(counters.map(counter => counter.close()))
    await store.close()
  })
  await store.createProject(aNewProject(), aChange())
  const front = (usage: Pick<ManagementStore, 'addFlagRequests' | 'sumFlagRequests'> = store, flushMs = 5): Counter => {
    const counter = startFlagRequestCounter({ usage, clock, logger: createSilentLogger(), flushMs })
    counters.push(counter)
    const times = (count: number) => {
      for (let done = 0; done < count; done++) counter.count(1)
    }
    return { ...counter, times }
  }
  return { store, clock, front }
}

function projectWith(featureFlagRequests: number | null): Project {
  return aProject({ quotas: { ...noQuotas, featureFlagRequests } })
}

describe('a quota for flag requests', () => {
  it('is used up after its number of requests, immediately if it is 0, and never if it is missing', async t => {
    const { front } = await openUsage(t, '2026-03-10T00:00:00Z')
    const counter = front()
    counter.follow(projectWith(3))
    await counter.caughtUp()
    counter.times(2)
    assert.equal(counter.isOverQuota(projectWith(3)), false)
    counter.times(1)
    assert.equal(counter.isOverQuota(projectWith(3)), true)
    assert.equal(counter.isOverQuota(projectWith(4)), false)
    assert.equal(counter.isOverQuota(projectWith(0)), true)
    assert.equal(counter.isOverQuota(projectWith(null)), false)
  })

  it('is reset only by a new UTC month', async t => {
    const { clock, front } = await openUsage(t, '2026-01-30T23:59:59.999Z')
    const counter = front()
    counter.follow(projectWith(2))
    await counter.caughtUp()
    counter.times(2)
    clock.set(Date.parse('2026-01-31T23:59:59.999Z'))
    assert.equal(counter.isOverQuota(projectWith(2)), true)
    clock.set(Date.parse('2026-02-01T00:00:00Z'))
    assert.equal(counter.isOverQuota(projectWith(2)), false)
    counter.times(1)
    assert.equal(counter.isOverQuota(projectWith(2)), false)
    counter.times(1)
    assert.equal(counter.isOverQuota(projectWith(2)), true)
  })

  it('survives a restart: requests written this month count, earlier ones do not', async t => {
    const { store, front } = await openUsage(t, '2026-03-02T12:00:00Z')
    await store.addFlagRequests([
      { projectId: 1, day: '2026-02-28', count: 1_000 },
      { projectId: 1, day: '2026-03-01', count: 4 },
      { projectId: 1, day: '2026-03-02', count: 5 },
    ])
    const counter = front()
    counter.follow(projectWith(10))
    await counter.caughtUp()
    assert.equal(counter.isOverQuota(projectWith(9)), true)
    assert.equal(counter.isOverQuota(projectWith(10)), false)
    counter.times(1)
    assert.equal(counter.isOverQuota(projectWith(10)), true)
  })

  it('counts requests from before it was set', async t => {
    const { front } = await openUsage(t, '2026-03-10T00:00:00Z')
    const counter = front()
    counter.times(3)
    counter.follow(projectWith(3))
    await counter.caughtUp()
    assert.equal(counter.isOverQuota(projectWith(3)), true)
    assert.equal(counter.isOverQuota(projectWith(4)), false)
  })

  it('is shared by all fronts, and no front counts a request twice however often it writes its count', async t => {
    const { store, front } = await openUsage(t, '2026-03-10T00:00:00Z')
    const [first, second] = [front(), front()]
    for (const counter of [first, second]) {
      counter.follow(projectWith(10))
      await counter.caughtUp()
    }
    first.times(6)
    assert.equal(second.isOverQuota(projectWith(6)), false)
    await eventually(() => second.isOverQuota(projectWith(6)), { what: 'the other front to hear of six requests' })
    second.times(3)
    await eventually(() => first.isOverQuota(projectWith(9)), { what: 'the first front to hear of three more' })
    for (const counter of [first, second]) assert.equal(counter.isOverQuota(projectWith(10)), false)
    assert.deepEqual(await store.sumFlagRequests([1], '2026-03-01', '2026-03-31'), [{ projectId: 1, count: 9 }])
  })

  it('uses the local count while the state cannot be written or read', async t => {
    const { store, front } = await openUsage(t, '2026-03-10T00:00:00Z')
    let failures = 0
    let isDown = false
    const whileUp = <A extends unknown[], R>(work: (...args: A) => Promise<R>) => {
      return async (...args: A) => {
        if (!isDown) return work(...args)
        failures++
        throw new Error('down')
      }
    }
    const usage = { addFlagRequests: whileUp(store.addFlagRequests), sumFlagRequests: whileUp(store.sumFlagRequests) }
    const counter = front(usage)
    counter.follow(projectWith(5))
    await counter.caughtUp()
    counter.times(2)
    isDown = true
    counter.times(2)
    await eventually(() => failures > 2, { what: 'failed flushes' })
    assert.equal(counter.isOverQuota(projectWith(4)), true)
    assert.equal(counter.isOverQuota(projectWith(5)), false)
    isDown = false
    await eventually(async () => (await store.sumFlagRequests([1], '2026-03-01', '2026-03-31'))[0]?.count === 4, {
      what: 'all four to be written once',
    })
    counter.times(1)
    assert.equal(counter.isOverQuota(projectWith(5)), true)
    assert.equal(counter.isOverQuota(projectWith(6)), false)
  })
})

it('a project over its quota gets no flags and no definitions until the quota is raised', async t => {
  const front = await startFront()
  t.after(() => front.close())
  await front.api('POST', '/api/projects/@current/feature_flags/', { key: 'on' })
  const setQuota = (feature_flag_requests: number | null) =>
    front.api('PATCH', '/api/projects/@current/', { quotas: { feature_flag_requests } })
  const ask = async (path: string) => {
    const body = JSON.stringify({ api_key: testProjectKey, distinct_id: 'ada' })
    const response = await fetch(`${front.url}${path}`, { method: 'POST', body })
    // biome-ignore lint/suspicious/noExplicitAny: two shapes
    return { status: response.status, body: (await response.json()) as any }
  }
  const definitions = async () => {
    const response = await fetch(`${front.url}/flags/definitions?token=${testProjectKey}`, {
      headers: { authorization: `Bearer ${testPersonalKey}` },
    })
    return { status: response.status, body: await response.json() }
  }
  await ask('/decide?v=3')
  await setQuota(3)
  assert.deepEqual((await ask('/decide?v=3')).body.featureFlags, { on: true })
  assert.equal((await definitions()).status, 200)
  assert.equal((await ask('/flags?v=2')).body.quotaLimited, undefined)

  const decided = await ask('/decide?v=3')
  assert.equal(decided.status, 200)
  assert.deepEqual(decided.body.featureFlags, {})
  assert.equal(decided.body.errorsWhileComputingFlags, false)
  assert.deepEqual(decided.body.quotaLimited, ['feature_flags'])
  const flags = await ask('/flags?v=2')
  assert.deepEqual([flags.body.flags, flags.body.quotaLimited], [{}, ['feature_flags']])
  assert.deepEqual(await definitions(), {
    status: 402,
    body: {
      type: 'quota_limited',
      code: 'payment_required',
      detail: 'You have exceeded your feature flag request quota',
      attr: null,
    },
  })

  await setQuota(4)
  assert.deepEqual((await ask('/decide?v=3')).body.featureFlags, { on: true })
  assert.deepEqual((await ask('/decide?v=3')).body.featureFlags, {})
  await setQuota(null)
  assert.deepEqual((await ask('/decide?v=3')).body.featureFlags, { on: true })
  assert.equal((await definitions()).status, 200)
  await setQuota(0)
  assert.deepEqual((await ask('/decide?v=3')).body.featureFlags, {})
  assert.equal((await definitions()).status, 402)
})
