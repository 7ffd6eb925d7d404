import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fieldOf } from '../support/fields-of.ts'
import { type ManagementApi, startManagement } from '../support/management-api.ts'

const copyPath = '/api/organizations/@current/feature_flags/copy_flags/'
const flagsOf = (project: number) => `/api/projects/${project}/feature_flags/`
const cohortsOf = (project: number) => `/api/projects/${project}/cohorts/`

const create = (api: ManagementApi, path: string, body: object) => api.post(path, body)

const setOf = (...properties: object[]) => ({ groups: [{ properties, rollout_percentage: 50 }] })

async function withTwoProjects(t: Parameters<typeof startManagement>[0]) {
  const api = await startManagement(t)
  await create(api, '/api/projects/', { name: 'Second' })
  const copy = (key: string, targets = [2], apiKey?: string) =>
    api.call('POST', copyPath, {
      body: { feature_flag_key: key, from_project: 1, target_project_ids: targets },
      ...(apiKey === undefined ? {} : { key: apiKey }),
    })
  return { api, copy }
}

describe('copying a flag to another project', () => {
  it('creates the flag there, and copying again updates it with a new version', async t => {
    const { api, copy } = await withTwoProjects(t)
    const filters = {
      ...setOf({ key: 'plan', type: 'person', value: 'pro' }),
      payloads: { true: '{"type":"flag","key":"1"}' },
    }
    await create(api, flagsOf(1), { key: 'beta', name: 'Beta', filters, tags: ['a'] })
    const first = await copy('beta')
    assert.equal(first.status, 200, first.text)
    assert.deepEqual(first.body.failed, [])
    assert.equal(first.body.success[0].project_id, 2)
    await api.patch(`${flagsOf(1)}beta/`, { name: 'Better' })
    assert.equal((await copy('beta')).body.success[0].version, 2)
    const there = await api.get(`${flagsOf(2)}beta/`)
    assert.deepEqual([there.name, there.filters, there.tags, there.version], ['Better', filters, ['a'], 2])
  })

  it('creates an inactive copy on request, and rejects unsupported options', async t => {
    const { api } = await withTwoProjects(t)
    await create(api, flagsOf(1), { key: 'beta' })
    const asked = { feature_flag_key: 'beta', from_project: 1, target_project_ids: [2] }
    const copy = (fields: object) => api.call('POST', copyPath, { body: { ...asked, ...fields } })
    for (const [fields, active] of [
      [{ disable_copied_flag: true }, false],
      [{ disable_copied_flag: false, copy_schedule: false, copy_dependencies: false }, true],
      [{ disable_copied_flag: true }, false],
    ] as const) {
      assert.equal((await copy(fields)).body.success[0].active, active)
      assert.equal((await api.get(`${flagsOf(2)}beta/`)).active, active)
    }
    await api.refuses('POST', copyPath, [{ ...asked, copy_dependencies: true }, 'copy_dependencies', 'invalid_input'])
    assert.equal((await copy({ copy_schedule: true })).status, 200, 'there is nothing to copy')
  })

  it('copies cohorts, static ones without members, or uses existing cohorts of the same name', async t => {
    const { api, copy } = await withTwoProjects(t)
    const leaf = { key: 'plan', type: 'person', value: 'pro' }
    const inner = await create(api, cohortsOf(1), {
      name: 'inner',
      filters: { properties: { type: 'OR', values: [leaf] } },
    })
    const outer = await create(api, cohortsOf(1), {
      name: 'outer',
      filters: { properties: { type: 'AND', values: [{ key: 'id', type: 'cohort', value: inner.id }] } },
    })
    const listed = await create(api, cohortsOf(1), { name: 'listed', is_static: true })
    const known = await create(api, cohortsOf(1), { name: 'known', is_static: true })
    const knownThere = await create(api, cohortsOf(2), { name: 'known', is_static: true })
    const cohort = (value: number) => ({ key: 'id', type: 'cohort', value })
    await create(api, flagsOf(1), {
      key: 'beta',
      filters: setOf(cohort(outer.id), cohort(listed.id), cohort(known.id)),
    })

    const keyWithout = await api.addKey(['feature_flag:write'])
    const refused = (await copy('beta', [2], keyWithout)).body
    assert.match(refused.failed[0].errors[0], /cohort:write.*"inner", "outer", "listed"/)

    const { success, failed } = (await copy('beta')).body
    assert.deepEqual(failed, [])
    const there = new Map((await api.get(cohortsOf(2))).results.map((one: { name: string }) => [one.name, one])) as Map<
      string,
      { id: number; filters: { properties: { values: { value: number }[] } } }
    >
    assert.deepEqual([...there.keys()].sort(), ['inner', 'known', 'listed', 'outer'])
    assert.equal(there.get('outer')!.filters.properties.values[0]!.value, there.get('inner')!.id)
    assert.deepEqual(fieldOf(success[0].filters.groups[0].properties, 'value'), [
      there.get('outer')!.id,
      there.get('listed')!.id,
      knownThere.id,
    ])
    assert.ok(success[0].notes.some((note: string) => /"listed".*without its members/.test(note)))
  })

  it('maps dependencies and group types by name, and writes nothing if one is missing', async t => {
    const { api, copy } = await withTwoProjects(t)
    const base = await create(api, flagsOf(1), { key: 'base' })
    const dependent = { key: String(base.id), type: 'flag', operator: 'flag_evaluates_to', value: true }
    const cohort = await create(api, cohortsOf(1), { name: 'c', is_static: true })
    await create(api, flagsOf(1), {
      key: 'beta',
      filters: setOf(dependent, { key: 'id', type: 'cohort', value: cohort.id }),
    })
    await api.commit({
      groupTypes: [
        { projectId: 1, name: 'company', index: 0 },
        { projectId: 2, name: 'team', index: 0 },
        { projectId: 2, name: 'company', index: 1 },
      ],
    } as Parameters<typeof api.commit>[0])
    await create(api, flagsOf(1), { key: 'grouped', filters: { ...setOf(), aggregation_group_type_index: 0 } })
    assert.equal((await copy('grouped')).body.success[0].filters.aggregation_group_type_index, 1)
    const [failure] = (await copy('beta')).body.failed
    assert.match(failure.errors[0], /depends on the flag "base", which the target project lacks/)
    assert.equal((await api.get(cohortsOf(2))).count, 0, 'no cohort is left behind')
    const copiedBase = (await copy('base')).body.success[0]
    assert.equal((await copy('beta')).body.success[0].filters.groups[0].properties[0].key, String(copiedBase.id))
  })

  it('identifies the flag by its key alone, even if the key looks like the id of another flag', async t => {
    const { api, copy } = await withTwoProjects(t)
    await create(api, flagsOf(1), { key: '2', name: 'by key' })
    await create(api, flagsOf(1), { key: 'beta', name: 'by id' })
    assert.deepEqual((await copy('2')).body.success[0].name, 'by key')
    await create(api, flagsOf(2), { key: '5' })
    await create(api, flagsOf(2), { key: 'in-the-way' })
    await create(api, flagsOf(1), { key: '5', name: 'again' })
    assert.deepEqual((await copy('5')).body.success[0].version, 2)
  })

  it('rejects project ids that are out of range or not integers', async t => {
    const { api, copy } = await withTwoProjects(t)
    for (const id of [1e20, 1e300, 0, 1.5]) {
      assert.equal((await copy('beta', [id])).body.attr, 'target_project_ids.0')
      const body = { feature_flag_key: 'beta', from_project: id, target_project_ids: [2] }
      assert.equal((await api.call('POST', copyPath, { body })).body.attr, 'from_project')
    }
    const key = { label: 'far', scopes: ['*'], scoped_teams: [1e20] }
    assert.equal((await api.call('POST', '/api/personal_api_keys/', { body: key })).body.attr, 'scoped_teams.0')
  })

  it('rejects encrypted flags, projects that the key may not access, and the source project as a target', async t => {
    const { api, copy } = await withTwoProjects(t)
    await create(api, flagsOf(1), { key: 'beta' })
    await create(api, flagsOf(1), {
      key: 'sealed',
      is_remote_configuration: true,
      has_encrypted_payloads: true,
      filters: { groups: [{ properties: [], rollout_percentage: 100 }], payloads: { true: '"secret"' } },
    })
    const sealed = await copy('sealed')
    assert.match(sealed.body.failed[0].errors[0], /encrypted for its project/)
    const limited = await api.addKey(['*'], [1])
    assert.match((await copy('beta', [2], limited)).body.failed[0].errors[0], /no access to this project/)
    assert.equal((await copy('beta', [2], await api.addKey(['*'], [2]))).status, 403)
    assert.equal((await copy('beta', [2], await api.addKey(['feature_flag:read']))).status, 403)
    assert.equal((await copy('beta', [1])).status, 400)
    assert.match((await copy('beta', [9])).body.failed[0].errors[0], /does not exist/)
    assert.equal((await copy('nobody')).status, 404)
  })
})
