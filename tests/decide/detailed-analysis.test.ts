import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { startDecideServer } from '../support/decide-server.ts'

const plan = (value: string) => [{ key: 'plan', type: 'person', value }]
const flags: JsonObject[] = [
  {
    id: 1,
    key: 'beta',
    filters: {
      groups: [
        { properties: plan('secret-plan'), rollout_percentage: 100 },
        { properties: [], rollout_percentage: 100, aggregation_group_type_index: 0 },
        { properties: plan('pro'), rollout_percentage: 0 },
        { properties: plan('pro'), rollout_percentage: 100 },
        { properties: [], rollout_percentage: 100 },
      ],
    },
  },
  { id: 2, key: 'none', filters: { groups: [] } },
  {
    id: 3,
    key: 'failed',
    filters: { groups: [{ properties: [{ key: 'id', type: 'cohort', value: 99 }], rollout_percentage: 100 }] },
  },
]
const body = { token: 'phc_test', distinct_id: 'ada', person_properties: { plan: 'pro' } }

describe('detailed_analysis', () => {
  it('reports the outcome of every condition set, and nothing about its filters', async t => {
    const server = await startDecideServer(t, { flags, groupTypes: { 0: 'company' } })
    const plain = (await server.post('/flags?v=2', body)).json.flags as Record<string, JsonObject>
    const answer = await server.post('/flags?v=2&detailed_analysis=true', body)
    const detailed = answer.json.flags as Record<string, JsonObject>
    const conditions = Object.fromEntries(
      Object.entries(detailed).map(([key, { conditions: list, ...rest }]) => {
        assert.deepEqual(rest, plain[key], 'the rest of the answer stays as it is')
        return [key, list]
      }),
    )
    const missed = { code: 'no_condition_match', description: 'No matching condition set' }
    assert.deepEqual(conditions.beta, [
      { condition_index: 0, matched: false, reason: missed },
      { condition_index: 1, matched: false, reason: { code: 'no_group_type', description: 'No group type' } },
      {
        condition_index: 2,
        matched: false,
        reason: { code: 'out_of_rollout_bound', description: 'Out of rollout bound' },
      },
      {
        condition_index: 3,
        matched: true,
        reason: { code: 'condition_match', description: 'Matched condition set 4' },
      },
      { condition_index: 4, matched: false, reason: null },
    ])
    assert.deepEqual(conditions.none, [])
    assert.deepEqual(conditions.failed, [{ condition_index: 0, matched: false, reason: null }])
    assert.ok(!answer.text.includes('secret-plan'))
  })

  it('changes nothing if the parameter is absent or false, or if the answer format has no details', async t => {
    const server = await startDecideServer(t, { flags })
    for (const path of ['/flags?v=2', '/flags?v=2&detailed_analysis=0', '/flags?v=1&detailed_analysis=1']) {
      assert.ok(!(await server.post(path, body)).text.includes('conditions'), path)
    }
    assert.match((await server.post('/decide?v=4&detailed_analysis', body)).text, /"conditions":\[/)
  })
})
