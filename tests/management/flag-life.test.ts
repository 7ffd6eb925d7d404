import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fieldOf } from '../support/fields-of.ts'
import { startManagement } from '../support/management-api.ts'

const path = '/api/projects/1/feature_flags/'
const dayMs = 86_400_000
const everybody = { groups: [{ properties: [], rollout_percentage: 100 }] }
const some = { groups: [{ properties: [], rollout_percentage: 40 }] }
const nobody = { groups: [] }

async function start(t: Parameters<typeof startManagement>[0]) {
  const api = await startManagement(t)
  const make = (key: string, over: object = {}) => api.post(path, { key, filters: everybody, ...over })
  const change = (key: string | number, body: object) => api.patch(`${path}${key}/`, body)
  const called = (flagKey: string, daysAgo: number) =>
    api.commit({ calledFlags: [{ projectId: 1, flagKey, calledAtMs: api.clock.nowMs() - daysAgo * dayMs }] })
  const flag = async (key: string | number) => await api.get(`${path}${key}/`)
  const status = async (key: string | number) => await api.get(`${path}${key}/status/`)
  const list = async (query: string) => {
    const { count, results } = await api.get(`${path}?${query}`)
    return `${count}: ${fieldOf(results, 'key').join(' ')}`
  }
  const passDays = (days: number) => api.clock.set(api.clock.nowMs() + days * dayMs)
  return { api, make, change, called, flag, status, list, passDays }
}

describe('the last call of a flag', () => {
  it('is shown on the flag, in lists and after a write, but not in its history', async t => {
    const { api, make, change, called, flag } = await start(t)
    const { id } = await make('beta')
    await called('beta', 3)
    const at = new Date(api.clock.nowMs() - 3 * dayMs).toISOString()
    assert.equal((await flag('beta')).last_called_at, at)
    assert.equal((await api.get(path)).results[0].last_called_at, at)
    const changed = await change('beta', { name: 'new' })
    assert.deepEqual([changed.last_called_at, changed.version], [at, 2])
    const version = await api.get(`${path}${id}/versions/2/`)
    assert.equal('last_called_at' in version.flag || 'status' in version.flag, false)
    const diff = await api.get(`${path}${id}/versions/1/diff/2/`)
    assert.deepEqual(
      diff.changes.map(({ path }: { path: string }) => path).filter((name: string) => /call|status|since/.test(name)),
      [],
    )
    await api.call('DELETE', `${path}beta/`)
    assert.equal((await make('beta')).last_called_at, null)
  })
})

describe('the status of a flag', () => {
  it('comes with a reason in English, even for deleted flags that are found by id', async t => {
    const { api, make, change, called, flag, status, passDays } = await start(t)
    const { id } = await make('beta')
    assert.deepEqual(await status('beta'), { status: 'ACTIVE', reason: 'No call of the flag has been recorded yet.' })
    passDays(31)
    const stale = {
      status: 'STALE',
      reason: 'The flag has been true for all users for 31 days. No call of the flag has been recorded yet.',
    }
    assert.deepEqual([await status('beta'), (await flag('beta')).status], [stale, 'STALE'])
    await called('beta', 0)
    assert.deepEqual(await status('beta'), { status: 'ACTIVE', reason: 'The flag was called within the last day.' })
    passDays(40)
    assert.deepEqual(await status('beta'), { status: 'STALE', reason: 'The flag has not been called for 40 days.' })
    assert.equal((await change('beta', { active: false })).status, 'INACTIVE')
    assert.equal((await change('beta', { archived: true })).status, 'ARCHIVED')
    await api.call('DELETE', `${path}beta/`)
    assert.deepEqual(await status(id), { status: 'DELETED', reason: 'The flag is deleted.' })
    assert.equal((await api.call('GET', `${path}beta/status/`)).status, 404)
  })

  it('depends on the time since the flag’s conditions last changed, not on changes of its name or tags', async t => {
    const { make, change, status, passDays } = await start(t)
    await make('beta')
    passDays(29)
    await change('beta', { name: 'new', tags: ['a'], ensure_experience_continuity: true })
    passDays(2)
    assert.equal((await status('beta')).status, 'STALE')
    await change('beta', { filters: { ...everybody, payloads: { true: '1' } } })
    assert.equal((await status('beta')).status, 'ACTIVE')
    passDays(31)
    assert.equal((await status('beta')).status, 'STALE')
    await change('beta', { active: false })
    await change('beta', { active: true })
    assert.equal((await status('beta')).status, 'ACTIVE')
  })
})

describe('lists of flags filtered by state', () => {
  it('contain active, inactive, stale or archived flags, in pages with the right counts', async t => {
    const { api, make, change, called, list, passDays } = await start(t)
    for (const key of ['a1', 'a2', 'a3']) await make(key)
    await make('some', { filters: some })
    await make('none', { filters: nobody })
    await make('off', { active: false })
    await make('filed')
    await change('filed', { archived: true })
    passDays(31)
    await make('fresh')
    await called('some', 35)
    await called('none', 0)
    await called('a3', 2)
    assert.equal(await list(''), '7: fresh off none some a3 a2 a1')
    assert.equal(await list('active=true'), '6: fresh none some a3 a2 a1')
    assert.equal(await list('active=false'), '1: off')
    assert.equal(await list('active=STALE'), '4: none some a2 a1')
    assert.equal(await list('active=stale&limit=2'), '4: none some')
    assert.equal(await list('active=STALE&limit=2&offset=2'), '4: a2 a1')
    assert.equal(await list('active=STALE&offset=9'), '4: ')
    assert.equal(await list('active=STALE&search=A'), '2: a2 a1')
    assert.equal(await list('archived=true'), '1: filed')
    assert.equal(await list('archived=false'), '7: fresh off none some a3 a2 a1')
    assert.equal(await list('archived=all&limit=3'), '8: fresh filed off')
    assert.equal(await list('archived=all&active=false'), '2: filed off')
    assert.equal(await list('archived=true&active=STALE'), '0: ')
    assert.equal(await list('archived=true&search=off'), '0: ')
    const body = await api.get(`${path}?active=STALE&limit=2`)
    const next = await api.get(body.next.replace(/^https?:\/\/[^/]+/, ''))
    assert.deepEqual([next.count, next.next, fieldOf(next.results, 'status')], [4, null, ['STALE', 'STALE']])
    for (const query of ['active=maybe', 'active=', 'archived=maybe', 'archived='])
      assert.equal((await api.call('GET', `${path}?${query}`)).status, 400, query)
  })
})

describe('an archived flag', () => {
  it('is disabled and not evaluated, and its history shows this', async t => {
    const { api, make, change, flag } = await start(t)
    await make('beta')
    const filed = await change('beta', { archived: true })
    assert.deepEqual([filed.archived, filed.active, filed.version, filed.status], [true, false, 2, 'ARCHIVED'])
    const explained = await api.post(`${path}beta/explain/`, { distinct_id: 'ada' })
    assert.equal(explained.left_out, 'inactive')
    const diff = await api.get(`${path}beta/versions/1/diff/2/`)
    assert.deepEqual(
      diff.changes.filter(({ path }: { path: string }) => path === 'active' || path === 'archived'),
      [
        { path: 'active', action: 'changed', before: true, after: false },
        { path: 'archived', action: 'changed', before: false, after: true },
      ],
    )
    const restored = await api.post(`${path}beta/versions/1/restore/`)
    assert.deepEqual([restored.active, restored.archived], [true, false])
    await api.post(`${path}beta/versions/2/restore/`)
    assert.deepEqual([(await flag('beta')).active, (await flag('beta')).archived], [false, true])
  })

  it('cannot be switched on until it is unarchived, and remains off when it is unarchived', async t => {
    const { api, make, change } = await start(t)
    await make('beta')
    const no = [
      'active',
      undefined,
      'An archived flag cannot be active. Unarchive it first: `archived: false`.',
    ] as const
    await api.refuses('PATCH', `${path}beta/`, [{ archived: true, active: true }, ...no])
    await change('beta', { archived: true })
    await api.refuses('PATCH', `${path}beta/`, [{ active: true }, ...no])
    await api.refuses('POST', path, [{ key: 'x', archived: true, active: true }, ...no])
    const renamed = await change('beta', { name: 'new', archived: null, active: false })
    assert.deepEqual([renamed.name, renamed.archived], ['new', true])
    const back = await change('beta', { archived: false })
    assert.deepEqual([back.archived, back.active], [false, false])
    assert.equal((await change('beta', { active: true })).status, 'ACTIVE')
    await change('beta', { archived: true })
    const both = await change('beta', { archived: false, active: true })
    assert.deepEqual([both.archived, both.active], [false, true])
    const made = await make('filed', { archived: true })
    assert.deepEqual([made.archived, made.active], [true, false])
  })

  it('stays off even when validation is skipped, with a warning', async t => {
    const { api, make } = await start(t)
    await make('beta', { archived: true })
    const body = await api.patch(`${path}beta/?skip_validation=true`, { active: true })
    assert.deepEqual([body.active, body.archived, body.warnings[0].attr], [false, true, 'active'])
  })

  it('is copied as archived, and copying an unarchived flag over it unarchives it', async t => {
    const { api, make, change } = await start(t)
    const { id: other } = await api.post('/api/projects/', { name: 'Other' })
    const copy = async (key: string) => {
      const body = { feature_flag_key: key, from_project: 1, target_project_ids: [other] }
      const copied = await api.post('/api/organizations/@current/feature_flags/copy_flags/', body)
      return copied.success.map(({ archived, active, status }: Record<string, unknown>) => [archived, active, status])
    }
    await make('beta')
    await change('beta', { archived: true })
    assert.deepEqual(await copy('beta'), [[true, false, 'ARCHIVED']])
    await change('beta', { archived: false, active: true })
    assert.deepEqual(await copy('beta'), [[false, true, 'ACTIVE']])
  })

  it('prevents its experiment from starting, but is unarchived when the survey that owns it starts', async t => {
    const { api, change } = await start(t)
    const experiment = { name: 'Test', feature_flag_key: 'button' }
    const made = await api.post('/api/projects/1/experiments/', experiment)
    await change('button', { archived: true })
    const address = `/api/projects/1/experiments/${made.id}/`
    const starting = { body: { start_date: '2026-05-01T00:00:00Z' } }
    await api.refuses('PATCH', address, [starting.body, 'start_date', undefined, 'archived. Unarchive it first'])
    const again = { ...experiment, ...starting.body, name: 'Again' }
    assert.equal((await api.call('POST', '/api/projects/1/experiments/', { body: again })).status, 400)
    await change('button', { archived: false })
    assert.equal((await api.call('PATCH', address, starting)).status, 200)

    const questions = [{ type: 'open', question: 'Why?' }]
    const body = { name: 'Exit', type: 'popover', questions }
    const survey = await api.post('/api/projects/1/surveys/', body)
    const { key } = survey.internal_targeting_flag
    await change(key, { archived: true })
    const started = await api.call('PATCH', `/api/projects/1/surveys/${survey.id}/`, starting)
    assert.equal(started.status, 200, started.text)
    const own = await api.get(`${path}${key}/`)
    assert.deepEqual([own.active, own.archived], [true, false])
  })
})
