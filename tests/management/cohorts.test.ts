import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { encodeAuthor } from '#wire/management/author.ts'
import { fieldOf } from '../support/fields-of.ts'
import { cohortFilter, flagFilter, flagOn, pro, treeOf } from '../support/flag-documents.ts'
import { allScopesAuthor, allScopesKey, type ManagementApi, startManagement } from '../support/management-api.ts'
import { aPerson, created, newPersons } from '../support/values.ts'

const path = '/api/projects/1/cohorts/'
const flagsPath = '/api/projects/1/feature_flags/'
const uuidOf = (index: number) => `00000000-0000-5000-8000-${String(index).padStart(12, '0')}`
/** Persons `user-1`, `user-2`, … with uuids of the same number. */
async function addPersons(api: ManagementApi, count: number): Promise<void> {
  const numbers = Array.from({ length: count }, (_, index) => index + 1)
  await api.commit(newPersons(numbers.map(n => ({ ids: [`user-${n}`], uuid: uuidOf(n) }))))
}

describe('cohorts', () => {
  it('are created from filters, and the answer waits until they are served', async t => {
    const api = await startManagement(t)
    const before = api.served.length
    const filters = treeOf(pro)
    const body = await api.post(path, { name: 'Paying', filters })
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
      created_by: encodeAuthor(allScopesAuthor),
      experiment_set: [],
    })
    assert.equal(api.served.length, before + 1)
    assert.deepEqual(await api.get(`/api/environments/@current/cohorts/1`), body)
  })

  it('if static, accept persons by id, uuid and distinct id, and report unknown persons', async t => {
    const api = await startManagement(t)
    await addPersons(api, 4)
    const body = await api.post(path, {
      name: 'Chosen',
      is_static: true,
      _create_static_person_ids: [1, '2', uuidOf(3).toUpperCase(), 77, uuidOf(88)],
      distinct_ids: ['user-3', 'user-4', 'nobody'],
    })
    assert.equal(body.count, 4)
    assert.deepEqual(body.members, {
      changed: 4,
      unchanged: 1,
      unknown_count: 3,
      unknown: ['77', uuidOf(88), 'nobody'],
    })
  })

  it('if static, can gain or lose one or several persons, and repeating the request changes nothing', async t => {
    const api = await startManagement(t)
    await addPersons(api, 3)
    await api.post(path, { name: 'Chosen', is_static: true })
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
    await api.post(path, { name: 'Paying', filters: treeOf(pro) })
    await api.refuses('PATCH', `${path}2/add_persons_to_static_cohort/`, [{ person_ids: [1] }, 'is_static'])
  })

  it('can be listed newest first, searched by name, changed, deleted and restored', async t => {
    const api = await startManagement(t)
    for (const name of ['Paying', 'Beta users', 'Beta admins']) await api.post(path, { name, filters: treeOf(pro) })
    const found = await api.get(`${path}?search=bETA&limit=1`)
    assert.deepEqual([found.count, found.results[0].name], [2, 'Beta admins'])
    assert.match(found.next, /offset=1/)
    const patched = await api.patch(`${path}1/`, { name: null, description: 'Who pays', version: 1 })
    assert.deepEqual([patched.version, patched.name], [2, ''])
    assert.deepEqual(patched.filters, treeOf(pro))
    const stale = await api.call('PATCH', `${path}1/`, { body: { name: 'x', version: 1 } })
    assert.equal(stale.status, 409)
    assert.deepEqual(stale.body.extra, { current_version: 2, sent_version: 1 })
    assert.equal((await api.call('DELETE', `${path}2/`)).status, 204)
    assert.equal((await api.call('DELETE', `${path}2/`)).status, 404)
    assert.equal((await api.get(`${path}2/`)).deleted, true)
    assert.equal((await api.get(path)).count, 2)
    assert.equal((await api.patch(`${path}2/`, { deleted: false })).deleted, false)
    assert.equal((await api.call('GET', `${path}99/`)).status, 404)
    assert.equal((await api.call('GET', `${path}x/`)).status, 404)
    assert.equal((await api.post(path, { name: 'next', filters: treeOf() })).id, 4)
  })

  it('ignore a `deleted` field when they are created', async t => {
    const api = await startManagement(t)
    for (const deleted of [true, null, 'no']) {
      const body = await api.post(path, { name: 'New', is_static: true, deleted })
      assert.equal(body.deleted, false)
    }
    const document = await api.get('/api/schema/')
    assert.ok(!('deleted' in document.components.schemas.NewCohort.properties))
  })

  it('cannot change between static and dynamic', async t => {
    const api = await startManagement(t)
    await api.post(path, { name: 'Chosen', is_static: true })
    await api.patch(`${path}1/`, { is_static: true, name: 'x' })
    await api.refuses('PATCH', `${path}1/`, [{ is_static: false, filters: treeOf(pro) }, 'is_static'])
    await api.refuses('POST', path, [
      { filters: treeOf(pro), distinct_ids: ['a'] },
      'is_static',
      undefined,
      /Send is_static: true/,
    ])
  })

  it('accept an uploaded file of distinct ids or uuids, with or without a header, and CSV text', async t => {
    const api = await startManagement(t)
    await addPersons(api, 3)
    const form = new FormData()
    form.set('name', 'true')
    form.set('is_static', 'true')
    form.set('csv', new File([`Distinct ID\r\nuser-1\r\n\r\n"user-2"\r\nghost\r\n`], 'ids.csv', { type: 'text/csv' }))
    const created = await send(api, 'POST', path, form)
    assert.equal(created.status, 201, created.text)
    assert.deepEqual([created.body.name, created.body.count], ['true', 2])
    assert.deepEqual(created.body.members, { changed: 2, unchanged: 0, unknown_count: 1, unknown: ['ghost'] })
    const more = new FormData()
    more.set('csv', new File([`${uuidOf(3)}\nuser-1`], 'ids.csv'))
    assert.deepEqual((await send(api, 'PATCH', `${path}1/`, more)).body.members, {
      changed: 1,
      unchanged: 1,
      unknown_count: 0,
      unknown: [],
    })
    for (const encoding of ['utf16le', 'utf-16be'] as const) {
      const bytes = Buffer.from('\ufeffName;Person .id\r\nJürgen;2', 'utf16le')
      const sheet = new FormData()
      sheet.set('csv', new File([encoding === 'utf16le' ? bytes : bytes.swap16()], 'ids.csv'))
      const { body } = await send(api, 'PATCH', `${path}1/`, sheet)
      assert.deepEqual([body.members.unchanged, body.members.unknown], [1, []], encoding)
    }
    const nobody = await api.patch(`${path}1/`, { csv: 'uuid\nghost' })
    assert.equal(nobody.warnings[0].code, 'nobody_found')
    for (const csv of ['person_id,name\n', '', ' \r\n', 'sep=;\n']) {
      await api.refuses('PATCH', `${path}1/`, [{ csv }, 'csv'])
    }
    const text = await api.post(path, { is_static: true, csv: 'person_id,name\n2,"Ada, B."\n77,x' })
    assert.deepEqual([text.count, text.members.unknown], [1, ['77']])
    await api.refuses('POST', path, [{ is_static: true, csv: 'a,b\nuser-1,2' }, 'csv'])
  })

  it('reject unreadable forms, forms with too many fields, and bodies that are too large', async t => {
    const api = await startManagement(t)
    const headers = { 'content-type': 'multipart/form-data; boundary=b' }
    for (const body of [
      '--b\r\nhalf',
      `${'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'.repeat(1_000)}--b--\r\n`,
    ])
      assert.deepEqual((await api.call('POST', path, { body, headers })).body.code, 'invalid')
    const field = '--b\r\nContent-Disposition: form-data; name="is_static"\r\n'
    const longHead = `${field}${'X-Mine: 1\r\n'.repeat(400)}\r\ntrue\r\n--b--\r\n`
    assert.match(
      (await api.call('POST', path, { body: longHead, headers })).body.detail,
      /must have fewer than 4096 bytes/,
    )
    const form = new FormData()
    form.set('csv', new File(['x'.repeat(8 * 1024 * 1024)], 'ids.csv'))
    const tooLarge = await send(api, 'POST', path, form)
    assert.equal(tooLarge.status, 413)
    assert.match(tooLarge.body.detail, /at most 8388608 bytes.*PATCH adds members/)
    await api.refuses('POST', path, [{ is_static: true, csv: 'x'.repeat(1024 * 1024) }, null, 'payload_too_large'])
  })

  it('accept a file with the maximum number of uuids', async t => {
    const api = await startManagement(t)
    const uuids = Array.from(
      { length: 100_000 },
      (_, row) => `01900000-0000-7000-8000-${String(row).padStart(12, '0')}`,
    )
    const form = new FormData()
    form.set('name', 'Many')
    form.set('is_static', 'true')
    form.set('csv', new File([uuids.join('\n')], 'ids.csv'))
    const { status, body } = await send(api, 'POST', path, form)
    assert.deepEqual([status, body.members?.unknown_count], [201, 100_000], body.detail)
  })

  it('add thousands of members in one request, and report unknown ones', async t => {
    const api = await startManagement(t)
    await addPersons(api, 5_000)
    const ids = Array.from({ length: 10_000 }, (_, index) => `user-${index + 1}`)
    const form = new FormData()
    form.set('is_static', 'true')
    form.set('csv', new File([ids.join('\n')], 'ids.csv'))
    const { body } = await send(api, 'POST', path, form)
    assert.deepEqual([body.count, body.members.unknown_count], [5_000, 5_000])
    assert.deepEqual(body.members.unknown, ids.slice(5_000))
  })
})

describe('filters of a cohort', () => {
  it('are refused with the path of a mistake, or stored with a warning for a key with all scopes', async t => {
    const api = await startManagement(t)
    const first = 'filters.properties.values.0'
    const key = await api.addKey(['cohort:write'])
    const refused: [filters: object, attr: string][] = [
      [{}, 'filters.properties'],
      [{ properties: { type: 'XOR', values: [] } }, 'filters.properties.type'],
      [{ properties: { type: 'OR' } }, 'filters.properties.values'],
      [treeOf({ type: 'group', key: 'plan', value: 'x' }), `${first}.type`],
      [treeOf({ type: 'behavioral', key: 'e', value: 'performed_event' }), `${first}.type`],
      [treeOf({ ...pro, operator: 'like' }), `${first}.operator`],
      [treeOf({ type: 'OR', values: [{ ...pro, operatr: 'is_not' }] }), `${first}.values.0.operatr`],
      [treeOf({ ...pro, negated: true }), `${first}.negated`],
      [treeOf({ ...pro, operator: 'gt', value: 'old' }), `${first}.value`],
      [treeOf({ ...pro, operator: 'regex', value: '(?=a)' }), `${first}.value`],
      [treeOf({ ...pro, negation: 'yes' }), `${first}.negation`],
      [treeOf(cohortFilter('Beta')), `${first}.value`],
      [treeOf({ type: 'OR', values: [cohortFilter(77)] }), `${first}.values.0.value`],
      [treeOf(pro, flagFilter(77)), 'filters.properties.values.1.key'],
    ]
    for (const [filters, attr] of refused) {
      await api.refuses('POST', path, [{ filters }, attr])
      const kept = await api.post(`${path}?skip_validation=true`, { filters })
      assert.deepEqual([kept.filters, kept.warnings[0].attr], [filters, attr])
      assert.equal((await api.call('POST', `${path}?skip_validation=true`, { key, body: { filters } })).status, 403)
    }
  })

  it('may be nested at most 64 groups deep', async t => {
    const api = await startManagement(t)
    const nested = (depth: number): unknown => (depth === 0 ? pro : { type: 'AND', values: [nested(depth - 1)] })
    await api.post(path, { filters: treeOf(nested(64)) })
    const deeper = { filters: treeOf(nested(65)) }
    await api.refuses('POST', path, [
      deeper,
      `filters.properties${'.values.0'.repeat(65)}.values`,
      'invalid_input',
      '64',
    ])
  })

  it('may have at most a thousand conditions', async t => {
    const api = await startManagement(t)
    await api.refuses('POST', path, [{ filters: treeOf(...Array(1_001).fill(pro)) }, 'filters.properties.values.1000'])
  })
})

describe('the persons in a cohort', () => {
  it('are its members, in pages, if the cohort is static', async t => {
    const api = await startManagement(t)
    await addPersons(api, 5)
    await api.post(path, { is_static: true, _create_static_person_ids: [1, 2, 4, 5] })
    assert.deepEqual(await personsOf(api, 1, 3), [[1, 2, 4], [5]])
  })

  it('are those who match conditions on properties, static cohorts and flags, if the cohort is dynamic', async t => {
    const api = await startManagement(t)
    const persons = Array.from({ length: 7 }, (_, index) =>
      aPerson({ uuid: uuidOf(index + 1), properties: { plan: index % 2 === 0 ? 'pro' : 'free' } }),
    )
    await api.commit({ persons: persons.map(created) })
    await api.post(path, { name: 'Chosen', is_static: true, _create_static_person_ids: [1, 2, 3] })
    await api.post(flagsPath, { key: 'a', filters: flagOn(pro) })
    await api.post(path, { name: 'Paying', filters: treeOf(pro) })
    await api.post(path, { name: 'Both', filters: treeOf(flagFilter(1), cohortFilter(1)) })
    assert.deepEqual(await personsOf(api, 2, 2), [
      [1, 3],
      [5, 7],
    ])
    assert.deepEqual(await personsOf(api, 3, 10), [[1, 3]])
    const counted = await api.post(`${path}2/recount/`)
    assert.deepEqual([counted.count, counted.is_calculating], [4, false])
    assert.equal((await api.get(`${path}2/`)).last_calculation, '2026-05-01T12:00:00.000Z')
    assert.equal((await api.post(`${path}1/recount/`)).count, 3)
    const changed = await api.patch(`${path}2/`, { filters: treeOf() })
    assert.deepEqual([changed.count, changed.last_calculation], [null, null])
    assert.equal((await api.post(`${path}2/recount/`)).count, 7)
  })

  it('cannot be listed when the cohort cannot be evaluated', async t => {
    const api = await startManagement(t)
    await addPersons(api, 1)
    await api.post(`${path}?skip_validation=true`, { filters: treeOf(cohortFilter(99)) })
    await api.refuses('GET', `${path}1/persons/`, ['', 'filters', 'invalid_input', 'dependency_not_found_cohort'])
    await api.refuses('POST', `${path}1/recount/`, [{}, 'filters', 'invalid_input', 'dependency_not_found_cohort'])
  })

  it('are shown only to keys with a scope for persons', async t => {
    const api = await startManagement(t)
    await api.post(path, { is_static: true })
    const key = await api.addKey(['cohort:write'])
    await api.get(`${path}1/`, key)
    assert.equal((await api.call('GET', `${path}1/persons/`, { key })).status, 403)
  })
})

/** Ids of the persons on each page. */
async function personsOf(api: ManagementApi, cohortId: number, limit: number): Promise<number[][]> {
  const pages = await api.pages(`${path}${cohortId}/persons/?limit=${limit}`)
  return pages.map(page => fieldOf(page, 'id'))
}

async function send(api: ManagementApi, method: string, address: string, form: FormData) {
  const response = await fetch(api.url + address, {
    method,
    body: form,
    headers: { authorization: `Bearer ${allScopesKey}` },
  })
  const text = await response.text()
  return { status: response.status, text, body: JSON.parse(text) }
}
