import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fieldOf, fieldsOf } from '../support/fields-of.ts'
import { type ManagementApi, startManagement } from '../support/management-api.ts'

const experiments = '/api/projects/1/experiments/'
const flags = '/api/projects/1/feature_flags/'

const create = (api: ManagementApi, body: object) => api.post(experiments, body)

async function hasExperiment(api: ManagementApi, key: string): Promise<boolean | undefined> {
  return (await api.management.findFlag(1, key))?.hasExperiment
}

describe('experiments', () => {
  it('create a flag with two variants if there is none, and the flag is off until they start', async t => {
    const api = await startManagement(t)
    const metrics = [{ kind: 'ExperimentMetric', name: 'sign-ups', weight: 1.5 }]
    const draft = await create(api, { name: 'Button', feature_flag_key: 'button', description: 'Red?', metrics })
    assert.deepEqual([draft.id, draft.feature_flag_key, draft.start_date], [1, 'button', null])
    assert.deepEqual([draft.description, draft.metrics, draft.parameters], ['Red?', metrics, {}])
    assert.deepEqual(draft.feature_flag.filters.multivariate.variants, [
      { key: 'control', rollout_percentage: 50 },
      { key: 'test', rollout_percentage: 50 },
    ])
    assert.equal(draft.feature_flag.active, false)
    assert.equal(await hasExperiment(api, 'button'), true)
    const running = await api.patch(`${experiments}1/`, { start_date: '2026-05-01T00:00:00Z' })
    assert.equal(running.start_date, '2026-05-01T00:00:00.000Z')
    assert.deepEqual([running.feature_flag.active, running.description], [true, 'Red?'])
    await api.patch(`${flags}button/`, { active: false })
    const ended = await api.patch(`${experiments}1/`, { end_date: '2026-06-01T00:00:00Z' })
    assert.equal(ended.feature_flag.active, false, 'only a first start touches the flag')
  })

  it('create the variants that their parameters name', async t => {
    const api = await startManagement(t)
    const variants = ['control', 'red', 'blue', 'green'].map(key => ({ key, rollout_percentage: 25 }))
    const body = { name: 'Colours', feature_flag_key: 'colour', parameters: { feature_flag_variants: variants } }
    assert.deepEqual((await create(api, body)).feature_flag.filters.multivariate.variants, variants)
  })

  it('create and change their flag as `feature_flag` says', async t => {
    const api = await startManagement(t)
    const split = (...shares: number[]) => ({
      variants: shares.map((rollout_percentage, index) => ({ key: `v${index}`, rollout_percentage })),
    })
    const filters = { multivariate: split(34, 33, 33), groups: [{ properties: [], rollout_percentage: 20 }] }
    const feature_flag = { filters, ensure_experience_continuity: true }
    const made = await create(api, { name: 'Thirds', feature_flag_key: 'thirds', feature_flag })
    assert.deepEqual(made.feature_flag.filters, filters)
    assert.equal(made.feature_flag.ensure_experience_continuity, true)
    const patch = (body: object) => api.call('PATCH', `${experiments}1/`, { body })
    const echoed = await patch({ ...made, name: 'Same' })
    assert.deepEqual([echoed.status, echoed.body.feature_flag.version], [200, 1], 'what comes back changes nothing')
    const halves = await patch({ feature_flag: { filters: { multivariate: split(50, 50) } } })
    assert.deepEqual(halves.body.feature_flag.filters, { ...filters, multivariate: split(50, 50) })
    await patch({ start_date: '2026-05-01T00:00:00Z' })
    const changed = { feature_flag: { filters: { groups: [{ properties: [], rollout_percentage: 50 }] } } }
    const half = { feature_flag: { filters: { multivariate: split(50) } }, update_feature_flag_params: true }
    await api.refuses(
      'PATCH',
      `${experiments}1/`,
      [changed, 'feature_flag'],
      [{ feature_flag: { active: false } }, 'feature_flag.active'],
      [{ feature_flag: { id: 99 } }, 'feature_flag.id'],
      [half, 'feature_flag.filters.multivariate.variants'],
      [{ feature_flag_key: 'other' }, 'feature_flag_key'],
    )
    const running = await patch({ ...changed, update_feature_flag_params: true })
    assert.equal(running.body.feature_flag.filters.groups[0].rollout_percentage, 50)
    await api.refuses('POST', experiments, [{ name: 'Two', feature_flag_key: 'thirds', feature_flag }, 'feature_flag'])
  })

  it('can be created from another experiment’s JSON with a new name and key', async t => {
    const api = await startManagement(t)
    const draft = await create(api, { name: 'Draft', feature_flag_key: 'draft' })
    const again = (one: typeof draft, key: string, more: object = {}) => {
      const feature_flag = { ...one.feature_flag, key, ...more }
      return { ...one, name: key, feature_flag_key: key, feature_flag }
    }
    await api.refuses(
      'POST',
      experiments,
      [again(draft, 'other', { key: 'draft' }), 'feature_flag.key'],
      [again(draft, 'other', { active: true }), 'feature_flag.active'],
    )
    const running = await create(api, { name: 'Runs', feature_flag_key: 'runs', start_date: '2026-05-01' })
    const paused = await api.post(`${experiments}${running.id}/pause/`)
    for (const [one, status] of [
      [draft, 'draft'],
      [running, 'running'],
      [paused, 'paused'],
    ] as const) {
      const made = await create(api, again(one, `${status}-again`))
      assert.equal(made.status, status)
      assert.deepEqual(made.feature_flag.filters, one.feature_flag.filters)
    }
  })

  it('change their flag when their parameters change, but not when these are sent back unchanged', async t => {
    const api = await startManagement(t)
    const variants = (share: number) => [
      { key: 'control', rollout_percentage: share },
      { key: 'test', rollout_percentage: 100 - share },
    ]
    const parameters = { feature_flag_variants: variants(30), rollout_percentage: 40 }
    const made = await create(api, { name: 'Old', feature_flag_key: 'old', parameters })
    assert.deepEqual(made.feature_flag.filters, {
      groups: [{ properties: [], rollout_percentage: 40 }],
      multivariate: { variants: variants(30) },
    })
    const filters = { ...made.feature_flag.filters, multivariate: { variants: variants(60) } }
    await api.patch(`${flags}old/`, { filters })
    const echoed = await api.patch(`${experiments}1/`, { name: 'New', parameters })
    assert.deepEqual(echoed.feature_flag.filters, filters)
    const body = { parameters: { ...parameters, feature_flag_variants: variants(70) } }
    const changed = await api.patch(`${experiments}1/`, body)
    assert.deepEqual(changed.feature_flag.filters.multivariate.variants, variants(70))
  })

  it('set their flag’s payloads and continuity by parameters, and store payloads in the flag only', async t => {
    const api = await startManagement(t)
    const settings = { ensure_experience_continuity: true, minimum_detectable_effect: 5 }
    const parameters = (payloads: unknown) => ({ ...settings, feature_flag_payloads: payloads })
    const body = { name: 'Old', feature_flag_key: 'old', parameters: parameters({ test: '"one"' }) }
    const made = await create(api, body)
    assert.deepEqual(made.feature_flag.filters.payloads, { test: '"one"' })
    assert.deepEqual([made.feature_flag.ensure_experience_continuity, made.parameters], [true, settings])
    const patch = (sent: object) => api.call('PATCH', `${experiments}1/`, { body: sent })
    const changed = await patch({ parameters: parameters({ test: '"two"' }) })
    assert.deepEqual(changed.body.feature_flag.filters.payloads, { test: '"two"' })
    await patch({ start_date: '2026-05-01T00:00:00Z' })
    const continuity = (ensure_experience_continuity: unknown) => ({ ...settings, ensure_experience_continuity })
    const odd = { parameters: parameters(['a']), update_feature_flag_params: true }
    await api.refuses(
      'PATCH',
      `${experiments}1/`,
      [{ parameters: parameters({ test: '"three"' }) }, 'feature_flag'],
      [{ parameters: continuity(false) }, 'feature_flag'],
      [{ parameters: continuity('yes') }, 'parameters.ensure_experience_continuity'],
      [odd, 'parameters.feature_flag_payloads'],
    )
    const same = await patch({ parameters: parameters({ test: '"two"' }) })
    const nothing = await patch({ parameters: parameters({}) })
    assert.deepEqual([same.status, nothing.status], [200, 200])
    assert.deepEqual(nothing.body.feature_flag.filters.payloads, { test: '"two"' })
  })

  it('link an existing flag, and keep the flag’s settings', async t => {
    const api = await startManagement(t)
    const variants = [
      { key: 'a', rollout_percentage: 30 },
      { key: 'b', rollout_percentage: 70 },
    ]
    const filters = { groups: [{ properties: [], rollout_percentage: 20 }], multivariate: { variants } }
    const given = await api.post(flags, { key: 'mine', filters })
    const taken = await create(api, { name: 'Mine', feature_flag_key: 'mine', start_date: '2026-05-01' })
    assert.deepEqual([taken.feature_flag.id, taken.feature_flag.version], [given.id, 2])
    assert.deepEqual(taken.feature_flag.filters, filters)
    assert.equal(await hasExperiment(api, 'mine'), true)
  })

  it('reject flags without variants, and invalid keys and variants', async t => {
    const api = await startManagement(t)
    await api.post(flags, { key: 'plain' })
    const one = { feature_flag_variants: [{ key: 'only', rollout_percentage: 100 }] }
    const wrong = { feature_flag_variants: [{ key: 'a', rollout_percentage: 50 }] }
    await api.refuses(
      'POST',
      experiments,
      [{ name: 'x', feature_flag_key: 'plain' }, 'feature_flag_key'],
      [{ name: 'x', feature_flag_key: 'no spaces' }, 'feature_flag_key'],
      [{ name: 'x' }, 'feature_flag_key'],
      [{ feature_flag_key: 'x' }, 'name'],
      [{ name: 'x', feature_flag_key: 'x', parameters: one }, 'parameters.feature_flag_variants'],
      [{ name: 'x', feature_flag_key: 'x', parameters: wrong }, 'parameters.feature_flag_variants'],
      [{ name: 'x', feature_flag_key: 'x', end_date: 'never' }, 'end_date'],
    )
    assert.equal((await api.get(experiments)).count, 0)
    assert.equal(await hasExperiment(api, 'plain'), false)
    assert.equal((await api.get(flags)).count, 1)
  })

  it('leave their flag marked as having an experiment until its last experiment is deleted', async t => {
    const api = await startManagement(t)
    const first = await create(api, { name: 'One', feature_flag_key: 'shared' })
    const second = await create(api, { name: 'Two', feature_flag_key: 'shared' })
    assert.equal((await api.call('DELETE', `${experiments}${first.id}/`)).status, 204)
    assert.equal(await hasExperiment(api, 'shared'), true)
    const deleted = await api.patch(`${experiments}${second.id}/`, { deleted: true })
    assert.equal(deleted.deleted, true)
    assert.equal(await hasExperiment(api, 'shared'), false)
    assert.equal((await api.call('GET', `${experiments}${second.id}/`)).status, 404)
    assert.equal((await create(api, { name: 'Three', feature_flag_key: 'third' })).id, 3, 'no id is given twice')
  })

  it('are listed on their flag, like early access features', async t => {
    const api = await startManagement(t)
    await create(api, { name: 'One', feature_flag_key: 'button' })
    await create(api, { name: 'Two', feature_flag_key: 'button' })
    const feature = await api.post('/api/projects/1/early_access_feature/', { name: 'Search', stage: 'beta' })
    await api.post(flags, { key: 'alone' })
    const listed = await api.get(flags)
    assert.deepEqual(fieldsOf(listed.results, 'key', 'experiment_set'), [
      ['alone', []],
      ['search', []],
      ['button', [1, 2]],
    ])
    assert.deepEqual(fieldOf(listed.results[1].features, 'id'), [feature.id])
    await api.call('DELETE', `${experiments}1/`)
    assert.deepEqual((await api.get(`${flags}button/`)).experiment_set, [2])
    const renamed = await api.patch(`${flags}search/`, { name: 'Renamed' })
    assert.equal(renamed.features[0].name, 'Search')
  })

  it('are listed newest first, in their own project', async t => {
    const api = await startManagement(t)
    await create(api, { name: 'One', feature_flag_key: 'one' })
    await create(api, { name: 'Two', feature_flag_key: 'two' })
    const body = await api.get(experiments)
    assert.deepEqual(fieldOf(body.results, 'name'), ['Two', 'One'])
    await api.post('/api/projects/', { name: 'Second' })
    assert.equal((await api.get('/api/projects/2/experiments/')).count, 0)
  })
})
