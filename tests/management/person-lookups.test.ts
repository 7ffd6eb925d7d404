// The requests of PostHog's tools about persons: the values of a property, and the cohorts of a person.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { PropertyValueQuery } from '#ports/events/event-queries.ts'
import { fieldOf } from '../support/fields-of.ts'
import { startManagement } from '../support/management-api.ts'
import { newPersons } from '../support/values.ts'

describe('persons', () => {
  it('are summarized by the most frequent values of a property', async t => {
    let asked: PropertyValueQuery | undefined
    const api = await startManagement(t, {
      events: {
        listPropertyValues: async query => {
          asked = query
          return { results: [{ valueJson: '"pro"', count: 2 }], valueCount: 7, isSample: false }
        },
      },
    })
    const body = await api.get('/api/projects/1/persons/values/?key=plan&value=PR')
    assert.deepEqual(body, {
      refreshing: false,
      value_count: 7,
      is_sample: false,
      results: [{ name: 'pro', count: 2 }],
    })
    assert.deepEqual(asked, { projectId: 1, of: 'person', name: 'plan', search: 'PR', limit: 20 })
    assert.equal((await api.call('GET', '/api/projects/1/persons/values/')).body.attr, 'key')
  })

  it('are found by number or uuid, and list their cohorts', async t => {
    const api = await startManagement(t)
    const ada = { ids: ['ada'], uuid: '22222222-2222-5222-8222-222222222222', properties: { plan: 'pro' } }
    await api.commit(newPersons([ada, { ids: ['bob'], properties: { plan: 'free' } }]))
    const project = '/api/projects/1'
    const { id } = await api.get(`${project}/persons/${ada.uuid}/`)
    assert.equal((await api.get(`${project}/persons/${id}/`)).uuid, ada.uuid)
    assert.deepEqual((await api.get(`${project}/persons/${id}/distinct_ids/`)).count, 1)
    for (const nobody of ['0', '999', 'x', '1e1'])
      assert.equal((await api.call('GET', `${project}/persons/${nobody}/`)).status, 404, nobody)
    const cohort = async (name: string, body: object) => {
      const made = await api.post(`${project}/cohorts/`, { name, ...body })
      return made.id
    }
    const having = (values: object[]) => ({ filters: { properties: { type: 'OR', values } } })
    const plan = (value: string) => ({ key: 'plan', type: 'person', operator: 'exact', value })
    const fixed = await cohort('fixed', { is_static: true, distinct_ids: ['ada'] })
    await cohort('other', { is_static: true, distinct_ids: ['bob'] })
    await cohort('pro', having([plan('pro')]))
    await cohort('free', having([plan('free')]))
    await cohort('of fixed', having([{ key: 'id', type: 'cohort', value: fixed }]))
    await cohort('gone', having([plan('pro')]))
    const [gone] = (await api.get(`${project}/cohorts/?search=gone`)).results
    await api.patch(`${project}/cohorts/${gone.id}/`, { deleted: true })
    for (const person of [ada.uuid, id]) {
      const body = await api.get(`${project}/persons/cohorts/?person_id=${person}`)
      assert.deepEqual(fieldOf(body.results, 'name'), ['of fixed', 'pro', 'fixed'])
      assert.deepEqual(body.results[2], await api.get(`${project}/cohorts/${fixed}/`))
    }
    assert.equal((await api.call('GET', `${project}/persons/cohorts/?person_id=999`)).status, 404)
    assert.equal((await api.call('GET', `${project}/persons/cohorts/`)).body.attr, 'person_id')
    const key = await api.addKey(['person:read'])
    assert.equal((await api.call('GET', `${project}/persons/cohorts/?person_id=${id}`, { key })).status, 403)
  })
})
