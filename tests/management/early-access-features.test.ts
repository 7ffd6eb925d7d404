import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type ManagementApi, startManagement } from '../support/management-api.ts'

const features = '/api/projects/1/early_access_feature/'

const create = (api: ManagementApi, body: object) => api.post(features, body)

async function flag(api: ManagementApi, idOrKey: number | string) {
  return await api.get(`/api/projects/1/feature_flags/${idOrKey}/`)
}

describe('early access features', () => {
  it('create a flag, named after the feature, that is on only for persons who opted in', async t => {
    const api = await startManagement(t)
    const feature = await create(api, {
      name: 'Nähere Suche, v2!',
      description: 'Finds more',
      stage: 'beta',
      documentation_url: 'https://docs.example/search',
      payload: { colour: 'red', size: 1.0 },
    })
    const { id, feature_flag, created_at, created_by, ...rest } = feature
    assert.equal(created_by.first_name, '*')
    assert.match(id, /^[0-9a-f-]{36}$/)
    assert.equal(created_at, '2026-05-01T12:00:00.000Z')
    assert.deepEqual(rest, {
      name: 'Nähere Suche, v2!',
      description: 'Finds more',
      stage: 'beta',
      documentation_url: 'https://docs.example/search',
      payload: { colour: 'red', size: 1 },
    })
    assert.equal(feature_flag.key, 'nahere-suche-v2')
    const made = await flag(api, feature_flag.id)
    assert.deepEqual(made.filters, { groups: [{ properties: [], rollout_percentage: 0 }], feature_enrollment: true })
    assert.deepEqual([made.active, made.version], [true, 1])
    assert.equal(api.served.length, 2, 'a project and a feature, each one write')
  })

  it('choose another key for the flag if the first is taken', async t => {
    const api = await startManagement(t)
    for (const expected of ['beta-search', 'beta-search-2', 'beta-search-3'])
      assert.equal((await create(api, { name: 'Beta search', stage: 'beta' })).feature_flag.key, expected)
    assert.equal((await create(api, { name: '測試', stage: 'beta' })).feature_flag.key, 'feature')
    assert.equal((await create(api, { name: '2', stage: 'beta' })).feature_flag.key, 'feature-2')
  })

  it('link an existing flag with a new version, and keep its other settings', async t => {
    const api = await startManagement(t)
    const filters = { groups: [{ properties: [], rollout_percentage: 5 }], payloads: { true: '1' } }
    const given = await api.post('/api/projects/1/feature_flags/', { key: 'mine', filters })
    const feature = await create(api, { name: 'Mine', stage: 'concept', feature_flag_id: given.id })
    assert.equal(feature.feature_flag.id, given.id)
    const after = await flag(api, given.id)
    assert.equal(after.version, 2)
    for (const [feature_flag_id, status] of [
      [given.id, 200],
      [given.id + 1, 400],
    ]) {
      const path = `/api/projects/1/early_access_feature/${feature.id}/`
      assert.equal((await api.call('PATCH', path, { body: { feature_flag_id } })).status, status)
    }
    assert.deepEqual(after.filters, { ...filters, feature_enrollment: true })
  })

  it('reject flags that cannot follow an opt-in, and write nothing', async t => {
    const api = await startManagement(t)
    const flags = '/api/projects/1/feature_flags/'
    const variants = [{ key: 'a', rollout_percentage: 100 }]
    const multivariate = await api.post(flags, { key: 'variants', filters: { groups: [], multivariate: { variants } } })
    const grouped = await api.post(flags, { key: 'groups', filters: { groups: [], aggregation_group_type_index: 0 } })
    const taken = await create(api, { name: 'Taken', stage: 'beta' })
    for (const [id, detail] of [
      [multivariate.id, /variants/],
      [grouped.id, /groups/],
      [taken.feature_flag.id, /Another early access feature/],
      [999, /no feature flag/],
    ] as const) {
      await api.refuses('POST', features, [
        { name: 'x', stage: 'beta', feature_flag_id: id },
        'feature_flag_id',
        undefined,
        detail,
      ])
    }
    assert.equal((await flag(api, taken.feature_flag.id)).version, 1, 'a refused feature changes no flag')
    assert.equal((await api.get(features)).count, 1)
  })

  it('reject invalid stages, names and URLs', async t => {
    const api = await startManagement(t)
    await api.refuses(
      'POST',
      features,
      [{ stage: 'beta' }, 'name', 'required'],
      [{ name: ' ', stage: 'beta' }, 'name', 'invalid_input'],
      [{ name: 'x', stage: 'gamma' }, 'stage', 'invalid_input'],
      [{ name: 'x', stage: 'beta', documentation_url: 'javascript:alert(1)' }, 'documentation_url', 'invalid_input'],
      [{ name: 'x', stage: 'beta', payload: [] }, 'payload', 'invalid'],
    )
  })

  it('follow opt-ins until the feature is archived or deleted', async t => {
    const api = await startManagement(t)
    const { id, feature_flag } = await create(api, { name: 'Search', stage: 'alpha' })
    const change = (body: object) => api.call('PATCH', `${features}${id}/`, { body })
    const beta = await change({ stage: 'beta', description: 'soon' })
    assert.deepEqual([beta.body.stage, beta.body.description, beta.body.name], ['beta', 'soon', 'Search'])
    assert.equal((await flag(api, feature_flag.id)).version, 1, 'a stage that is open as well changes no flag')
    await change({ stage: 'archived' })
    assert.equal('feature_enrollment' in (await flag(api, feature_flag.id)).filters, false)
    await change({ stage: 'general-availability' })
    assert.equal((await flag(api, feature_flag.id)).filters.feature_enrollment, true)
    assert.equal((await api.call('DELETE', `${features}${id}/`)).status, 204)
    const left = await flag(api, feature_flag.id)
    assert.deepEqual(left.filters, { groups: [{ properties: [], rollout_percentage: 0 }] })
    assert.deepEqual([left.deleted, left.version], [false, 4])
    for (const method of ['GET', 'PATCH', 'DELETE'])
      assert.equal((await api.call(method, `${features}${id}/`, method === 'PATCH' ? { body: {} } : {})).status, 404)
  })

  it('can be deleted after their flag was deleted', async t => {
    const api = await startManagement(t)
    const { id, feature_flag } = await create(api, { name: 'Search', stage: 'beta' })
    await api.call('DELETE', `/api/projects/1/feature_flags/${feature_flag.id}/`)
    assert.equal((await api.get(`${features}${id}/`)).feature_flag.deleted, true)
    assert.equal((await api.call('DELETE', `${features}${id}/`)).status, 204)
  })

  it('retry the write if the flag was changed in the meantime', async t => {
    const disturbances: (() => Promise<unknown>)[] = []
    const api = await startManagement(t, { before: { updateResource: () => disturbances.pop()?.() } })
    const { id, feature_flag } = await create(api, { name: 'Search', stage: 'beta' })
    const groups = [{ properties: [], rollout_percentage: 50 }]
    const changed = { body: { filters: { groups, feature_enrollment: true } } }
    disturbances.push(() => api.call('PATCH', `/api/projects/1/feature_flags/${feature_flag.id}/`, changed))
    await api.patch(`${features}${id}/`, { stage: 'archived' })
    assert.deepEqual((await flag(api, feature_flag.id)).filters, { groups }, 'the other change is kept')
  })

  it('do not show an encrypted payload, but keep it', async t => {
    const api = await startManagement(t)
    const filters = { groups: [], payloads: { true: '"secret"' } }
    const body = { key: 'sealed', filters, has_encrypted_payloads: true }
    const sealed = await api.post('/api/projects/1/feature_flags/', body)
    const stored = async () => (await api.management.findFlag(1, 'sealed'))?.filters.payloads
    const before = await stored()
    const feature = await create(api, { name: 'Sealed', stage: 'beta', feature_flag_id: sealed.id })
    assert.deepEqual(feature.feature_flag.filters.payloads, sealed.filters.payloads)
    assert.notDeepEqual(before, sealed.filters.payloads)
    assert.deepEqual(await stored(), before)
  })
})
