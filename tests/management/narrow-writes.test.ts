// Writes that change one thing of a flag: the six actions, over HTTP.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type ManagementApi, type StartManagementOptions, startManagement } from '../support/management-api.ts'
import { aChange } from '../support/values.ts'

const project = '/api/projects/1/'
const path = `${project}feature_flags/`
const some = { properties: [], rollout_percentage: 10 }
const everyone = { properties: [], rollout_percentage: 100 }
const multivariate = {
  variants: [
    { key: 'control', rollout_percentage: 60 },
    { key: 'test', rollout_percentage: 40 },
  ],
}
const onFlag = (id: number) => ({
  properties: [{ key: String(id), type: 'flag', value: true, operator: 'flag_evaluates_to' }],
})

async function start(t: TestContext, options: StartManagementOptions = {}) {
  const api = await startManagement(t, options)
  const make = async (key: string, over: object = {}) => created(api, 'feature_flags', { key, ...over })
  const act = (flag: string | number, action: string, body?: unknown, key?: string) =>
    api.call('POST', `${path}${flag}/${action}/`, {
      ...(body === undefined ? {} : { body }),
      ...(key === undefined ? {} : { key }),
    })
  const flag = async (id: number) => await api.get(`${path}${id}/`)
  return { api, make, act, flag }
}

const created = (api: ManagementApi, at: string, body: object) => api.post(`${project}${at}/`, body)

describe('each narrow write (rollout, switch or archive)', () => {
  it('adds one version and one activity entry, but nothing when it is repeated', async t => {
    const { api, make, act } = await start(t)
    const { id } = await make('a', { filters: { groups: [some], payloads: { true: '1' } } })
    let version = 1
    for (const [action, body, changed] of [
      ['disable', { filters: { groups: [] }, active: true, version: 999 }, { active: false }],
      ['enable', 'not JSON', { active: true }],
      ['archive', [1], { active: false, archived: true }],
      ['unarchive', undefined, { active: false, archived: false }],
      ['set_release_condition_rollout', { condition_index: 0, rollout_percentage: 25 }, {}],
      ['roll_out_to_everyone', {}, { active: false }],
    ] as const) {
      const send = () => act('a', action, action.includes('_') ? { ...(body as object), version } : body)
      const first = await send()
      assert.deepEqual([first.status, first.body.version], [200, version + 1], first.text)
      assert.deepEqual({ ...first.body, ...changed }, first.body)
      version++
      const second = await send()
      assert.deepEqual([second.status, second.body.version], [200, version], second.text)
    }
    const body = await api.get(`${path}${id}/`)
    assert.deepEqual(body.filters, { groups: [everyone, { ...some, rollout_percentage: 25 }], payloads: { true: '1' } })
    const activity = await api.get(`${path}${id}/activity/`)
    assert.deepEqual([activity.count, activity.results[0].activity], [7, 'updated'])
    assert.equal((await api.get(`${path}${id}/versions/`)).count, 7)
    const served = api.served.length
    await act(id, 'enable')
    assert.equal(api.served.length, served + 1, 'the answer waits until the change is served')
  })

  it('requires an existing flag and the method POST', async t => {
    const { api, make, act } = await start(t)
    const { id } = await make('a')
    const { id: deleted } = await make('b')
    assert.equal((await api.call('DELETE', `${path}${deleted}/`)).status, 204)
    for (const [action, body] of [
      ...['enable', 'disable', 'archive', 'unarchive'].map(name => [name, undefined] as const),
      ['set_release_condition_rollout', { condition_index: 0, rollout_percentage: 1, version: 9 }],
      ['roll_out_to_everyone', { version: 9 }],
    ] as const) {
      assert.deepEqual([(await act(99, action, body)).status, (await act('b', action, body)).status], [404, 404])
      const { status, body: refused } = await act(deleted, action, body)
      assert.deepEqual(
        [status, refused.code, refused.detail, refused.attr],
        [400, 'invalid_input', 'This feature flag has been deleted.', null],
        action,
      )
      for (const method of ['GET', 'PATCH', 'DELETE'])
        assert.equal((await api.call(method, `${path}${id}/${action}/`)).status, 405, `${method} ${action}`)
    }
    assert.equal((await api.get(`${path}${id}/`)).version, 1)
  })
})

describe('a rollout', () => {
  it('reports mistakes in the body before a stale version', async t => {
    const { make, act, flag } = await start(t)
    await make('plain', { filters: { groups: [some] } })
    await make('split', { filters: { groups: [some], multivariate } })
    await make('early', { filters: { groups: [some], feature_enrollment: true } })
    const set = 'set_release_condition_rollout'
    const all = 'roll_out_to_everyone'
    const good = { condition_index: 0, rollout_percentage: 5, version: 1 }
    for (const [key, action, body, code, attr, said] of [
      ['plain', set, { ...good, condition_index: undefined }, 'required', 'condition_index', 'required'],
      ['plain', set, { ...good, rollout_percentage: undefined }, 'required', 'rollout_percentage', 'required'],
      ['plain', set, { ...good, version: undefined }, 'required', 'version', 'required'],
      ['plain', set, { ...good, condition_index: '0' }, 'invalid', 'condition_index', 'integer'],
      ['plain', set, { ...good, condition_index: 0.5 }, 'invalid', 'condition_index', 'integer'],
      ['plain', set, { ...good, condition_index: -1 }, 'invalid_input', 'condition_index', '0'],
      ['plain', set, { ...good, rollout_percentage: 101, version: 7 }, 'invalid_input', 'rollout_percentage', '100'],
      ['plain', set, { ...good, rollout_percentage: -1 }, 'invalid_input', 'rollout_percentage', '0'],
      ['plain', set, { ...good, rollout_percentage: null }, 'invalid', 'rollout_percentage', 'number'],
      ['plain', set, { ...good, version: null }, 'invalid', 'version', 'integer'],
      ['plain', set, { ...good, condition_index: 1 }, 'invalid_input', 'condition_index', 'It has 1.'],
      ['plain', set, { ...good, condition_index: 1, version: 7 }, 'conflict', 'version', 'changed since version 7.'],
      ['plain', all, {}, 'required', 'version', 'required'],
      ['plain', all, { version: 1, variant_key: 1 }, 'invalid', 'variant_key', 'string'],
      ['plain', all, { version: 1, variant_key: 'test' }, 'invalid_input', 'variant_key', 'has no variants'],
      ['split', all, { version: 1 }, 'invalid_input', 'variant_key', 'Name one of its variants: control, test'],
      ['split', all, { version: 1, variant_key: 'green' }, 'invalid_input', 'variant_key', "has no variant 'green'"],
      ['split', all, { version: 7, variant_key: 'green' }, 'conflict', 'version', 'changed since version 7.'],
      ['early', all, { version: 1 }, 'invalid_input', null, 'early access'],
    ] as const) {
      const { status, body: refused } = await act(key, action, body)
      const place = `${key} ${action} ${JSON.stringify(body)}`
      assert.deepEqual([status, refused.code, refused.attr], [code === 'conflict' ? 409 : 400, code, attr], place)
      assert.ok(refused.detail.includes(said), `${place}: ${refused.detail}`)
      if (code === 'conflict') assert.deepEqual(refused.extra, { current_version: 1, sent_version: 7 })
    }
    for (const id of [1, 2, 3]) assert.equal((await flag(id)).version, 1)
  })

  it('leaves stored encrypted payloads unchanged', async t => {
    const { api, make, act } = await start(t)
    const { id } = await make('secret', {
      ...{ is_remote_configuration: true, has_encrypted_payloads: true },
      filters: { groups: [some], payloads: { true: '"x"' } },
    })
    const stored = async () => (await api.management.findFlag(1, String(id)))!.filters.payloads
    const before = await stored()
    assert.equal((await act(id, 'roll_out_to_everyone', { version: 1 })).status, 200)
    const body = { condition_index: 1, rollout_percentage: 20, version: 2 }
    const changed = await act(id, 'set_release_condition_rollout', body)
    assert.deepEqual(changed.body.filters, {
      groups: [everyone, { ...some, rollout_percentage: 20 }],
      payloads: { true: '"********* (encrypted)"' },
    })
    assert.deepEqual(await stored(), before)
  })

  it('succeeds for only one of two clients that send the same version', async t => {
    const { api, make, act } = await start(t)
    const { id } = await make('a', { filters: { groups: [some, some] } })
    const bodies = [0, 1].map(index => ({ condition_index: index, rollout_percentage: 50, version: 1 }))
    const answers = await Promise.all(bodies.map(body => act(id, 'set_release_condition_rollout', body)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409])
    const body = await api.get(`${path}${id}/`)
    assert.deepEqual(
      [body.version, body.filters.groups.filter((set: object) => 'rollout_percentage' in set).length],
      [2, 2],
    )
  })
})

describe('flags that depend on each other', () => {
  it('can be disabled only after their dependents, and enabled only after their dependencies', async t => {
    const { api, make, act, flag } = await start(t)
    await make('base')
    const cohort = await created(api, 'cohorts', {
      name: 'Testers',
      filters: { properties: { type: 'AND', values: onFlag(1).properties } },
    })
    await make('direct', { filters: { groups: [onFlag(1)] } })
    await make('by-cohort', {
      filters: { groups: [{ properties: [{ key: 'id', type: 'cohort', value: cohort.id }] }] },
    })
    await make('off', { active: false, filters: { groups: [onFlag(1)] } })
    const depend = 'Cannot disable this feature flag because other flags depend on it:'
    for (const action of ['disable', 'archive']) {
      const { status, body } = await act('base', action)
      const detail = `${depend} direct (ID: 2), by-cohort (ID: 3).`
      assert.deepEqual([status, body.code, body.attr, body.detail], [400, 'invalid_input', null, detail])
    }
    assert.equal((await flag(1)).version, 1)
    for (const key of ['direct', 'by-cohort', 'base']) assert.equal((await act(key, 'disable')).body.active, false, key)
    for (const key of ['direct', 'by-cohort']) {
      const { status, body } = await act(key, 'enable')
      assert.equal(status, 400)
      assert.equal(body.detail, 'Cannot enable this feature flag because it depends on disabled flags: base (ID: 1).')
    }
    for (const key of ['base', 'direct', 'by-cohort']) assert.equal((await act(key, 'enable')).body.active, true, key)
    const patched = await api.patch(`${path}base/`, { active: false })
    assert.deepEqual((await act('base', 'disable')).body.version, patched.version)
  })
})

describe('a write by another front between the check and the write', () => {
  /** Before the next write of flag 1 reaches the store, another write is made directly in the store. */
  async function startOvertaken(t: TestContext) {
    let overtaking: { readonly flagId: number; readonly patch: object } | null = null
    const started = await start(t, {
      before: {
        updateFlag: async () => {
          const first = overtaking
          overtaking = null
          if (first !== null)
            assert.ok((await started.api.management.updateFlag(1, first.flagId, first.patch, aChange('other'))).ok)
        },
      },
    })
    return { ...started, overtake: (flagId: number, patch: object) => (overtaking = { flagId, patch }) }
  }

  it('is noticed if it makes another flag depend on the one being disabled', async t => {
    const { make, act, overtake } = await startOvertaken(t)
    await make('base')
    const { id } = await make('needs', { active: false, filters: { groups: [onFlag(1)] } })
    overtake(id, { active: true })
    const { status, body } = await act('base', 'disable')
    assert.deepEqual([status, body.detail.endsWith('needs (ID: 2).')], [400, true], body.detail)
  })

  it('is noticed if it disables a dependency of the flag being enabled', async t => {
    const { make, act, overtake } = await startOvertaken(t)
    const { id } = await make('base')
    await make('needs', { active: false, filters: { groups: [onFlag(id)] } })
    overtake(id, { active: false })
    assert.equal((await act('needs', 'enable')).status, 400)
  })

  it('causes a conflict if the request contains a version, and is preserved if it contains none', async t => {
    const { make, act, overtake, flag } = await startOvertaken(t)
    const { id } = await make('a', { filters: { groups: [some] } })
    overtake(id, { name: 'other' })
    const rollout = { condition_index: 0, rollout_percentage: 50, version: 1 }
    const { status, body } = await act('a', 'set_release_condition_rollout', rollout)
    assert.deepEqual([status, body.extra], [409, { current_version: 2, sent_version: 1 }])
    overtake(id, { name: 'another' })
    const disabled = await act('a', 'disable')
    assert.deepEqual([disabled.status, disabled.body.version, disabled.body.name], [200, 4, 'another'])
    overtake(id, { active: true })
    assert.deepEqual([(await act('a', 'enable')).body.version, (await flag(id)).active], [5, true])
  })
})

describe('an archived flag', () => {
  it('must not be in use, and must be unarchived before it is enabled', async t => {
    const { api, make, act, flag } = await start(t)
    const { id } = await make('a')
    const cohort = await created(api, 'cohorts', {
      name: 'Secret name',
      filters: { properties: { type: 'AND', values: onFlag(id).properties } },
    })
    const { id: other } = await make('off', { active: false, filters: { groups: [onFlag(id)] } })
    const refused = await act(id, 'archive')
    const users = [
      { type: 'feature_flag', id: other, name: 'off' },
      { type: 'cohort', id: cohort.id, name: 'Secret name' },
    ]
    assert.deepEqual([refused.status, refused.body.code], [400, 'invalid_input'])
    assert.deepEqual(refused.body.extra, { used_by: users })
    assert.match(refused.body.detail, /^The flag is in use, so it was not archived: flag "off" \(2\), cohort/)
    const narrow = await api.addKey(['feature_flag:write'])
    assert.equal((await act(id, 'archive', undefined, narrow)).text.includes('Secret name'), false)
    assert.equal((await flag(id)).version, 1)
    await api.call('DELETE', `${project}cohorts/${cohort.id}/`)
    assert.equal((await act(other, 'archive')).status, 200)
    const archived = await act(id, 'archive')
    assert.deepEqual([archived.body.archived, archived.body.active, archived.body.version], [true, false, 2])
    const no = await act(id, 'enable')
    assert.deepEqual([no.status, no.body.detail], [400, 'Cannot enable an archived feature flag. Unarchive it first.'])
    assert.equal((await act(id, 'disable')).body.version, 2)
  })
})
