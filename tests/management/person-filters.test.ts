// Persons filtered by the conditions that flags can have: PostHog’s list with `properties`, `email` and `cohort`.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { compilePropertyMatch } from '#core/flags/match/match-property.ts'
import { type JsonValue, parseJson, toCompactJson, toComparableText } from '#core/json.ts'
import { fieldOf } from '../support/fields-of.ts'
import { type ManagementApi, type StartManagementOptions, startManagement } from '../support/management-api.ts'
import { newPersons } from '../support/values.ts'

const list = '/api/projects/1/persons/'
const uuidOf = (index: number) => `11111111-1111-5111-8111-${String(index).padStart(12, '0')}`
const query = (params: Readonly<Record<string, unknown>>) =>
  new URLSearchParams(
    Object.entries(params).map(([name, value]) => [
      name,
      typeof value === 'object' ? JSON.stringify(value) : String(value),
    ]),
  )

/** Persons `p0`, `p1`, …: every third is on the plan `pro`. */
async function withPersons(t: TestContext, count: number, options: StartManagementOptions = {}) {
  const api = await startManagement(t, options)
  const persons = Array.from({ length: count }, (_, index) => ({
    ids: [`p${index}`],
    properties: { plan: index % 3 === 0 ? 'pro' : 'free', n: index, email: `P${index}@example.com` },
    createdAtMs: Date.parse('2026-01-01') + index * 86_400_000,
  }))
  await api.commit(newPersons(persons))
  return api
}

interface PersonRow {
  readonly distinct_ids: readonly string[]
}

/** The first distinct ids of the persons of one page. */
async function found(api: ManagementApi, params: Readonly<Record<string, unknown>>): Promise<string[]> {
  return firstIds((await api.get(`${list}?${query(params)}`)).results)
}

const firstIds = (persons: readonly PersonRow[]) => persons.map(person => person.distinct_ids[0]!)
const pagesOf = async (api: ManagementApi, path: string) => (await api.pages(path)).map(firstIds)

const pro = { key: 'plan', value: 'pro', operator: 'exact', type: 'person' }

describe('persons filtered by properties', () => {
  it('are those whom an equal flag condition matches, newest first, also in combination with other filters', async t => {
    const api = await withPersons(t, 8)
    const cohorts = '/api/projects/1/cohorts/'
    const chosen = { name: 'Chosen', is_static: true, distinct_ids: ['p0', 'p1', 'p7'] }
    const members = await api.post(cohorts, chosen)
    const filters = { properties: { type: 'OR', values: [{ ...pro, value: 'free' }] } }
    const free = await api.post(cohorts, { name: 'Free', filters })
    const over = { key: 'n', value: 4, operator: 'gt' }
    const newer = { key: 'created_at', type: 'person_metadata', operator: 'is_date_after', value: '2026-01-06' }
    const inCohort = { key: 'id', value: free.id, type: 'cohort' }
    for (const [params, ids] of [
      [{ properties: [pro] }, ['p6', 'p3', 'p0']],
      [{ properties: [{ ...pro, value: ['PRO', 'other'] }] }, ['p6', 'p3', 'p0']],
      [{ properties: [{ ...pro, operator: 'is_not' }, over] }, ['p7', 'p5']],
      [{ properties: [newer] }, ['p7', 'p6']],
      [{ properties: [{ key: 'absent', operator: 'is_not_set' }], search: 'p6' }, ['p6']],
      [{ properties: [pro], distinct_id: 'p3' }, ['p3']],
      [{ properties: [pro], distinct_id: 'p4' }, []],
      [{ properties: [pro], uuid: uuidOf(6) }, ['p6']],
      [{ properties: [inCohort, over] }, ['p7', 'p5']],
      [{ properties: [{ ...inCohort, operator: 'not_in' }] }, ['p6', 'p3', 'p0']],
      [{ cohort: members.id }, ['p7', 'p1', 'p0']],
      [{ cohort: members.id, properties: [pro] }, ['p0']],
      [{ email: 'p5@example.com' }, ['p5']],
      [{ email: 'example.com' }, []],
      [{ properties: [] }, ['p7', 'p6', 'p5', 'p4', 'p3', 'p2', 'p1', 'p0']],
    ] as const)
      assert.deepEqual(await found(api, params), ids, JSON.stringify(params))
    const { text } = await api.call('GET', `${list}export/?${query({ properties: [pro], cohort: members.id })}`)
    assert.equal(text.trimEnd().split('\n').length, 1)
    assert.deepEqual(JSON.parse(text).distinct_ids, ['p0'], 'a download takes the same filters')
  })

  it('are found by an exact value in whatever notation it is stored', async t => {
    const api = await startManagement(t)
    const values: readonly JsonValue[] = [
      ...['Kelvin', '\u212aELVIN', 'kelvin@example.com', 'İnfo@x', 'i\u0307nfo@x', 'say "hi"\\/', 'tab\tnew\nend'],
      ...['12345', 12345, '12345.0', parseJson('12345.0'), 100_000, parseJson('1e5'), '100000.0', parseJson('1.50')],
      ...['50%_off', true, 'TRUE', null, 'NULL', 'Straße', 'ΟΔΟΣ', parseJson('{"b":1,"a":2}'), 'bell\u0007', '日本語'],
      ['abc', 'def'],
    ]
    await api.commit(newPersons(values.map((value, index) => ({ ids: [`p${index}`], properties: { value } }))))
    const settings = { timezone: 'UTC', propertyMatchingVersion: 2 } as const
    const filters = [
      ...values.filter(value => value !== null).map(toComparableText),
      ...values.filter(value => value !== null),
    ]
    for (const value of [...filters, ['Kelvin', '12345'], ['true', 'say "HI"\\/'], 'absent-one', 'kelvi%']) {
      const { matches } = compilePropertyMatch('exact', value, settings)!
      const expected = values.flatMap((own, index) => (matches(own, 0) === true ? [`p${index}`] : [])).reverse()
      const params = { properties: toCompactJson([{ key: 'value', operator: 'exact', value }]) }
      const body = await api.get(`${list}?${new URLSearchParams(params)}`)
      const isTruth = /^(?:true|false)$/i.test(toComparableText(value))
      if (!isTruth) assert.deepEqual(firstIds(body.results), expected, toCompactJson(value))
    }
  })

  it('are preselected by the state store, 2,000 persons per read, if few persons have the exact value', async t => {
    const read: number[] = []
    const api = await withPersons(t, 4_100, {
      wrap: store => ({
        ...store,
        listPersonsBelow: async (...asked) => {
          const page = await store.listPersonsBelow(...asked)
          read.push(page.results.length)
          return page
        },
      }),
    })
    assert.deepEqual(await found(api, { email: 'p7@EXAMPLE.com' }), ['p7'])
    assert.deepEqual(read.splice(0), [0, 0, 1])
    const both = { properties: [{ key: 'email', value: ['p2500@example.com', 'p1@example.com'] }, pro], cursor: 0 }
    assert.deepEqual(await pagesOf(api, `${list}?${query(both)}`), [[]])
    assert.deepEqual(read.splice(0), [0, 0, 0])
    const { text } = await api.call('GET', `${list}export/?${query({ email: 'p0@example.com' })}`)
    assert.deepEqual(JSON.parse(text).distinct_ids, ['p0'])
    assert.deepEqual(read.splice(0), [0, 0, 1])
    assert.deepEqual(await found(api, { email: 'p7@example.com', distinct_id: 'p7' }), ['p7'])
    assert.deepEqual(read.splice(0), [1])
    assert.deepEqual(await found(api, { search: 'P7@example.com' }), ['p7'], 'a search has no conditions')
    assert.deepEqual(read.splice(0), [0, 0, 1])
    const exported = await api.call('GET', `${list}export/?search=p7@example.com`)
    assert.deepEqual(JSON.parse(exported.text).distinct_ids, ['p7'])
    assert.deepEqual(read.splice(0), [0, 0, 1])
  })

  it('are found in pages by `offset`, which together form one list', async t => {
    const api = await withPersons(t, 2_450)
    const found24 = Array.from({ length: 2_450 }, (_, index) => `p${2_449 - index}`).filter(id => id.startsWith('p24'))
    for (const limit of [7, 30, 60, found24.length, 100]) {
      const pages = await pagesOf(api, `${list}?search=P24&limit=${limit}`)
      assert.ok(pages.slice(0, -1).every(page => page.length === limit))
      assert.deepEqual(pages.flat(), found24, `limit ${limit}`)
    }
    assert.deepEqual(await found(api, { search: 'p24', offset: 500 }), [])
  })

  it('come in full pages linked by `next`', async t => {
    const api = await withPersons(t, 500)
    const ids = Array.from({ length: 167 }, (_, index) => `p${498 - 3 * index}`)
    const pages = await pagesOf(api, `${list}?${query({ properties: [pro], limit: 50 })}`)
    assert.deepEqual(fieldOf(pages, 'length'), [50, 50, 50, 17])
    assert.deepEqual(pages.flat(), ids)
    const all = await pagesOf(api, `${list}?cursor=0&limit=300`)
    assert.deepEqual(fieldOf(all, 'length'), [300, 200])
    await api.refuses('GET', list, [`${query({ properties: [pro], offset: 50 })}`, 'offset', 'invalid_input', /next/])
  })

  it('cause an error if the search takes too long, unless the request has a cursor', async t => {
    let advanceMs = 0
    const api = await withPersons(t, 450, {
      before: { listPersonsBelow: () => api.clock.advance(advanceMs) },
    })
    const rare = { properties: [{ key: 'n', operator: 'between', value: [10, 11] }] }
    assert.deepEqual(await found(api, rare), ['p11', 'p10'], 'searched to the end while there is time')
    advanceMs = 11_000
    await api.refuses('GET', list, [`${query(rare)}`, 'limit', 'invalid_input', /with 0 persons.*cursor=0/])
    assert.deepEqual(await pagesOf(api, `${list}?${query({ ...rare, cursor: 0 })}`), [[], [], ['p11', 'p10']])
  })

  it('do not use up the search time of other requests: one that waits too long gets 429 or, with a cursor, `next`', async t => {
    const api = await withPersons(t, 650, {
      before: { listPersonsBelow: () => api.clock.advance(1_000) },
    })
    const rare = { properties: [{ key: 'n', operator: 'between', value: [10, 11] }] }
    const ask = (count: number, params: object) =>
      Promise.all(Array.from({ length: count }, () => api.call('GET', `${list}?${query({ ...rare, ...params })}`)))
    for (const { status, body, text } of await ask(4, {}))
      assert.deepEqual([status, body.results?.length], [200, 2], text)
    const many = await ask(14, {})
    const late = many.filter(({ status }) => status !== 200)
    assert.ok(late.length > 0 && late.length < many.length, 'some find all in their time')
    for (const { status, body, headers } of late)
      assert.deepEqual([status, body.code, headers.get('retry-after')], [429, 'too_many_scans', '5'])
    for (const { status, body } of await ask(14, { cursor: 0 }))
      assert.deepEqual([status, body.results.length === 2 || body.next !== null], [200, true])
  })

  it('are searched by one request per project at a time, and all requests are answered', async t => {
    let underWay = 0
    let mostUnderWay = 0
    const api = await withPersons(t, 300, {
      wrap: store => ({
        ...store,
        async listPersonsBelow(...asked) {
          mostUnderWay = Math.max(mostUnderWay, ++underWay)
          return store.listPersonsBelow(...asked).finally(() => underWay--)
        },
      }),
    })
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => api.call('GET', `${list}?${query({ properties: [pro] })}`)),
    )
    for (const { status, body } of answers) assert.deepEqual([status, body.results.length], [200, 100])
    assert.equal(mostUnderWay, 1)
  })

  it('cause an error with the path of the mistake if a condition is invalid', async t => {
    const api = await startManagement(t)
    for (const [properties, code, attr] of [
      ['x', 'invalid', 'properties'],
      [{ type: 'AND', values: [] }, 'invalid', 'properties'],
      [Array(21).fill(pro), 'invalid_input', 'properties'],
      [[1], 'invalid', 'properties.0'],
      [[pro, { value: 1 }], 'required', 'properties.1.key'],
      [[{ key: 'a' }], 'required', 'properties.0.value'],
      [[{ ...pro, operator: 'like' }], 'invalid_input', 'properties.0.operator'],
      [[{ ...pro, operatr: 'is_not' }], 'invalid_input', 'properties.0.operatr'],
      [[{ ...pro, operator: 'gt' }], 'invalid_input', 'properties.0.value'],
      [[{ ...pro, operator: 'regex', value: '(' }], 'invalid_input', 'properties.0.value'],
      [[{ ...pro, type: 'event' }], 'invalid_input', 'properties.0.type'],
      [[{ key: 'id', type: 'cohort', value: 7 }], 'invalid_input', 'properties.0.value'],
    ] as const)
      await api.refuses('GET', list, [`${query({ properties })}`, attr, code])
    for (const [name, value, code] of [
      ['cohort', '7', 'invalid_input'],
      ['cohort', 'x', 'invalid'],
      ['cohort', '', 'invalid_input'],
      ['properties', '', 'invalid_input'],
      ['email', '', 'invalid_input'],
    ] as const)
      await api.refuses('GET', list, [`${name}=${value}`, name, code])
  })

  it('require the scope cohort:read if a filter refers to a cohort', async t => {
    const api = await withPersons(t, 1)
    const cohort = await api.post('/api/projects/1/cohorts/', { name: 'S', is_static: true })
    const byCohort = [
      query({ cohort: cohort.id }),
      query({ properties: [{ key: 'id', type: 'cohort', value: cohort.id }] }),
    ]
    const persons = await api.addKey(['person:read'])
    const both = await api.addKey(['person:read', 'cohort:read'])
    for (const filter of [pro, { ...pro, group_type_index: 0 }])
      await api.get(`${list}?${query({ properties: [filter] })}`, persons)
    for (const path of [list, `${list}export/`])
      for (const params of byCohort) {
        const refused = await api.call('GET', `${path}?${params}`, { key: persons })
        assert.deepEqual([refused.status, refused.body.code], [403, 'permission_denied'])
        const { status } = await fetch(`${api.url}${path}?${params}`, { headers: { authorization: `Bearer ${both}` } })
        assert.equal(status, 200)
      }
  })
})
