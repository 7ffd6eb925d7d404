import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cohortFilter, flagFilter, flagOn, pro, treeOf } from '../support/flag-documents.ts'
import { startManagement } from '../support/management-api.ts'

const path = '/api/projects/1/cohorts/'
const flagsPath = '/api/projects/1/feature_flags/'

describe('references between flags and cohorts', () => {
  it('are rejected in flags if they lead to missing or deleted objects', async t => {
    const api = await startManagement(t)
    await api.post(path, { name: 'gone', is_static: true })
    await api.call('DELETE', `${path}1/`)
    const cases = [
      [cohortFilter(1), 'filters.groups.0.properties.0.value'],
      [cohortFilter('99'), 'filters.groups.0.properties.0.value'],
      [flagFilter(99), 'filters.groups.0.properties.0.key'],
    ] as const
    for (const [filter, attr] of cases)
      await api.refuses('POST', flagsPath, [{ key: 'a', filters: flagOn(filter) }, attr, 'invalid_input'])
    const kept = await api.post(`${flagsPath}?skip_validation=true`, { key: 'a', filters: flagOn(cohortFilter(1)) })
    assert.match(kept.warnings[0].detail, /no cohort with the id 1/)
  })

  it('are rejected when they close a cycle, which the error names', async t => {
    const api = await startManagement(t)
    await api.post(flagsPath, { key: 'a', filters: flagOn() })
    await api.post(path, { name: 'Beta', filters: treeOf(flagFilter(1)) })
    await api.post(flagsPath, { key: 'b', filters: flagOn(cohortFilter(1)) })
    const own = await api.call('PATCH', `${flagsPath}a/`, { body: { filters: flagOn(flagFilter(1)) } })
    assert.match(own.body.detail, /flag "a" → flag "a"/)
    await api.refuses('PATCH', `${flagsPath}a/`, [
      { filters: flagOn(pro, flagFilter(2)) },
      'filters.groups.0.properties.1.key',
      undefined,
      /flag "a" → flag "b" → cohort "Beta" → flag "a"/,
    ])
    const cohort = await api.call('PATCH', `${path}1/`, { body: { filters: treeOf(flagFilter(2)) } })
    assert.match(cohort.body.detail, /cohort "Beta" → flag "b" → cohort "Beta"/)
    const itself = await api.call('PATCH', `${path}1/`, { body: { filters: treeOf(cohortFilter(1)) } })
    assert.match(itself.body.detail, /cohort "Beta" → cohort "Beta"/)
  })

  it('are checked again when a version or a deleted object is restored', async t => {
    const api = await startManagement(t)
    await api.post(path, { name: 'Beta', is_static: true })
    await api.post(flagsPath, { key: 'a', filters: flagOn(cohortFilter(1)) })
    await api.patch(`${flagsPath}a/`, { filters: flagOn() })
    assert.equal((await api.call('DELETE', `${path}1/`)).status, 204)
    await api.refuses('POST', `${flagsPath}a/versions/1/restore/`, [undefined, 'filters.groups.0.properties.0.value'])
    const skipped = await api.post(`${flagsPath}a/versions/1/restore/?skip_validation=true`)
    assert.equal(skipped.warnings.length, 1)
    await api.call('DELETE', `${flagsPath}a/`)
    assert.equal((await api.call('PATCH', `${flagsPath}1/`, { body: { deleted: false } })).status, 400)
  })

  it('prevent a cohort from being deleted, and are listed in the error', async t => {
    const api = await startManagement(t)
    await api.post(path, { name: 'Beta', is_static: true })
    await api.post(path, { name: 'Wider', filters: treeOf(cohortFilter('1')) })
    await api.post(flagsPath, { key: 'a', active: false, filters: flagOn(cohortFilter(1)) })
    const inUse = ['deleted', 'invalid_input', 'flag "a", cohort "Wider"'] as const
    await api.refuses('DELETE', `${path}1/`, [undefined, ...inUse])
    await api.refuses('PATCH', `${path}1/`, [{ deleted: true }, ...inUse])
    assert.equal((await api.call('DELETE', `${path}1/?skip_validation=true`)).status, 204)
  })

  it('are not both stored if two concurrent changes together close a cycle', async t => {
    const api = await startManagement(t)
    for (const key of ['a', 'b']) await api.post(flagsPath, { key, filters: flagOn() })
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all([
        api.call('PATCH', `${flagsPath}a/`, { body: { filters: flagOn(flagFilter(2)) } }),
        api.call('PATCH', `${flagsPath}b/`, { body: { filters: flagOn(flagFilter(1)) } }),
      ])
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400])
      for (const key of ['a', 'b']) await api.patch(`${flagsPath}${key}/`, { filters: flagOn() })
    }
  })
})
