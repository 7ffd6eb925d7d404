import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type ManagementApi, startManagement } from '../support/management-api.ts'
import { aMapping, aPerson, created } from '../support/state-builders.ts'

const path = '/api/projects/1/cohorts/'
const flagsPath = '/api/projects/1/feature_flags/'
const uuidOf = (index: number) => `00000000-0000-5000-8000-${String(index).padStart(12, '0')}`
const pro = { key: 'plan', type: 'person', value: 'pro', operator: 'exact' }
const treeOf = (...values: readonly unknown[]) => ({ properties: { type: 'AND', values } })
const cohortFilter = (id: unknown) => ({ key: 'id', type: 'cohort', value: id, operator: 'in' })
const flagFilter = (id: number) => ({ key: String(id), type: 'flag', value: true, operator: 'flag_evaluates_to' })
const flagOn = (...properties: readonly unknown[]) => ({ groups: [{ properties, rollout_percentage: 100 }] })

/** Persons `user-1`, `user-2`, … with uuids of the same number. */
async function addPersons(api: ManagementApi, count: number): Promise<void> {
  const persons = Array.from({ length: count }, (_, index) => aPerson({ uuid: uuidOf(index + 1) }))
  await api.commit({
    persons: persons.map(created),
    mappings: persons.map((person, index) => created(aMapping(person, `user-${index + 1}`))),
  })
}

describe('cohorts', () => {
  it('are created of filters, and the answer waits until they are served', async t => {
    const api = await startManagement(t)
    const before = api.served.length
    const filters = treeOf(pro)
    const { status, body } = await api.call('POST', path, { body: { name: 'Paying', filters } })
    assert.equal(status, 201)
    assert.deepEqual(body, {
      id: 1,
      name: 'Paying',
      description: '',
      groups: [],
      filters,
      is_static: false,
      deleted: false,
      version: 1,
      count: null,
      is_calculating: false,
      last_calculation: null,
      errors_calculating: 0,
      created_at: '2026-05-01T12:00:00.000Z',
      updated_at: '2026-05-01T12:00:00.000Z',
      created_by: { first_name: '*' },
      experiment_set: [],
    })
    assert.equal(api.served.length, before + 1)
    assert.deepEqual((await api.call('GET', `/api/environments/@current/cohorts/1`)).body, body)
  })

  it('that are static take persons by id, uuid and distinct id, and name those that are not there', async t => {
    const api = await startManagement(t)
    await addPersons(api, 4)
    const { status, body } = await api.call('POST', path, {
      body: {
        name: 'Chosen',
        is_static: true,
        _create_static_person_ids: [1, '2', uuidOf(3).toUpperCase(), 77, uuidOf(88)],
        distinct_ids: ['user-3', 'user-4', 'nobody'],
      },
    })
    assert.equal(status, 201, JSON.stringify(body))
    assert.equal(body.count, 4)
    assert.deepEqual(body.members, {
      changed: 4,
      unchanged: 1,
      unknown_count: 3,
      unknown: ['77', uuidOf(88), 'nobody'],
    })
  })

  it('that are static take persons in and out, one by one or several, and again without a change', async t => {
    const api = await startManagement(t)
    await addPersons(api, 3)
    await api.call('POST', path, { body: { name: 'Chosen', is_static: true } })
    const add = (body: object) => api.call('PATCH', `${path}1/add_persons_to_static_cohort/`, { body })
    const remove = (body: object) => api.call('PATCH', `${path}1/remove_person_from_static_cohort/`, { body })
    assert.equal((await add({ distinct_ids: ['user-1', 'user-2', 'nobody'] })).body.count, 2)
    assert.deepEqual((await add({ person_ids: [uuidOf(1), 3] })).body.members, {
      changed: 1,
      unchanged: 1,
      unknown_count: 0,
      unknown: [],
    })
    const removed = await remove({ person_id: uuidOf(1) })
    assert.equal(removed.status, 200, removed.text)
    assert.equal(removed.body.count, 2)
    assert.deepEqual((await remove({ person_ids: [1], distinct_ids: ['user-2', 'who'] })).body.members, {
      changed: 1,
      unchanged: 1,
      unknown_count: 1,
      unknown: ['who'],
    })
    assert.equal((await add({})).body.attr, 'person_ids')
    assert.equal((await remove({})).body.attr, 'person_id')
    await api.call('POST', path, { body: { name: 'Paying', filters: treeOf(pro) } })
    const dynamic = await api.call('PATCH', `${path}2/add_persons_to_static_cohort/`, { body: { person_ids: [1] } })
    assert.deepEqual([dynamic.status, dynamic.body.attr], [400, 'is_static'])
  })
})

void [flagsPath, cohortFilter, flagFilter, flagOn]
