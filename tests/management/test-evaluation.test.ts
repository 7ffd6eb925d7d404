// `test_evaluation`: the value of a flag for one person, in the format of PostHog's tools.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { startManagement } from '../support/management-api.ts'
import { aGroup, aMapping, aPerson, created } from '../support/values.ts'

const flags = '/api/projects/1/feature_flags/'
const plan = (value: string) => ({ key: 'plan', type: 'person', operator: 'exact', value })

async function start(t: TestContext) {
  const api = await startManagement(t)
  const ada = aPerson({ properties: { plan: 'pro', big: 12345678901234567890n.toString() } })
  await api.commit({
    persons: [created(ada)],
    mappings: [created(aMapping(ada, 'ada'))],
    groupTypes: [{ projectId: 1, name: 'company', index: 0 }],
    groups: [created(aGroup({ key: 'acme', properties: { seats: 5 } }))],
  })
  const make = async (key: string, body: object) => {
    const made = await api.post(flags, { key, ...body })
    return made.id as number
  }
  const test = async (flag: string | number, body: object, key?: string) =>
    api.call('POST', `${flags}${flag}/test_evaluation/`, { body, ...(key === undefined ? {} : { key }) })
  return { api, ada, make, test }
}

describe('a test evaluation', () => {
  it('returns the deciding condition, the result of each filter, and the payload', async t => {
    const { ada, make, test } = await start(t)
    const id = await make('deal', {
      filters: {
        groups: [
          { properties: [plan('free')], rollout_percentage: 40 },
          { properties: [plan('pro')], rollout_percentage: 0 },
          { properties: [plan('pro')], rollout_percentage: 100 },
          { properties: [plan('other')] },
        ],
        payloads: { true: '{"off": 10}' },
      },
    })
    const { status, body } = await test(id, { distinct_id: 'ada' })
    assert.equal(status, 200)
    const { conditions, ...head } = body
    assert.deepEqual(head, {
      ...{ flag_key: 'deal', result: true, reason: 'condition_match', condition_index: 2, payload: '{"off": 10}' },
      ...{ evaluation_distinct_id: 'ada', person_properties: { plan: 'pro', big: '12345678901234567890' } },
    })
    const told = conditions.map((each: Record<string, unknown>) => [
      ...[each.index, each.matched, each.properties_matched, each.rollout_percentage, each.rollout_excluded],
    ])
    assert.deepEqual(told, [
      [0, false, false, 40, false],
      [1, false, true, 0, true],
      [2, true, true, 100, false],
      [3, false, undefined, 100, false],
    ])
    assert.deepEqual(conditions[0].properties, [
      { ...plan('free'), actual_value: 'pro', matched: false, explanation: 'Does not match.' },
    ])
    assert.match(conditions[0].explanation, /plan exact free does not match/)
    assert.match(conditions[1].explanation, /rollout of 0 % excludes the subject/)
    assert.equal(conditions[2].properties[0].matched, true)
    assert.match(conditions[3].properties[0].explanation, /Not evaluated/)
    const byPerson = await test('deal', { person_id: ada.uuid })
    assert.deepEqual(byPerson.body, body)
  })

  it('accepts an unknown person, a group and a flag with variants', async t => {
    const { make, test } = await start(t)
    const half = (key: string) => ({ key, rollout_percentage: 50 })
    await make('ab', { filters: { groups: [{}], multivariate: { variants: [half('a'), half('b')] } } })
    await make('seats', {
      filters: {
        aggregation_group_type_index: 0,
        groups: [{ properties: [{ key: 'seats', type: 'group', group_type_index: 0, operator: 'gt', value: 3 }] }],
      },
    })
    const unknown = await test('ab', { distinct_id: 'nobody' })
    assert.match(unknown.body.result, /^[ab]$/)
    assert.deepEqual(unknown.body.person_properties, {})
    const inGroup = await test('seats', { distinct_id: 'ada', groups: { company: 'acme' } })
    assert.deepEqual([inGroup.body.result, inGroup.body.conditions[0].properties[0].actual_value], [true, 5])
    const without = await test('seats', { distinct_id: 'ada', groups: null })
    assert.deepEqual([without.body.result, without.body.reason], [false, 'no_group_type'])
    assert.match(without.body.conditions[0].explanation, /the request has no group of this type/)
  })

  it('replaces stored properties by sent properties, as /flags does', async t => {
    const { make, test } = await start(t)
    await make('deal', { filters: { groups: [{ properties: [plan('free')] }] } })
    const stored = await test('deal', { distinct_id: 'ada' })
    const { body } = await test('deal', { distinct_id: 'ada', person_properties: { plan: 'free', n: 1 } })
    assert.deepEqual([stored.body.result, body.result], [false, true])
    assert.deepEqual(body.person_properties, { big: '12345678901234567890', plan: 'free', n: 1 })
  })

  it('answers in the same way as /flags, so that an inactive flag is off even for persons who match', async t => {
    const { api, make, test } = await start(t)
    const id = await make('off', { active: false, filters: { groups: [{ properties: [plan('pro')] }] } })
    const { body } = await test(id, { distinct_id: 'ada' })
    assert.deepEqual([body.result, body.reason, body.condition_index], [false, 'flag_disabled', null])
    assert.deepEqual([body.conditions[0].matched, body.conditions[0].properties_matched], [false, true])
    await make('sealed', { filters: { groups: [{}] }, has_encrypted_payloads: true })
    const sealed = await test('sealed', { distinct_id: 'ada' })
    assert.deepEqual([sealed.body.result, sealed.body.reason], [null, 'encrypted_payloads'])
    await api.call('DELETE', `${flags}${id}/`)
    assert.equal((await test(id, { distinct_id: 'ada' })).status, 404)
  })

  it('rejects invalid requests, and keys without access to persons', async t => {
    const { api, make, test } = await start(t)
    await make('deal', { filters: { groups: [{}] } })
    const refused: [object, number, string, string | null][] = [
      [{}, 400, 'required', 'distinct_id'],
      [{ distinct_id: '' }, 400, 'required', 'distinct_id'],
      [{ distinct_id: 'ada', person_id: 'x' }, 400, 'invalid_input', 'person_id'],
      [{ person_id: '0195a000-0000-7000-8000-0000000000ff' }, 404, 'not_found', null],
      [{ person_id: '7' }, 404, 'not_found', null],
      [{ distinct_id: 'ada', timestamp: '2026-01-01T00:00:00Z' }, 400, 'invalid_input', 'timestamp'],
      [{ distinct_id: 'ada', groups: 'company' }, 400, 'invalid', 'groups'],
      [{ distinct_id: 'ada', at: '-7d' }, 400, 'invalid_input', 'at'],
    ]
    for (const [body, status, code, attr] of refused) {
      const answer = await test('deal', body)
      assert.deepEqual([answer.status, answer.body.code, answer.body.attr], [status, code, attr], JSON.stringify(body))
    }
    assert.equal((await test('deal', { distinct_id: 'ada', timestamp: null })).status, 200)
    const key = await api.addKey(['feature_flag:read'])
    assert.equal((await test('deal', { distinct_id: 'ada' }, key)).status, 403)
    const persons = await api.addKey(['feature_flag:read', 'person:read'])
    assert.equal((await test('deal', { distinct_id: 'ada' }, persons)).status, 200)
  })
})
