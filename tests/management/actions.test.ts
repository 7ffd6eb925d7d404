// What PostHog's tools do by requests of their own where a PATCH or a list says the same.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type ManagementApi, startManagement } from '../support/management-api.ts'
import { aMapping, aPerson, created } from '../support/values.ts'

const project = '/api/projects/1'

const made = (api: ManagementApi, path: string, body: object) => api.post(`${project}/${path}/`, body)

/** Does one thing to a thing; its answer, or the field of the refusal. */
function actions(api: ManagementApi, path: string) {
  return async (name: string, body?: object) => {
    const answer = await api.call('POST', `${project}/${path}/${name}/`, body === undefined ? {} : { body })
    if (answer.status === 400) return answer.body.attr
    assert.ok(answer.status < 300, answer.text)
    return answer.body
  }
}

it('a survey is started and stopped only once', async t => {
  const api = await startManagement(t)
  const { id } = await made(api, 'surveys', {
    name: 'S',
    type: 'popover',
    questions: [{ type: 'open', question: '?' }],
  })
  const run = actions(api, `surveys/${id}`)
  assert.equal(await run('stop'), 'end_date')
  assert.equal((await run('launch')).start_date, '2026-05-01T12:00:00.000Z')
  assert.equal(await run('launch'), 'start_date')
  assert.equal((await run('stop')).end_date, '2026-05-01T12:00:00.000Z')
  assert.equal(await run('stop'), 'end_date')
})

describe('an experiment', () => {
  it('can be started, paused, ended, archived and reset to a draft', async t => {
    const api = await startManagement(t)
    await made(api, 'experiments', { name: 'X', feature_flag_key: 'x' })
    const run = actions(api, 'experiments/1')
    const told = async (name: string, body?: object) => {
      const { status, archived, feature_flag, conclusion } = await run(name, body)
      return [status, archived, feature_flag.active, conclusion]
    }
    assert.equal(await run('pause'), 'status')
    assert.deepEqual(await told('launch'), ['running', false, true, null])
    assert.equal(await run('launch'), 'status')
    assert.equal(await run('archive'), 'status')
    assert.deepEqual(await told('pause'), ['paused', false, false, null])
    assert.deepEqual(await told('resume'), ['running', false, true, null])
    assert.equal(await run('end', { open_cleanup_pr: true }), 'open_cleanup_pr')
    assert.deepEqual(await told('end', { conclusion: 'won' }), ['stopped', false, true, 'won'])
    assert.deepEqual(await told('archive', { disable_feature_flag: true }), ['stopped', true, false, 'won'])
    assert.deepEqual(await told('unarchive'), ['stopped', false, false, 'won'])
    assert.deepEqual(await told('reset'), ['draft', false, false, null])
  })

  it('can ship a variant, and is duplicated with its variants', async t => {
    const api = await startManagement(t)
    const feature_flag = { filters: { groups: [{ properties: [], rollout_percentage: 20 }] } }
    await made(api, 'experiments', { name: 'X', feature_flag_key: 'x', feature_flag, description: 'Why' })
    const run = actions(api, 'experiments/1')
    await run('launch')
    assert.equal(await run('ship_variant', { variant_key: 'none' }), 'variant_key')
    const shipped = await run('ship_variant', { variant_key: 'test', release_to_everyone: true })
    assert.equal(shipped.status, 'stopped')
    assert.deepEqual(shipped.feature_flag.filters, {
      groups: [
        { properties: [], rollout_percentage: 100 },
        { properties: [], rollout_percentage: 20 },
      ],
      multivariate: {
        variants: [
          { key: 'control', rollout_percentage: 0 },
          { key: 'test', rollout_percentage: 100 },
        ],
      },
    })
    const same = await run('duplicate', {})
    assert.deepEqual(
      [same.name, same.status, same.description, same.feature_flag_key],
      ['X (Copy)', 'draft', 'Why', 'x'],
    )
    const other = await run('duplicate', { feature_flag_key: 'y', name: 'Y' })
    assert.deepEqual(other.feature_flag.filters.multivariate, shipped.feature_flag.filters.multivariate)
    assert.deepEqual([other.name, other.feature_flag_key, other.feature_flag.active], ['Y', 'y', false])
  })
})

describe('flags', () => {
  it('can be tagged in one request, and their keys can be looked up by id', async t => {
    const api = await startManagement(t)
    const { id } = await made(api, 'feature_flags', { key: 'a', tags: ['x'] })
    const all = actions(api, 'feature_flags')
    for (const [action, tags, left] of [
      ['add', ['y', 'x'], ['x', 'y']],
      ['remove', ['x'], ['y']],
      ['set', ['z'], ['z']],
    ] as const) {
      const { updated, skipped } = await all('bulk_update_tags', { ids: [id, 99], action, tags })
      assert.deepEqual([updated, skipped.map((each: { id: number }) => each.id)], [[{ id, tags: left }], [99]])
    }
    const { keys, warning } = await all('bulk_keys', { ids: [id, String(id), 99, 'a'] })
    assert.deepEqual(keys, { [id]: 'a' })
    assert.match(warning, /^Not flag ids: a/)
  })

  it('list the flags that depend on them, and explain their value for a given person', async t => {
    const api = await startManagement(t)
    const ada = aPerson({ properties: { plan: 'pro' } })
    await api.commit({ persons: [created(ada)], mappings: [created(aMapping(ada, 'ada'))] })
    const pro = { groups: [{ properties: [{ key: 'plan', type: 'person', value: 'pro' }], rollout_percentage: 100 }] }
    const first = await made(api, 'feature_flags', { key: 'first', filters: pro })
    const test = { key: String(first.id), type: 'flag', value: true, operator: 'flag_evaluates_to' }
    const second = await made(api, 'feature_flags', { key: 'second', filters: { groups: [{ properties: [test] }] } })
    const dependent = await api.get(`${project}/feature_flags/first/dependent_flags/`)
    assert.deepEqual(dependent, [{ id: second.id, key: 'second', name: '' }])
    const reasons = async (query: string) => await api.get(`${project}/feature_flags/evaluation_reasons/?${query}`)
    assert.deepEqual(await reasons('distinct_id=ada'), {
      first: { value: true, evaluation: { reason: 'condition_match', condition_index: 0 } },
      second: { value: true, evaluation: { reason: 'condition_match', condition_index: 0 } },
    })
    const named = `distinct_id=bob&flag_keys=${encodeURIComponent('["second"]')}`
    const off = { value: false, evaluation: { reason: 'no_condition_match', condition_index: 0 } }
    assert.deepEqual(await reasons(named), { second: off })
    assert.deepEqual(await reasons('distinct_id=bob&flag_keys=second&groups={}'), { second: off })
    const mine = async () => {
      const body = await api.get(`${project}/feature_flags/my_flags/?flag_keys=first`)
      return body.map((each: { feature_flag: { key: string }; value: boolean }) => [each.feature_flag.key, each.value])
    }
    assert.deepEqual(await mine(), [['first', false]])
    const me = await api.get('/api/users/@me/')
    await api.commit({ mappings: [created(aMapping(ada, me.distinct_id))] }, 1)
    assert.deepEqual(await mine(), [['first', true]])
  })
})

it('paths with @ are also found when the @ is percent-encoded', async t => {
  const api = await startManagement(t)
  for (const path of ['/api/users/@me/', '/api/organizations/@current/', '/api/projects/@current/feature_flags/']) {
    const plain = await api.get(path)
    const escaped = await api.get(path.replace('@', '%40'))
    assert.deepEqual(escaped, plain, path)
  }
})
