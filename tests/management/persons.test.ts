import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type PropertyBag, parseJson } from '#core/json.ts'
import type { PropertyValueQuery } from '#ports/events/event-queries.ts'
import { fieldOf } from '../support/fields-of.ts'
import { startManagement } from '../support/management-api.ts'
import { aPerson, created, newPersons } from '../support/values.ts'

describe('persons', () => {
  const uuid = (last: number) => `11111111-1111-5111-8111-${String(last).padStart(12, '0')}`

  it('are returned with all their distinct ids and the version of each id', async t => {
    const api = await startManagement(t)
    const properties = parseJson('{"email":"ada@example.com","score":1.0,"__proto__":{"a":1}}') as PropertyBag
    const ada = { ids: ['ada', '__proto__'], uuid: uuid(1), properties, isIdentified: true, version: 3 }
    await api.commit(newPersons([ada]))
    const { status, body, text } = await api.call('GET', '/api/projects/1/persons/?distinct_id=ada')
    assert.equal(status, 200)
    assert.deepEqual(Object.keys(body), ['next', 'previous', 'results'])
    const [person] = body.results
    assert.deepEqual(
      [person.uuid, person.name, person.is_identified, person.version],
      [uuid(1), 'ada@example.com', true, 3],
    )
    assert.deepEqual(person.distinct_ids.toSorted(), ['__proto__', 'ada'])
    assert.ok(text.includes('"score":1.0,"__proto__":{"a":1}'))
    assert.match(text, /"distinct_id_versions":\{.*"__proto__":1/)
    assert.deepEqual([person.created_at, person.flag_overrides], ['2023-11-14T22:13:20.000Z', []])
    const one = await api.get(`/api/projects/1/persons/${uuid(1).toUpperCase()}/`)
    assert.deepEqual(one, person)
  })

  it('are named after an id that the project chose, not after one that an SDK generated', async t => {
    const api = await startManagement(t)
    const anonymous = '0190b7a5-6b2e-7c3d-9f10-2a4c6e8f0b1d'
    await api.commit(newPersons([{ ids: [anonymous, 'ada'], isIdentified: true }]))
    const [person] = (await api.get('/api/projects/1/persons/')).results
    assert.deepEqual([person.name, person.distinct_ids], ['ada', ['ada', anonymous]])
    assert.deepEqual(person.distinct_id_versions, { [anonymous]: 0, ada: 1 })
  })

  it('are found by id, uuid and text, but only in their own project', async t => {
    const api = await startManagement(t)
    await api.post('/api/projects/', { name: 'Second' })
    const ada = { ids: ['ada'], uuid: uuid(1), properties: { plan: 'pro' } }
    const bob = { ids: ['b-1'], uuid: uuid(2), properties: { username: 'bobby' } }
    await api.commit(newPersons([ada, bob]))
    const names = async (query: string, project = 1) =>
      (await api.get(`/api/projects/${project}/persons/${query}`)).results.map(
        (person: { name: string }) => person.name,
      )
    assert.deepEqual((await names('')).toSorted(), ['ada', 'bobby'])
    assert.deepEqual(await names(`?uuid=${uuid(2)}`), ['bobby'])
    assert.equal((await api.call('GET', `/api/projects/1/persons/?uuid=${uuid(9)}`)).status, 404)
    assert.deepEqual(await names(`?uuid=${uuid(2)}&search=pro`), [])
    assert.deepEqual(await names('?search=pro'), ['ada'])
    assert.deepEqual(await names('?distinct_id=nobody'), [])
    assert.deepEqual(await names('', 2), [])
    assert.equal((await api.call('GET', `/api/projects/2/persons/${uuid(1)}/`)).status, 404)
    for (const id of [uuid(9), '999', 'x'.repeat(200)]) {
      assert.equal((await api.call('GET', `/api/projects/1/persons/${id}/`)).status, 404)
    }
    await api.refuses('GET', '/api/projects/1/persons/', ['uuid=1', 'uuid', 'invalid'])
    assert.equal(
      (await names('?format=json&basic=true&client_query_id=x&_=1')).length,
      2,
      'what tools add to any request',
    )
    assert.equal((await api.get('/api/projects/1/persons/?limit=1')).previous, null)
    const found = (await api.pages('/api/projects/1/persons/?limit=1')).map(page => fieldOf(page, 'name'))
    assert.deepEqual(found.toSorted(), [['ada'], ['bobby']])
  })

  it('of 640 KiB each are all listed once by following `next`', async t => {
    const api = await startManagement(t)
    const text = 'x'.repeat(640 * 1024)
    const persons = Array.from({ length: 5 }, (_, index) => aPerson({ uuid: uuid(index), properties: { text } }))
    await api.commit({ persons: persons.map(created) })
    const seen = (await api.pages('/api/projects/1/persons/?limit=2')).flat()
    assert.deepEqual(fieldOf(seen, 'uuid'), fieldOf(persons, 'uuid').toReversed())
  })

  it('have a paged list of distinct ids, whose `next` contains the last id, whatever characters that has', async t => {
    const api = await startManagement(t)
    const ids = ['a&b=c', 'd e', '#', '😀', 'ada', '%2F'].toSorted()
    await api.commit(newPersons([{ ids, uuid: uuid(1) }]))
    const path = `/api/projects/1/persons/${uuid(1)}/distinct_ids/`
    const { count, previous } = await api.get(`${path}?limit=1`)
    assert.deepEqual([count, previous], [ids.length, null])
    const rows = ids.map((id, index) => [{ distinct_id: id, version: index }])
    assert.deepEqual(await api.pages(`${path}?limit=1`), rows)
    for (const unknown of [uuid(9), 'nobody'])
      assert.equal((await api.call('GET', `/api/projects/1/persons/${unknown}/distinct_ids/`)).status, 404)
  })

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
