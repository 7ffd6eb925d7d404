// Two people or scripts change different fields of one object at the same moment: neither change is lost.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { err } from '#core/result.ts'
import { fieldOf } from '../support/fields-of.ts'
import { type ManagementApi, startManagement } from '../support/management-api.ts'

const project = '/api/projects/1/'

/** How many readers of one object have to have read it before the first of them continues. */
let readersAwaited = 0

/** Another client's action between the decision about an experiment and its write, run once. */
const beforeWrite: (() => Promise<unknown>)[] = []

/** Waits as with two fronts: all have read before one writes. */
async function startReadingTogether(t: TestContext): Promise<ManagementApi> {
  let waiting: (() => void)[] = []
  const together = async <T>(found: T): Promise<T> => {
    if (readersAwaited === 0) return found
    if (waiting.length + 1 === readersAwaited) {
      readersAwaited = 0
      for (const go of waiting) go()
      waiting = []
    } else await new Promise<void>(resolve => waiting.push(resolve))
    return found
  }
  return startManagement(t, {
    wrap: store => ({
      ...store,
      findFlag: async (...args) => together(await store.findFlag(...args)),
      findResource: async (...args) => together(await store.findResource(...args)),
    }),
    before: { updateResource: () => beforeWrite.pop()?.() },
  })
}

/** Sends all changes at once. @returns the object afterwards. */
async function changeAtOnce(api: ManagementApi, path: string, bodies: readonly object[]) {
  readersAwaited = bodies.length
  const answers = await Promise.all(bodies.map(body => api.call('PATCH', path, { body })))
  assert.deepEqual(
    fieldOf(answers, 'status'),
    bodies.map(() => 200),
  )
  return await api.get(path)
}

async function create(api: ManagementApi, path: string, body: object): Promise<string> {
  const created = await api.post(project + path, body)
  return `${project}${path}${created.id}/`
}

const questions = [{ id: 'q', type: 'open', question: 'Why?' }]

describe('concurrent changes', () => {
  it('to different fields of a survey are all kept', async t => {
    const api = await startReadingTogether(t)
    const path = await create(api, 'surveys/', { name: 'S', type: 'popover', questions })
    const survey = await changeAtOnce(api, path, [
      { questions: [...questions, { id: 'r', type: 'open', question: 'How?' }] },
      { appearance: { position: 'left' } },
      { conditions: { url: '/pay' } },
      { description: 'd' },
      { start_date: '2026-04-01T00:00:00Z' },
    ])
    assert.deepEqual(
      [survey.questions.length, survey.appearance, survey.conditions, survey.description],
      [2, { position: 'left' }, { url: '/pay' }, 'd'],
    )
    const own = await api.get(`${project}feature_flags/${survey.internal_targeting_flag.id}/`)
    assert.equal(own.active, true)
  })

  it('leave a survey’s flag off when archiving races with starting', async t => {
    const api = await startReadingTogether(t)
    const path = await create(api, 'surveys/', { name: 'S', type: 'popover', questions })
    const survey = await changeAtOnce(api, path, [{ start_date: '2026-04-01T00:00:00Z' }, { archived: true }])
    assert.equal(survey.archived, true)
    const own = await api.get(`${project}feature_flags/${survey.internal_targeting_flag.id}/`)
    assert.equal(own.active, false)
  })

  it('to different fields of an experiment are all kept', async t => {
    const api = await startReadingTogether(t)
    const path = await create(api, 'experiments/', { name: 'X', feature_flag_key: 'button' })
    const experiment = await changeAtOnce(api, path, [
      { metrics: [{ kind: 'a' }] },
      { description: 'd' },
      { parameters: { minimum_detectable_effect: 3 } },
    ])
    assert.deepEqual(
      [experiment.metrics, experiment.description, experiment.parameters],
      [[{ kind: 'a' }], 'd', { minimum_detectable_effect: 3 }],
    )
  })

  it('start an experiment or a survey only once', async t => {
    const api = await startReadingTogether(t)
    for (const path of [
      await create(api, 'experiments/', { name: 'X', feature_flag_key: 'button' }),
      await create(api, 'surveys/', { name: 'S', type: 'popover', questions }),
    ]) {
      readersAwaited = 2
      const answers = await Promise.all([1, 2].map(() => api.call('POST', `${path}launch/`)))
      assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 400], path)
    }
  })

  it('to one flag all succeed, even if there are more clients than attempts of a single write', async t => {
    const api = await startReadingTogether(t)
    const path = await create(api, 'feature_flags/', { key: 'popular' })
    const bodies = Array.from({ length: 40 }, (_, n) => ({ filters: { groups: [{}], payloads: { true: `${n}` } } }))
    assert.equal((await changeAtOnce(api, path, bodies)).version, 41)
  })

  it('to a flag are kept when its experiment ships a variant', async t => {
    const api = await startReadingTogether(t)
    const path = await create(api, 'experiments/', { name: 'X', feature_flag_key: 'button' })
    await api.post(`${path}launch/`)
    const flag = `${project}feature_flags/button/`
    const { filters } = await api.get(flag)
    const groups = [{ properties: [], rollout_percentage: 7 }]
    beforeWrite.push(() => api.call('PATCH', flag, { body: { filters: { ...filters, groups } } }))
    const body = { variant_key: 'test', release_to_everyone: true }
    const shipped = await api.post(`${path}ship_variant/`, body)
    assert.deepEqual(shipped.feature_flag.filters.groups, [{ properties: [], rollout_percentage: 100 }, ...groups])
  })

  it('cause a 409 when definitions keep changing while a flag’s references are checked', async t => {
    const api = await startManagement(t, {
      wrap: store => ({
        ...store,
        createFlag: async (flag, change, options) =>
          options?.linksRevision === undefined ? store.createFlag(flag, change, options) : err('definitions_changed'),
      }),
    })
    const base = await api.post(`${project}feature_flags/`, { key: 'base' })
    const properties = [{ key: String(base.id), type: 'flag', value: true, operator: 'flag_evaluates_to' }]
    const body = { key: 'linked', filters: { groups: [{ properties }] } }
    await api.refuses('POST', `${project}feature_flags/`, [body, null, 'conflict'])
  })

  it('leave payloads encrypted exactly when the flag’s encryption setting is on', async t => {
    const api = await startReadingTogether(t)
    const filters = (payload: string) => ({ groups: [{ rollout_percentage: 100 }], payloads: { true: payload } })
    const changed = { filters: filters('changed') }
    const [on, off] = [
      { has_encrypted_payloads: true },
      { has_encrypted_payloads: false, filters: filters('shown') },
    ] as const
    for (const [key, before, switched] of [
      ['on-first', {}, [on, changed]],
      ['on-last', {}, [changed, on]],
      ['off-first', on, [off, changed]],
      ['off-last', on, [changed, off]],
    ] as const) {
      const path = await create(api, 'feature_flags/', { key, filters: filters('first'), ...before })
      await changeAtOnce(api, path, switched)
      const flag = await api.management.findFlagByKey(1, key)
      const { true: payload } = flag!.filters.payloads as { true: string }
      assert.equal(flag!.hasEncryptedPayloads, before !== on, key)
      assert.equal(payload.startsWith('enc:'), before !== on, `${key}: ${payload}`)
    }
  })

  it('leave a flag encrypted when restoring a plain version races with switching encryption on', async t => {
    const api = await startReadingTogether(t)
    const filters = { groups: [{ rollout_percentage: 100 }], payloads: { true: 'first' } }
    for (const isRestoredLast of [false, true]) {
      const path = await create(api, 'feature_flags/', { key: `restored-${isRestoredLast}`, filters })
      await api.patch(path, { name: 'Renamed' })
      const restore = () => api.call('POST', `${path}versions/1/restore/`)
      const encrypt = () => api.call('PATCH', path, { body: { has_encrypted_payloads: true } })
      readersAwaited = 2
      const answers = await Promise.all((isRestoredLast ? [encrypt, restore] : [restore, encrypt]).map(send => send()))
      assert.deepEqual(fieldOf(answers, 'status'), [200, 200])
      const flag = await api.management.findFlagByKey(1, `restored-${isRestoredLast}`)
      const { true: payload } = flag!.filters.payloads as { true: string }
      assert.deepEqual([flag!.hasEncryptedPayloads, payload.startsWith('enc:'), flag!.version], [true, true, 4])
    }
  })

  it('keep the enrollment setting of the flag consistent with the stage of its early access feature', async t => {
    const api = await startReadingTogether(t)
    const stages = [{ stage: 'archived' }, { stage: 'general-availability' }]
    for (const bodies of [stages, stages.toReversed()]) {
      const path = await create(api, 'early_access_feature/', { name: 'E', stage: 'beta' })
      const feature = await changeAtOnce(api, path, bodies)
      const { filters } = await api.get(`${project}feature_flags/${feature.feature_flag.id}/`)
      assert.equal(filters.feature_enrollment === true, feature.stage !== 'archived', feature.stage)
    }
  })
})
