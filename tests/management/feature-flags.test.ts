import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { projectFlagsBytesMax } from '#core/flags/definitions/flag.ts'
import { encodeAuthor } from '#wire/management/author.ts'
import { fieldOf } from '../support/fields-of.ts'
import { allScopesAuthor, startManagement } from '../support/management-api.ts'
import { aChange, aNewFlag } from '../support/values.ts'

const path = '/api/projects/1/feature_flags/'
const groups = [{ properties: [{ key: 'plan', type: 'person', value: 'pro' }], rollout_percentage: 50 }]

describe('feature flags', () => {
  it('are created with defaults, and the answer waits until they are served', async t => {
    const api = await startManagement(t)
    const before = api.served.length
    const body = await api.post(path, { key: 'beta', filters: { groups } })
    assert.deepEqual(body, {
      id: 1,
      key: 'beta',
      name: '',
      filters: { groups },
      active: true,
      archived: false,
      deleted: false,
      version: 1,
      ensure_experience_continuity: false,
      bucketing_identifier: null,
      evaluation_runtime: 'all',
      evaluation_contexts: [],
      has_encrypted_payloads: false,
      is_remote_configuration: false,
      tags: [],
      created_at: '2026-05-01T12:00:00.000Z',
      updated_at: '2026-05-01T12:00:00.000Z',
      created_by: encodeAuthor(allScopesAuthor),
      experiment_set: [],
      features: [],
      last_called_at: null,
      status: 'ACTIVE',
    })
    assert.equal(api.served.length, before + 1)
    for (const id of ['1', 'beta']) {
      assert.deepEqual(await api.get(`/api/environments/@current/feature_flags/${id}`), body)
    }
  })

  it('are found by their key, even if it has the maximum length', async t => {
    const api = await startManagement(t)
    const key = 'k'.repeat(400)
    await api.post(path, { key })
    assert.equal((await api.get(`${path}${key}/`)).key, key)
  })

  it('preserve number literals and unusual keys in filters', async t => {
    const api = await startManagement(t)
    const filters =
      '{"groups":[{"properties":[{"key":"__proto__","type":"person","value":[1.0,12345678901234567890,1e2]}],"rollout_percentage":50.0,"constructor":1}],"__proto__":{"a":1}}'
    await api.post(path, `{"key":"raw","filters":${filters}}`)
    for (const address of ['raw/', 'raw/versions/1/']) {
      assert.ok((await api.call('GET', path + address)).text.includes(filters), address)
    }
  })

  it('accept every field, null as the default, and the older name of evaluation contexts', async t => {
    const api = await startManagement(t)
    const body = {
      key: 'full',
      name: 'Everything',
      active: false,
      ensure_experience_continuity: true,
      bucketing_identifier: 'device_id',
      evaluation_runtime: 'server',
      evaluation_contexts: ['checkout'],
      has_encrypted_payloads: true,
      is_remote_configuration: true,
      tags: ['a', 'b'],
    }
    const created = await api.post(path, body)
    assert.deepEqual({ ...created, ...body }, created)
    const patched = await api.patch(`${path}full/`, {
      name: null,
      evaluation_runtime: null,
      ensure_experience_continuity: null,
      evaluation_tags: ['docs'],
      tags: null,
    })
    assert.deepEqual(
      [patched.name, patched.evaluation_runtime, patched.ensure_experience_continuity],
      ['', 'all', false],
    )
    assert.deepEqual([patched.evaluation_contexts, patched.tags, patched.version], [['docs'], [], 2])
  })

  it('get one condition set if they are sent with a top-level rollout percentage', async t => {
    const api = await startManagement(t)
    const body = await api.post(path, { key: 'old', rollout_percentage: 30 })
    assert.deepEqual(body.filters, { groups: [{ properties: [], rollout_percentage: 30 }] })
    const plain = await api.post(path, { key: 'plain' })
    assert.deepEqual(plain.filters, { groups: [{ properties: [] }] })
    await api.refuses('POST', path, [{ key: 'no', rollout_percentage: 130 }, 'filters.groups.0.rollout_percentage'])
  })

  it('are rejected with the path of the mistake if they are invalid, and nothing is stored', async t => {
    const api = await startManagement(t)
    await api.post(path, { key: 'taken' })
    const filter = (over: object) => ({ groups: [{ properties: [{ key: 'a', type: 'person', value: 1, ...over }] }] })
    const variants = (...weights: number[]) => ({
      groups: [],
      multivariate: { variants: weights.map((weight, index) => ({ key: `v${index}`, rollout_percentage: weight })) },
    })
    const condition = 'filters.groups.0'
    await api.refuses(
      'POST',
      path,
      [{}, 'key', 'required'],
      [{ key: 5 }, 'key', 'invalid'],
      [{ key: '' }, 'key', 'invalid_input'],
      [{ key: 'a b' }, 'key', 'invalid_input'],
      [{ key: 'a'.repeat(401) }, 'key', 'invalid_input'],
      [{ key: 'taken' }, 'key', 'unique'],
      [{ key: 'x', active: 'yes' }, 'active', 'invalid'],
      [{ key: 'x', tags: [1] }, 'tags.0', 'invalid'],
      [{ key: 'x', filters: [] }, 'filters', 'invalid'],
      [{ key: 'x', filters: { groups: {} } }, 'filters.groups', 'invalid'],
      [{ key: 'x', evaluation_runtime: 'edge' }, 'evaluation_runtime', 'invalid_input'],
      [{ key: 'x', filters: filter({ operator: 'like' }) }, `${condition}.properties.0.operator`, 'invalid_input'],
      [{ key: 'x', filters: filter({ type: null }) }, `${condition}.properties.0.type`, 'required'],
      [{ key: 'x', filters: filter({ operator: 'regex', value: 'a++' }) }, `${condition}.properties.0.value`],
      [{ key: 'x', filters: { groups: [{ rollout_percentage: 101 }] } }, `${condition}.rollout_percentage`],
      [{ key: 'x', filters: variants(50, 51) }, 'filters.multivariate.variants', 'invalid_input'],
    )
    assert.equal((await api.get(path)).count, 1)
    assert.equal((await api.post(path, { key: 'x' })).id, 2)
  })

  it('are stored without checks with skip_validation, but only for a key with all scopes', async t => {
    const api = await startManagement(t)
    const body = {
      key: 'weird key',
      filters: { groups: [{ properties: [{ key: 'a', operator: 'like', value: '(?=x)' }], rollout_percentage: 300 }] },
    }
    const stored = await api.post(`${path}?skip_validation=true`, body)
    assert.deepEqual(stored.filters, body.filters)
    assert.deepEqual(fieldOf(stored.warnings, 'attr'), [
      'key',
      'filters.groups.0.properties.0.type',
      'filters.groups.0.properties.0.operator',
      'filters.groups.0.rollout_percentage',
    ])
    const patched = await api.patch(`${path}1/?skip_validation=true`, { filters: { groups: 'all' } })
    assert.deepEqual(patched.filters, { groups: 'all' })
    await api.patch(`${path}1/`, { name: 'still weird' })
    const writer = await api.addKey(['feature_flag:write'])
    const refused = await api.call('POST', `${path}?skip_validation=true`, { key: writer, body })
    assert.deepEqual([refused.status, refused.body.code], [403, 'permission_denied'])
  })

  it('increment their version with each change, and reject a change made from an older version', async t => {
    const api = await startManagement(t)
    await api.post(path, { key: 'beta' })
    const second = await api.patch(`${path}beta/`, { name: 'two', version: 1 })
    assert.equal(second.version, 2)
    const stale = await api.call('PATCH', `${path}beta/`, { body: { name: 'other', version: 1 } })
    const { type, code, attr } = stale.body
    assert.deepEqual([stale.status, type, code, attr], [409, 'validation_error', 'conflict', 'version'])
    assert.deepEqual(stale.body.extra, { current_version: 2, sent_version: 1 })
    assert.match(stale.body.detail, /version 2.*version 1/)
    assert.equal((await api.get(`${path}beta/`)).name, 'two')
    assert.equal((await api.patch(`${path}beta/`, { name: 'three' })).version, 3)
  })

  it('keep their version, as cohorts do, if a write or restore changes nothing, and log no activity', async t => {
    const api = await startManagement(t)
    const filters = { groups: [{ properties: [], rollout_percentage: 40, variant: null }], payloads: { true: '"a"' } }
    const made = await api.post(path, { key: 'same', filters, tags: ['a'] })
    const reordered = { payloads: filters.payloads, groups: filters.groups }
    for (const [method, address, body] of [
      ['PATCH', `${path}same/`, {}],
      ['PATCH', `${path}same/`, { active: true, filters: reordered, tags: ['a'], version: 1 }],
      ['PATCH', `${path}same/`, made],
      ['POST', `${path}same/versions/1/restore/`, {}],
    ] as const) {
      const { version, updated_at } = await (method === 'POST' ? api.post : api.patch)(address, body)
      assert.deepEqual([version, updated_at], [1, made.updated_at], `${method} ${address}`)
    }
    assert.equal((await api.call('PATCH', `${path}same/`, { body: { version: 2 } })).status, 409)
    assert.equal((await api.get(`${path}same/activity/`)).count, 1)
    // 40.0 is another literal, and so another definition.
    const literal = { body: '{"filters":{"groups":[{"rollout_percentage":40.0}]}}' }
    assert.equal((await api.call('PATCH', `${path}same/`, literal)).body.version, 2)
    const cohorts = '/api/projects/1/cohorts/'
    const cohort = await api.post(cohorts, { name: 'Staff', is_static: true })
    const echoed = await api.patch(`${cohorts}${cohort.id}/`, cohort)
    assert.equal(echoed.version, 1)
    assert.equal((await api.patch(`${cohorts}${cohort.id}/`, { name: 'All' })).version, 2)
  })

  it('are soft-deleted and free their key', async t => {
    const api = await startManagement(t)
    await api.post(path, { key: 'a' })
    await api.post(path, { key: 'b' })
    assert.equal((await api.call('DELETE', `${path}a/`)).status, 204)
    const patched = await api.patch(`${path}b/`, { deleted: true })
    assert.deepEqual([patched.deleted, patched.version], [true, 2])
    assert.equal((await api.get(path)).count, 0)
    assert.equal((await api.call('GET', `${path}a/`)).status, 404)
    assert.equal((await api.get(`${path}1/`)).deleted, true)
    assert.equal((await api.call('DELETE', `${path}1/`)).status, 404)
    assert.equal((await api.post(path, { key: 'a' })).id, 3)
    await api.refuses('PATCH', `${path}1/`, [{ deleted: false }, 'key', 'unique'])
    assert.equal((await api.patch(`${path}2/`, { deleted: false })).deleted, false)
  })

  it('belong to one project', async t => {
    const api = await startManagement(t)
    await api.post('/api/projects/', { name: 'Second' })
    await api.post(path, { key: 'mine' })
    assert.equal((await api.call('GET', '/api/projects/2/feature_flags/mine/')).status, 404)
    assert.equal((await api.post('/api/projects/2/feature_flags/', { key: 'mine' })).id, 2)
  })

  it('are searched and filtered', async t => {
    const api = await startManagement(t)
    await api.post(path, { key: 'checkout-new' })
    await api.post(path, { key: 'other', name: 'The CHECKOUT', active: false })
    await api.post(path, { key: 'third' })
    const keys = async (query: string) => (await api.get(path + query)).results.map((flag: { key: string }) => flag.key)
    assert.deepEqual(await keys('?search=Checkout'), ['other', 'checkout-new'])
    assert.deepEqual(await keys('?active=false'), ['other'])
    assert.deepEqual(await keys('?active=true&limit=1'), ['third'])
    assert.equal((await api.call('GET', `${path}?active=maybe`)).body.attr, 'active')
  })
})

describe('versions of a flag', () => {
  it('are listed newest first, and each contains the whole flag', async t => {
    const api = await startManagement(t)
    await api.post(path, { key: 'beta', filters: { groups } })
    await api.patch(`${path}beta/`, { name: 'named' })
    const body = await api.get(`${path}beta/versions/?limit=1`)
    assert.equal(body.count, 2)
    assert.deepEqual([body.results[0].version, body.results[0].flag.name], [2, 'named'])
    assert.ok(body.next.includes('offset=1'))
    const first = await api.get(`${path}beta/versions/1/`)
    assert.deepEqual([first.flag.name, first.flag.filters], ['', { groups }])
    for (const version of ['3', '0', 'x']) {
      assert.equal((await api.call('GET', `${path}beta/versions/${version}/`)).status, 404)
    }
  })

  it('can be compared by path, with the values before and after', async t => {
    const api = await startManagement(t)
    await api.post(path, { key: 'beta', filters: { groups } })
    const changed = { groups: [{ properties: [], rollout_percentage: 80 }], payloads: { true: '1' } }
    await api.patch(`${path}beta/`, { filters: changed, active: false })
    const body = await api.get(`${path}beta/versions/1/diff/2/`)
    assert.deepEqual([body.from, body.to], [1, 2])
    assert.deepEqual(body.changes, [
      { path: 'filters.groups.0.properties.0', action: 'deleted', before: groups[0]!.properties[0], after: null },
      { path: 'filters.groups.0.rollout_percentage', action: 'changed', before: 50, after: 80 },
      { path: 'filters.payloads', action: 'created', before: null, after: { true: '1' } },
      { path: 'active', action: 'changed', before: true, after: false },
    ])
    assert.equal((await api.call('GET', `${path}beta/versions/1/diff/9/`)).status, 404)
  })

  it('are restored as a new version, even for deleted flags', async t => {
    const api = await startManagement(t)
    await api.post(path, { key: 'beta', filters: { groups } })
    await api.patch(`${path}beta/`, { key: 'gamma', filters: { groups: [] } })
    await api.call('DELETE', `${path}gamma/`)
    const before = api.served.length
    const body = await api.post(`${path}1/versions/1/restore/`)
    assert.deepEqual([body.version, body.key, body.deleted, body.filters], [4, 'beta', false, { groups }])
    assert.equal(api.served.length, before + 1)
    assert.equal((await api.call('POST', `${path}1/versions/9/restore/`)).status, 404)
    const { results } = await api.get(`${path}1/activity/?limit=3`)
    const told = results.map(({ activity, detail }: Entry) => `${activity} ${detail.version}`)
    assert.deepEqual(told, ['updated 4', 'deleted 3', 'updated 2'])
    assert.equal(results[2].detail.changes[0].path, 'key')
    assert.equal((await api.get(`${path}1/activity/?offset=3`)).results[0].activity, 'created')
  })
})

it('the activity of a project lists every change of its flags with its author and details, newest first', async t => {
  const api = await startManagement(t)
  await api.post(path, { key: 'a' })
  api.clock.advance(1_000)
  await api.post(path, { key: 'b', name: 'B' })
  api.clock.advance(1_000)
  await api.patch(`${path}a/`, { name: 'A' }, await api.addKey(['feature_flag:write']))
  api.clock.advance(1_000)
  await api.call('DELETE', `${path}b/`)
  const body = await api.get(`${path}activity/?limit=3`)
  assert.equal(body.count, 4)
  const told = body.results.map(({ detail, activity, user }: Entry) => [detail.name, activity, user.first_name])
  assert.deepEqual(told, [
    ['b', 'deleted', '*'],
    ['a', 'updated', 'feature_flag:write'],
    ['b', 'created', '*'],
  ])
  assert.deepEqual(body.results[1].detail.changes, [
    { type: 'FeatureFlag', action: 'changed', field: 'name', path: 'name', before: '', after: 'A' },
  ])
  assert.deepEqual((await api.get(`${path}a/activity/?limit=1`)).results, [body.results[1]])
})

interface Entry {
  readonly activity: string
  readonly user: { readonly first_name: string }
  readonly detail: { readonly name: string; readonly version: number }
}

it('flags that would be too large together are refused with the remedy, however they are made', async t => {
  const api = await startManagement(t)
  const filters = { note: 'x'.repeat(projectFlagsBytesMax - 16 * 1024) }
  assert.ok((await api.management.createFlag(aNewFlag({ key: 'large', filters }), aChange())).ok)
  await api.post(path, { key: 'small' })
  const tooLarge = {
    groups: [{ properties: [], rollout_percentage: 0 }],
    payloads: { true: `"${'x'.repeat(16_384)}"` },
  }
  const refused = [null, 'flags_too_large', 'at most 32 MiB together'] as const
  await api.refuses('POST', path, [{ key: 'new', filters: tooLarge }, ...refused])
  await api.refuses('PATCH', `${path}small/`, [{ filters: tooLarge }, ...refused])
  const experiment = { name: 'E', feature_flag_key: 'of-experiment', feature_flag: { filters: tooLarge } }
  await api.refuses('POST', '/api/projects/1/experiments/', [experiment, ...refused])
  await api.patch(`${path}large/`, { active: false })
})
