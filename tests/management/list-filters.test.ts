// Filters of lists: PostHog's filters are supported, and an unsupported parameter is rejected, since a list that ignores
// a filter returns more than was requested.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type ManagementApi, startManagement } from '../support/management-api.ts'

const project = '/api/projects/1'

/** The values of a field in a list, in its order. */
async function listed(api: ManagementApi, path: string, field = 'key'): Promise<unknown[]> {
  const body = await api.get(`${project}/${path}`)
  assert.equal(body.count, body.results.length)
  return body.results.map((row: Record<string, unknown>) => row[field])
}

async function made(api: ManagementApi, path: string, body: object, key?: string): Promise<Record<string, unknown>> {
  const answer = await api.call('POST', `${project}/${path}/`, { body, ...(key === undefined ? {} : { key }) })
  assert.equal(answer.status, 201, answer.text)
  return answer.body
}

const variants = (...percentages: number[]) => ({
  multivariate: {
    variants: percentages.map((rollout_percentage, index) => ({
      key: index === 0 ? 'control' : `v${index}`,
      rollout_percentage,
    })),
  },
})

it('every endpoint rejects unknown query parameters', async t => {
  const api = await startManagement(t)
  assert.ok(api.routes.length > 150)
  for (const { method, path } of api.routes) {
    const address = `${path.replaceAll(/:\w+/g, '1')}/?no_such_parameter=1`
    const { status, body } = await api.call(method, address)
    const told = [status, body?.type, body?.code, body?.attr]
    assert.deepEqual(told, [400, 'validation_error', 'invalid_input', 'no_such_parameter'], `${method} ${address}`)
  }
  const known = 'Unknown parameter created_after. Known parameters: limit, offset, group_type_index, search, group_key.'
  const after = 'created_after=2026-01-01'
  await api.refuses('GET', `${project}/groups/`, [after, 'created_after', 'invalid_input', known])
  await api.refuses('GET', `${project}/persons/`, ['format=csv', 'format'])
})

describe('flags', () => {
  async function withFlags(t: TestContext): Promise<ManagementApi> {
    const api = await startManagement(t)
    const other = await api.addKey(['feature_flag:write', 'experiment:write'])
    await made(api, 'feature_flags', { key: 'Plain', tags: ['a', 'b'], evaluation_runtime: 'server' })
    await made(api, 'feature_flags', { key: 'split', tags: ['b'], filters: { groups: [], ...variants(50, 50) } }, other)
    await made(api, 'feature_flags', { key: 'config', is_remote_configuration: true, active: false }, other)
    await made(api, 'experiments', { name: 'X', feature_flag_key: 'tried' })
    return api
  }

  it('are filtered by key, type and state', async t => {
    const api = await withFlags(t)
    const config = await api.get(`${project}/feature_flags/config/`)
    const plain = await api.get(`${project}/feature_flags/Plain/`)
    const authors = [config.created_by.id, plain.created_by.id]
    const me = await api.get('/api/users/@me/')
    for (const [query, keys] of [
      ['', ['tried', 'config', 'split', 'Plain']],
      ['key=plain', ['Plain']],
      ['key=plai', []],
      ['type=boolean', ['config', 'Plain']],
      ['type=multivariant', ['tried', 'split']],
      ['type=experiment', ['tried']],
      ['type=remote_config', ['config']],
      ['type=multivariant&active=true', ['split']],
      ['eligible_for_experiment=true', ['tried', 'split']],
      [`tags=${encodeURIComponent('["a","none"]')}`, ['Plain']],
      [`excluded_tags=${encodeURIComponent('["a"]')}`, ['tried', 'config', 'split']],
      [`excluded_properties=${encodeURIComponent('["tried","split"]')}`, ['config', 'Plain']],
      ['evaluation_runtime=server', ['Plain']],
      ['has_evaluation_contexts=true', []],
      ['has_evaluation_tags=true', []],
      ['has_evaluation_contexts=false&search=pl', ['split', 'Plain']],
      [`created_by_id=${authors[0]}`, ['config', 'split']],
      [`created_by_id=${authors.join(',')}`, ['tried', 'config', 'split', 'Plain']],
      [`created_by_id=${encodeURIComponent(JSON.stringify([authors[1]]))}`, ['tried', 'Plain']],
      [`created_by_id=${me.id}`, ['tried', 'Plain']],
      ['created_by_id=1', []],
    ] as const)
      assert.deepEqual(await listed(api, `feature_flags/?${query}`), keys, query)
    const first = await api.get(`${project}/feature_flags/?type=boolean&limit=1`)
    assert.deepEqual([first.count, first.results[0].key], [2, 'config'])
    const second = await api.get(first.next.slice(api.url.length))
    assert.deepEqual([second.results[0].key, second.next], ['Plain', null])
    for (const query of ['type=', 'type=other', 'tags=a', 'created_by_id=ada', 'key=', 'order=key'])
      assert.equal((await api.call('GET', `${project}/feature_flags/?${query}`)).status, 400, query)
  })

  it('are not listed if a survey created them', async t => {
    const api = await startManagement(t)
    const linked = await made(api, 'feature_flags', { key: 'linked' })
    const survey = {
      ...{ name: 'S', type: 'popover', linked_flag_id: linked.id },
      targeting_flag_filters: { groups: [{ properties: [], rollout_percentage: 50 }] },
    }
    await made(api, 'surveys', survey)
    assert.deepEqual(await listed(api, 'feature_flags/'), ['linked'])
    assert.deepEqual(await listed(api, 'feature_flags/?search=survey'), [])
    assert.deepEqual(await listed(api, 'feature_flags/?type=boolean'), ['linked'])
  })
})

it('surveys are filtered by status, type, ids, author and description', async t => {
  const api = await startManagement(t)
  const other = await api.addKey(['survey:write'])
  const questions = [{ type: 'open', question: 'Why?' }]
  const dates = { start_date: '2026-04-01T00:00:00Z', questions }
  const draft = await made(api, 'surveys', { name: 'Draft', type: 'popover', description: 'Say "Ünder" 100%' })
  const running = await made(api, 'surveys', { name: 'Running', type: 'api', ...dates }, other)
  await made(api, 'surveys', { name: 'Over', type: 'widget', ...dates, end_date: '2026-04-02T00:00:00Z' })
  const author = (running.created_by as { id: number }).id
  for (const [query, names] of [
    ['status=draft', ['Draft']],
    ['status=running', ['Running']],
    ['status=complete', ['Over']],
    ['type=api', ['Running']],
    [`ids=${draft.id},%20${String(running.id).toUpperCase()}`, ['Draft', 'Running']],
    [`created_by=${author}`, ['Running']],
    ['created_by=1', []],
    [`search=${encodeURIComponent('SAY "Ünder" 100%')}`, ['Draft']],
    ['search=why', []],
    ['search=r', ['Draft', 'Running', 'Over']],
  ] as const)
    assert.deepEqual((await listed(api, `surveys/?${query}`, 'name')).toSorted(), names.toSorted(), query)
  const wrong = [
    'status=active',
    'type=email',
    'ids=1',
    `ids=%5B%22${draft.id}%22%5D`,
    'ids=',
    'created_by=ada',
    'order=x',
  ]
  for (const query of wrong) assert.equal((await api.call('GET', `${project}/surveys/?${query}`)).status, 400, query)
})

it('lists of experiments accept the filters and orders of PostHog’s tools, and omit archived ones by default', async t => {
  const api = await startManagement(t)
  const other = await api.addKey(['experiment:write'])
  const started = { start_date: '2026-04-01T00:00:00Z' }
  const draft = await made(api, 'experiments', { name: 'b draft', feature_flag_key: 'one' }, other)
  await made(api, 'experiments', { name: 'a runs', feature_flag_key: 'two', ...started })
  await made(api, 'experiments', {
    name: 'c over',
    feature_flag_key: 'three',
    ...started,
    end_date: '2026-04-02T00:00:00Z',
  })
  await made(api, 'experiments', { name: 'd paused', feature_flag_key: 'four', start_date: '2026-04-03T00:00:00Z' })
  const filed = await made(api, 'experiments', { name: 'filed', feature_flag_key: 'five', archived: true })
  await api.patch(`${project}/feature_flags/four/`, { active: false })
  const flagId = (draft.feature_flag as { id: number }).id
  for (const [query, names] of [
    ['', ['d paused', 'c over', 'a runs', 'b draft']],
    ['archived=true', [filed.name]],
    ['status=draft', ['b draft']],
    ['status=running', ['a runs']],
    ['status=paused', ['d paused']],
    ['status=complete', ['c over']],
    ['status=all&search=R', ['c over', 'a runs', 'b draft']],
    [`feature_flag_id=${flagId}`, ['b draft']],
    [`created_by_id=${(draft.created_by as { id: number }).id}`, ['b draft']],
    ['order=name', ['a runs', 'b draft', 'c over', 'd paused']],
    ['order=-duration', ['a runs', 'd paused', 'c over', 'b draft']],
  ] as const)
    assert.deepEqual(await listed(api, `experiments/?${query}`, 'name'), names, query)
  assert.deepEqual(await listed(api, 'experiments/?order=name', 'status'), ['running', 'draft', 'stopped', 'paused'])
  for (const query of ['event=paid', 'tags=%5B%5D', 'order=flag', 'status=exposure_frozen'])
    assert.equal((await api.call('GET', `${project}/experiments/?${query}`)).status, 400, query)
})

/** The filters that narrow each list. A script with an empty variable asks `?distinct_id=`, and must not get all persons. */
const filters: Readonly<Record<string, readonly string[]>> = {
  '/persons/': ['distinct_id', 'uuid'],
  '/events/': ['event', 'distinct_id', 'person_id', 'uuid', 'after', 'before', 'properties'],
  '/rejected_events/': [
    ...['reason', 'field', 'event', 'distinct_id', 'uuid', 'id', 'lane', 'after', 'before', 'replayed'],
  ],
  '/replay_messages/': ['session_id', 'distinct_id', 'after', 'before'],
  '/events/live/': ['event', 'distinct_id', 'lane', 'properties', 'historical', 'rejected'],
  '/feature_flags/': ['active'],
  '/surveys/': ['archived'],
  '/usage/': ['date_from', 'date_to'],
}

describe('an empty filter', () => {
  it('is rejected with its name in the error, since it would match everything', async t => {
    const api = await startManagement(t)
    for (const [path, names] of Object.entries(filters))
      for (const name of names) {
        await api.refuses('GET', `${project}${path}`, [`${name}=`, name, 'invalid_input', /empty.*omit it/i])
      }
    await api.refuses('GET', `${project}/events/live/`, ['event=seen&event=', 'event'])
  })

  it('is ignored for text search and for paging parameters', async t => {
    const api = await startManagement(t)
    await api.get(`${project}/persons/?search=&limit=&offset=&cursor=`)
    for (const { method, path, operation } of api.routes) {
      if (method !== 'GET' || !('search' in operation.query) || 'deprecated' in operation.query.search!.schema) continue
      const address = `${path.replace(':projectId', '1')}/?search=&group_type_index=0`
      const { body } = await api.call('GET', address.replaceAll(/:\w+/g, '1'))
      assert.notEqual(body.attr, 'search', address)
    }
    await api.get(`${project}/events/?cursor=&orderBy=`)
  })

  it('is treated as missing if the parameter is required', async t => {
    const api = await startManagement(t)
    await api.refuses('GET', `${project}/groups/`, ['group_type_index=', 'group_type_index', 'required'])
  })
})
