import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startManagement } from '../support/management-api.ts'
import { newPersons } from '../support/values.ts'

const path = '/api/projects/1/feature_flags/'
const plan = { key: 'plan', type: 'person', value: 'pro' }
const everybody = { groups: [{ properties: [], rollout_percentage: 100 }] }

async function start(t: Parameters<typeof startManagement>[0]) {
  const api = await startManagement(t)
  const create = (key: string, filters: object, over: object = {}) => api.post(path, { key, filters, ...over })
  const explain = (flag: string, body: object, key?: string) => api.post(`${path}${flag}/explain/`, body, key)
  return { api, create, explain }
}

describe('the explain endpoint of a flag', () => {
  it('shows the value that each filter was compared with, its source, and the hashed text', async t => {
    const { create, explain } = await start(t)
    const other = await create('other', everybody)
    await create('beta', {
      groups: [
        { properties: [{ key: 'age', type: 'person', operator: 'gt', value: 18 }, plan], rollout_percentage: 50 },
        {
          properties: [
            { key: '$initial_os', type: 'person', value: 'Linux' },
            { key: String(other.id), type: 'flag', operator: 'flag_evaluates_to', value: true },
          ],
          rollout_percentage: 60,
        },
      ],
      multivariate: {
        variants: [
          { key: 'a', rollout_percentage: 30 },
          { key: 'b', rollout_percentage: 70 },
        ],
      },
      payloads: { b: '{"color":"red"}' },
    })
    const body = await explain('beta', { distinct_id: 'ada', person_properties: { age: 'x', $os: 'Linux' } })
    assert.equal(body.reason.description, 'Matched condition set 2')
    assert.deepEqual([body.value, body.payload, body.reason.condition_index], ['b', '{"color":"red"}', 1])
    const [first, second] = body.conditions
    assert.deepEqual(
      [first.filters[0].result, first.filters[0].note],
      ['error', "the property's value is not a number"],
    )
    assert.equal(first.filters[1].result, 'not_evaluated')
    const linux = { source: 'request', value: 'Linux', substitute: '$os' }
    assert.deepEqual([second.filters[0].result, second.filters[0].compared], ['passed', linux])
    assert.deepEqual([second.filters[1].result, second.filters[1].compared.value], ['passed', true])
    assert.deepEqual(second.bucketing, { by: 'distinct_id', identifier: 'ada' })
    assert.deepEqual(second.rollout, { percentage: 60, hash: 0.32677683587503437 })
    assert.deepEqual([body.variant.chosen, body.variant.hash], ['b', 0.8823543462740728])
    assert.deepEqual(body.dependencies[0].key, 'other')
  })

  it('reads the stored person, and shows its values only to keys that may read persons', async t => {
    const { api, create, explain } = await start(t)
    await create('beta', { groups: [{ properties: [plan], rollout_percentage: 100 }] })
    await api.commit(newPersons([{ ids: ['ada'], properties: { plan: 'pro' } }]))
    const limited = await api.addKey(['feature_flag:read'])
    for (const [key, compared] of [
      [undefined, { source: 'stored', value: 'pro', substitute: null }],
      [limited, { source: 'stored', value: null, substitute: null, hidden: true }],
    ] as const) {
      const { value, loaded, conditions } = await explain('beta', { distinct_id: 'ada' }, key)
      assert.deepEqual([value, loaded.person, conditions[0].filters[0].compared], [true, 'found', compared])
    }
    const sent = await explain('beta', { distinct_id: 'ada', person_properties: { plan: 'free' } })
    assert.deepEqual([sent.value, sent.loaded.person], [false, 'not_needed'])
    const alone = await explain('beta', { distinct_id: 'ada', only_use_override_person_properties: true })
    assert.deepEqual([alone.value, alone.loaded.person], [false, 'left_aside'])
  })

  it('lists the conditions of a cohort, including those of cohorts that it refers to', async t => {
    const { api, create, explain } = await start(t)
    const cohort = async (name: string, values: object[]) => {
      const filters = { properties: { type: 'AND', values } }
      return (await api.post('/api/projects/1/cohorts/', { name, filters })).id as number
    }
    const inner = await cohort('inner', [plan])
    const email = { key: 'email', type: 'person', operator: 'icontains', value: '@b.no', negation: true }
    const outer = await cohort('outer', [{ key: 'id', type: 'cohort', value: inner }, email])
    await create('beta', {
      groups: [{ properties: [{ key: 'id', type: 'cohort', value: outer }], rollout_percentage: 100 }],
    })
    const body = await explain('beta', { distinct_id: 'ada', person_properties: { plan: 'pro', email: 'a@b.no' } })
    const [filter] = body.conditions[0].filters
    assert.deepEqual([filter.result, filter.compared.value, filter.cohort.name], ['failed', false, 'outer'])
    assert.deepEqual(
      filter.cohort.leaves.map((leaf: Record<string, unknown>) => [
        leaf.path,
        leaf.type,
        leaf.key,
        leaf.result,
        leaf.negated,
      ]),
      [
        ['AND.0', 'cohort', 'inner', 'passed', undefined],
        ['AND.0.cohort.AND.0', 'person', 'plan', 'passed', undefined],
        ['AND.1', 'person', 'email', 'failed', true],
      ],
    )
  })

  it('explains the value that an inactive, missing, circular, unreadable or deleted flag would have, and why it is not returned', async t => {
    const { api, create, explain } = await start(t)
    const skip = async (key: string, filters: object) =>
      await api.post(`${path}?skip_validation=true`, { key, filters })
    await create('off', everybody, { active: false })
    const off = await explain('off', { distinct_id: 'ada' })
    assert.deepEqual([off.left_out, off.value], ['inactive', true])
    await api.call('DELETE', `${path}off/`)
    assert.equal((await explain('1', { distinct_id: 'ada' })).left_out, 'deleted')

    const tests = (id: number) => ({
      groups: [{ properties: [{ key: String(id), type: 'flag', operator: 'flag_evaluates_to', value: true }] }],
    })
    await skip('lost', tests(99))
    const lost = await explain('lost', { distinct_id: 'ada' })
    assert.deepEqual(
      [lost.reason.code, lost.missing_dependencies],
      ['missing_dependency', [{ id: 99, tested_by: 'lost' }]],
    )
    await skip('ring-a', tests(4))
    await skip('ring-b', tests(3))
    const ring = await explain('ring-a', { distinct_id: 'ada' })
    assert.deepEqual([ring.left_out, ring.dependency_cycle], ['dependency_cycle', ['ring-a', 'ring-b', 'ring-a']])
    await skip('odd', { groups: [{ properties: [{ key: 'a', type: 'person', operator: 'rhymes', value: 1 }] }] })
    const odd = await explain('odd', { distinct_id: 'ada' })
    assert.equal(odd.left_out, 'unreadable')
    assert.match(odd.problems[0], /the operator "rhymes" does not exist/)
  })

  it('resolves relative dates from the requested instant, and rejects the requests that /flags rejects', async t => {
    const { api, create, explain } = await start(t)
    const recent = { key: 'since', type: 'person', operator: 'is_date_after', value: '-7d' }
    await create('beta', { groups: [{ properties: [recent], rollout_percentage: 100 }] })
    const asked = { distinct_id: 'ada', person_properties: { since: '2026-04-01' } }
    assert.equal((await explain('beta', asked)).value, false)
    assert.equal((await explain('beta', { ...asked, at: '2026-04-02T00:00:00Z' })).value, true)
    const refused = async (body: object) => {
      const { status, body: error } = await api.call('POST', `${path}beta/explain/`, { body })
      return [status, error.attr]
    }
    assert.deepEqual(await refused({}), [400, 'distinct_id'])
    assert.deepEqual(await refused({ distinct_id: 'ada', at: 'soon' }), [400, 'at'])
    assert.deepEqual(await refused({ distinct_id: 'ada', groups: 7 }), [400, null])
    assert.equal((await api.call('POST', `${path}nobody/explain/`, { body: asked })).status, 404)
    const other = await api.addKey(['person:read'])
    assert.equal((await api.call('POST', `${path}beta/explain/`, { body: asked, key: other })).status, 403)
  })
})
