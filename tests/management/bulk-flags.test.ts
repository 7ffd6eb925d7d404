import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { retireFlags } from '#services/manage/retire-flags.ts'
import { fieldOf, fieldsOf } from '../support/fields-of.ts'
import { startManagement } from '../support/management-api.ts'
import { aChange } from '../support/values.ts'

const project = '/api/projects/1/'
const path = `${project}feature_flags/`
const everybody = { groups: [{ properties: [], rollout_percentage: 100 }] }
const testing = (id: number) => ({
  groups: [{ properties: [{ key: String(id), type: 'flag', value: true, operator: 'flag_evaluates_to' }] }],
})

async function start(t: Parameters<typeof startManagement>[0], options?: Parameters<typeof startManagement>[1]) {
  const api = await startManagement(t, options)
  const make = async (key: string, over: object = {}, at = 'feature_flags') => {
    const body = at === 'feature_flags' ? { key, filters: everybody, ...over } : over
    return api.post(`${project}${at}/`, body)
  }
  const bulk = async (how: 'delete' | 'archive', ids: readonly unknown[], key?: string) => {
    const answered = await api.call('POST', `${path}bulk_${how}/`, {
      body: { ids },
      ...(key === undefined ? {} : { key }),
    })
    assert.equal(answered.status, 200, answered.text)
    return answered.body
  }
  const flag = async (id: number) => await api.get(`${path}${id}/`)
  return { api, make, bulk, flag }
}

describe('bulk actions on flags', () => {
  it('delete flags with one result, one version and one activity entry each', async t => {
    const { api, make, bulk, flag } = await start(t)
    const multivariate = { variants: [{ key: 'a', rollout_percentage: 100 }] }
    for (const [key, over] of Object.entries({
      one: {},
      two: { filters: { groups: [] } },
      three: { filters: { ...everybody, multivariate } },
    }))
      await make(key, over)
    api.clock.advance(1)
    const before = api.served.length
    assert.deepEqual(await bulk('delete', [1, '2', 3, 99, 'x', 2, -1]), {
      deleted: [
        { id: 1, key: 'one', rollout_state: 'fully_rolled_out', active_variant: null },
        { id: 2, key: 'two', rollout_state: 'not_rolled_out', active_variant: null },
        { id: 3, key: 'three', rollout_state: 'fully_rolled_out', active_variant: 'a' },
      ],
      errors: [
        { id: 'x', reason: 'Not a flag id: flag ids are whole numbers.', used_by: [] },
        { id: -1, reason: 'Not a flag id: flag ids are whole numbers.', used_by: [] },
        { id: 99, reason: 'The project has no flag with this id.', used_by: [] },
      ],
    })
    assert.equal(api.served.length, before + 1, 'answered when the last change was served')
    const activity = await api.get(`${path}activity/`)
    assert.deepEqual(
      activity.results.map(({ activity, item_id }: Record<string, string>) => `${item_id} ${activity}`).slice(0, 4),
      ['3 deleted', '2 deleted', '1 deleted', '3 created'],
    )
    assert.deepEqual([(await flag(1)).deleted, (await flag(1)).version], [true, 2])
    assert.deepEqual((await bulk('delete', [1])).errors[0].reason, 'The project has no flag with this id.')
  })

  it('archive flags, and leave archived flags unchanged', async t => {
    const { make, bulk, flag } = await start(t)
    await make('one')
    await make('two', { archived: true })
    const archived = [
      { id: 2, key: 'two' },
      { id: 1, key: 'one' },
    ]
    assert.deepEqual(await bulk('archive', [2, 1]), { archived, errors: [] })
    assert.deepEqual(await bulk('archive', [2, 1]), { archived, errors: [] })
    const { active, status, version } = await flag(1)
    assert.deepEqual([active, status, version, (await flag(2)).version], [false, 'ARCHIVED', 2, 1])
  })

  it('do not archive or delete flags in use, and show what uses these flags only to keys that may read it', async t => {
    const { api, make, bulk, flag } = await start(t)
    for (const key of ['tested', 'cohort', 'survey', 'feature', 'free']) await make(key)
    await make('tester', { filters: testing(1) })
    const leaf = { key: '2', type: 'flag', value: true, operator: 'flag_evaluates_to' }
    await make('', { name: 'Testers', filters: { properties: { type: 'AND', values: [leaf] } } }, 'cohorts')
    const questions = [{ type: 'open', question: 'Why?' }]
    const survey = await make('', { name: 'Exit', type: 'popover', questions, linked_flag_id: 3 }, 'surveys')
    const feature = await make('', { name: 'Beta', stage: 'beta', feature_flag_id: 4 }, 'early_access_feature')
    const experiment = await make('', { name: 'Button', feature_flag_key: 'button' }, 'experiments')
    const button = experiment.feature_flag.id
    const ids = [1, 2, 3, 4, 5, button, survey.internal_targeting_flag.id]
    for (const how of ['archive', 'delete'] as const) {
      const { errors, archived = [], deleted = archived } = await bulk(how, ids)
      assert.deepEqual(fieldOf(deleted, 'id'), [5])
      assert.deepEqual(fieldsOf(errors, 'id', 'used_by'), [
        [1, [{ type: 'feature_flag', id: 6, name: 'tester' }]],
        [2, [{ type: 'cohort', id: 1, name: 'Testers' }]],
        [3, [{ type: 'survey', id: survey.id, name: 'Exit' }]],
        [4, [{ type: 'early_access_feature', id: feature.id, name: 'Beta' }]],
        [button, [{ type: 'experiment', id: experiment.id, name: 'Button' }]],
        [survey.internal_targeting_flag.id, [{ type: 'survey', id: survey.id, name: 'Exit' }]],
      ])
      assert.equal(errors[0].reason, `The flag is in use, so it was not ${how}d: flag "tester" (6).`)
    }
    assert.deepEqual([(await flag(1)).active, (await flag(1)).version], [true, 1])

    const key = await api.addKey(['feature_flag:write'])
    const hidden = (await bulk('delete', [1, 2, button], key)).errors
    assert.deepEqual(
      hidden.map(({ used_by: [user] }: { used_by: { name: string | null }[] }) => user?.name),
      ['tester', null, null],
    )
    assert.equal(hidden[1].reason, 'The flag is in use, so it was not deleted: cohort (1).')

    const ended = { body: { start_date: '2026-01-01', end_date: '2026-02-01' } }
    await api.call('PATCH', `${project}experiments/${experiment.id}/`, ended)
    await api.call('PATCH', `${project}surveys/${survey.id}/`, ended)
    await api.call('DELETE', `${path}6/`)
    assert.deepEqual(fieldOf((await bulk('delete', [1, button, 3])).deleted, 'id'), [1, button, 3])
  })

  it('delete flags that only depend on each other together, in whatever order they are listed', async t => {
    const { make, bulk } = await start(t)
    await make('base')
    await make('middle', { filters: testing(1) })
    await make('top', { filters: testing(2) })
    await make('other', { filters: testing(2) })
    const { deleted, errors } = await bulk('delete', [1, 2, 3])
    assert.deepEqual([fieldOf(deleted, 'id'), fieldOf(errors, 'id')], [[3], [1, 2]])
    for (const { used_by } of errors) assert.equal(used_by.length, 1)
    const all = await bulk('archive', [1, 2, 4])
    assert.deepEqual([fieldOf(all.archived, 'id'), all.errors], [[1, 2, 4], []])
  })

  it('allow archiving, but not deleting, a flag whose only dependents are archived', async t => {
    const { make, bulk } = await start(t)
    await make('base')
    await make('tester', { filters: testing(1), archived: true })
    assert.equal((await bulk('delete', [1])).errors.length, 1)
    assert.equal((await bulk('archive', [1])).archived.length, 1)
  })

  it('require between one and 500 flags', async t => {
    const { api } = await start(t)
    const tooMany = Array.from({ length: 501 }, (_, id) => id)
    await api.refuses('POST', `${path}bulk_delete/`, [{}, 'ids'], [{ ids: [] }, 'ids'], [{ ids: tooMany }, 'ids'])
  })

  it('do not find flags of another project', async t => {
    const { api, make, bulk, flag } = await start(t)
    await make('one')
    const { id } = await api.post('/api/projects/', { name: 'Other' })
    const body = await api.post(`/api/projects/${id}/feature_flags/bulk_delete/`, { ids: [1] })
    assert.deepEqual([body.deleted, body.errors.length], [[], 1])
    assert.equal((await flag(1)).deleted, false)
    assert.equal((await bulk('delete', [1])).deleted.length, 1)
  })
})

describe('a flag that comes into use during a bulk action', () => {
  it('is not deleted, and no flag is deleted if the definitions keep changing', async t => {
    const { api, make } = await start(t)
    for (const key of ['one', 'two', 'three']) await make(key)
    let changes = 0
    let meanwhile = async () => {
      if (changes++ === 0) await make('late', { filters: testing(2) })
    }
    const { management } = api
    const deps = {
      management: {
        findLinks: management.findLinks,
        listFlagsById: management.listFlagsById,
        listFlagUses: management.listFlagUses,
        updateFlag: async (...args: Parameters<typeof management.updateFlag>) => {
          await meanwhile()
          return management.updateFlag(...args)
        },
      },
      definitionsReady: async () => {},
      clock: api.clock,
    }
    const kinds = async (ids: readonly number[]) =>
      (await retireFlags(deps, 1, ids, 'delete', aChange('ci'))).map(
        ({ flagId, refused }) => `${flagId} ${refused?.kind ?? 'deleted'}`,
      )
    assert.deepEqual(await kinds([1, 2]), ['1 deleted', '2 in_use'])
    meanwhile = async () => {
      await make(`other-${changes++}`)
    }
    assert.deepEqual(await kinds([3, 99]), ['3 busy', '99 not_found'])
  })
})
