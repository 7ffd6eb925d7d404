import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { PortError } from '#ports/port-error.ts'
import type { SubjectStore } from '#ports/state/subject-store.ts'
import { startDecideServer } from '../support/decide-server.ts'

const personFilter = (key: string, value: string) => ({ key, type: 'person', operator: 'exact', value })

/** Each flag's name says what it needs. */
const flags: JsonObject[] = [
  { id: 1, key: 'nothing', filters: { groups: [{ rollout_percentage: 100 }], payloads: { true: '1' } } },
  { id: 2, key: 'rollout-50', filters: { groups: [{ rollout_percentage: 50 }] } },
  { id: 3, key: 'sent', filters: { groups: [{ properties: [personFilter('plan', 'pro')] }] } },
  { id: 4, key: 'stored', filters: { groups: [{ properties: [personFilter('city', 'Oslo')] }] } },
  {
    id: 5,
    key: 'stored-unless-matched-before',
    filters: {
      groups: [{ properties: [personFilter('plan', 'pro')] }, { properties: [personFilter('city', 'Oslo')] }],
    },
  },
  {
    id: 6,
    key: 'stored-negative',
    filters: { groups: [{ properties: [{ key: 'city', type: 'person', operator: 'is_not', value: 'Oslo' }] }] },
  },
  {
    id: 7,
    key: 'stored-group',
    filters: {
      aggregation_group_type_index: 0,
      groups: [{ properties: [{ key: 'tier', type: 'group', operator: 'exact', value: 'gold', group_type_index: 0 }] }],
    },
  },
  { id: 8, key: 'group-key-only', filters: { aggregation_group_type_index: 0, groups: [{ rollout_percentage: 100 }] } },
  {
    id: 9,
    key: 'behind-stored',
    filters: {
      groups: [{ properties: [{ key: '4', type: 'flag', operator: 'flag_evaluates_to', value: false }] }],
    },
  },
]
const groupTypes = { 0: 'company' }
const body = {
  api_key: 'phc_test',
  distinct_id: 'user-1',
  person_properties: { plan: 'pro' },
  groups: { company: 'acme' },
}
const computable = {
  nothing: true,
  'rollout-50': true,
  sent: true,
  'stored-unless-matched-before': true,
  'group-key-only': true,
}

const unavailable = () => new PortError('subject-store', 'unavailable')
const throwing: SubjectStore = {
  findPerson: () => {
    throw unavailable()
  },
  findStaticCohorts: () => {
    throw unavailable()
  },
  findGroup: () => {
    throw unavailable()
  },
}
const rejecting: SubjectStore = {
  findPerson: async () => {
    throw unavailable()
  },
  findStaticCohorts: async () => {
    throw unavailable()
  },
  findGroup: async () => {
    throw unavailable()
  },
}

describe('flags while the state cannot be read', () => {
  for (const [how, subjects] of [
    ['throws', throwing],
    ['rejects', rejecting],
  ] as const) {
    it(`are answered if they need no data from a store that ${how}`, async t => {
      const server = await startDecideServer(t, { flags, groupTypes, subjects })
      const answer = await server.post('/decide?v=3', body)
      assert.equal(answer.status, 200)
      assert.equal(answer.json.errorsWhileComputingFlags, true)
      assert.deepEqual(answer.json.featureFlags, computable)
      assert.deepEqual(answer.json.featureFlagPayloads, { nothing: '1' })

      const detailed = await server.post('/flags?v=2', body)
      const { stored } = detailed.json.flags as Record<string, JsonObject>
      assert.equal(stored!.failed, true)
      assert.equal(stored!.enabled, false)
      assert.equal((stored!.reason as JsonObject).code, 'database_unavailable')
    })
  }

  it('wait a limited time for a store that hangs, and then no longer wait for it', async t => {
    const waits: (() => void)[] = []
    let askedCount = 0
    let nowMs = 0
    let isBack = false
    const hang = <T>(found: T) => {
      askedCount++
      return isBack ? found : new Promise<T>(() => {})
    }
    const server = await startDecideServer(t, {
      flags,
      groupTypes,
      subjects: {
        findPerson: () => hang({ uuid: 'u', properties: { city: 'Oslo' }, createdAtMs: 0 }),
        findStaticCohorts: () => hang(new Set<number>()),
        findGroup: () => hang({ properties: { tier: 'gold' } }),
      },
      guard: {
        failuresMax: 2,
        restMs: 1_000,
        monotonicNowMs: () => nowMs,
        // Every wait ends as soon as it begins.
        startTimer: callback => {
          waits.push(callback)
          setImmediate(callback)
          return { cancel: () => {} }
        },
      },
    })
    const hanging = await server.post('/decide?v=3', body)
    assert.equal(hanging.status, 200)
    assert.deepEqual(hanging.json.featureFlags, computable)
    assert.equal(waits.length, 2)

    const resting = await server.post('/decide?v=3', body)
    assert.deepEqual(resting.json.featureFlags, computable)
    assert.equal(askedCount, 2, 'the store is left alone')

    nowMs = 1_001
    isBack = true
    const back = await server.post('/decide?v=3', body)
    assert.equal(back.json.errorsWhileComputingFlags, false, 'one look-up tries, and finds it well')
    assert.equal((back.json.featureFlags as JsonObject)['stored-group'], true)
  })

  it('do not query the store if the request contains everything they need', async t => {
    const server = await startDecideServer(t, { flags, groupTypes, subjects: throwing })
    const answer = await server.post('/decide?v=3', {
      ...body,
      person_properties: { plan: 'pro', city: null },
      group_properties: { company: { tier: 'gold' } },
    })
    assert.equal(answer.json.errorsWhileComputingFlags, false)
    assert.equal((answer.json.featureFlags as JsonObject).stored, false)
    assert.equal((answer.json.featureFlags as JsonObject)['stored-negative'], true)
  })
})
