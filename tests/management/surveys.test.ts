import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { encodeAuthor } from '#wire/management/author.ts'
import { fieldOf, fieldsOf } from '../support/fields-of.ts'
import { allScopesAuthor, type ManagementApi, startManagement } from '../support/management-api.ts'

const surveys = '/api/projects/1/surveys/'
const flags = '/api/projects/1/feature_flags/'
const questions = [{ id: 'q1', type: 'open', question: 'How is it?' }]
const started = { name: 'Feedback', type: 'popover', questions, start_date: '2026-04-30T10:00:00Z' }
const onlyPro = {
  groups: [
    { properties: [{ key: 'plan', type: 'person', operator: 'exact', value: ['pro'] }], rollout_percentage: 50 },
  ],
}

const create = (api: ManagementApi, body: object) => api.post(surveys, body)

async function flag(api: ManagementApi, id: number) {
  return await api.get(`${flags}${id}/`)
}

describe('surveys', () => {
  it('store the fields for browsers as they were sent, and add ids to questions', async t => {
    const api = await startManagement(t)
    const text = `{"name":"Score","type":"widget","description":"NPS","schedule":"always","enable_partial_responses":true,
      "questions":[{"type":"rating","question":"How likely?","scale":10.0,"__proto__":{"x":1}},{"id":"q2","type":"open","question":"Why?"}],
      "conditions":{"url":"/pay","urlMatchType":"icontains"},"appearance":{"position":"left","borderColor":"#000"}}`
    const created = await api.call('POST', surveys, { body: text })
    assert.equal(created.status, 201, created.text)
    const body = await api.get(`${surveys}${created.body.id}/`)
    assert.deepEqual(
      [body.name, body.type, body.description, body.schedule, body.enable_partial_responses],
      ['Score', 'widget', 'NPS', 'always', true],
    )
    assert.match(body.questions[0].id, /^[0-9a-f-]{36}$/)
    assert.equal(body.questions[1].id, 'q2')
    assert.match(created.text, /"scale":10\.0,"__proto__":\{"x":1\}/)
    assert.deepEqual(body.conditions, { url: '/pay', urlMatchType: 'icontains' })
    assert.deepEqual([body.start_date, body.end_date, body.archived], [null, null, false])
    assert.deepEqual(body.created_by, encodeAuthor(allScopesAuthor))
  })

  it('create a flag for persons who have not answered, which is on while the survey runs', async t => {
    const api = await startManagement(t)
    const survey = await create(api, { ...started, start_date: null })
    const own = survey.internal_targeting_flag
    assert.equal(own.key, `survey-targeting-${survey.id}-custom`)
    assert.deepEqual(fieldsOf(own.filters.groups[0].properties, 'key', 'operator'), [
      [`$survey_dismissed/${survey.id}`, 'is_not_set'],
      [`$survey_responded/${survey.id}`, 'is_not_set'],
    ])
    assert.equal(survey.targeting_flag, null)
    const activeAfter = async (body: object) => {
      await api.patch(`${surveys}${survey.id}/`, body)
      return (await flag(api, own.id)).active
    }
    assert.equal(own.active, false, 'a draft is not shown')
    assert.equal(await activeAfter({ start_date: '2026-05-01' }), true)
    assert.equal(await activeAfter({ end_date: '2026-05-02T00:00:00+02:00' }), false)
    assert.equal(await activeAfter({ end_date: null }), true)
    assert.equal(await activeAfter({ archived: true }), false)
    const body = await api.get(`${surveys}${survey.id}/`)
    assert.deepEqual([body.start_date, body.end_date, body.archived], ['2026-05-01T00:00:00.000Z', null, true])
  })

  it('create, change and delete their targeting flag when targeting filters are set, changed and removed', async t => {
    const api = await startManagement(t)
    const survey = await create(api, { ...started, targeting_flag_filters: onlyPro })
    const { id, key, filters, active } = survey.targeting_flag
    assert.deepEqual([key, filters, active], [`survey-targeting-${survey.id}`, onlyPro, true])
    const everyTenth = { groups: [{ properties: [], rollout_percentage: 10 }] }
    const narrowed = await api.patch(`${surveys}${survey.id}/`, { targeting_flag_filters: everyTenth })
    assert.deepEqual(narrowed.targeting_flag.filters, everyTenth)
    assert.deepEqual([narrowed.targeting_flag.id, (await flag(api, id)).version], [id, 2])
    const opened = await api.patch(`${surveys}${survey.id}/`, { remove_targeting_flag: true })
    assert.equal(opened.targeting_flag, null)
    assert.equal((await flag(api, id)).deleted, true)
    const again = await api.patch(`${surveys}${survey.id}/`, { targeting_flag_filters: onlyPro })
    assert.deepEqual(again.targeting_flag.filters, onlyPro)
    assert.notEqual(again.targeting_flag.id, id)
  })

  it('reject filters that a flag would reject, and write nothing', async t => {
    const api = await startManagement(t)
    const wrong = { groups: [{ properties: [], rollout_percentage: 101 }] }
    await api.refuses('POST', surveys, [
      { ...started, targeting_flag_filters: wrong },
      'targeting_flag_filters.groups.0.rollout_percentage',
    ])
    assert.equal((await api.get(surveys)).count, 0)
    assert.equal((await api.get(flags)).count, 0)
  })

  it('reject filters that refer to missing objects', async t => {
    const api = await startManagement(t)
    const unknown = { key: '999', type: 'flag', operator: 'flag_evaluates_to', value: true }
    const targeting_flag_filters = { groups: [{ properties: [unknown], rollout_percentage: 50 }] }
    const attr = 'targeting_flag_filters.groups.0.properties.0.key'
    await api.refuses('POST', surveys, [{ ...started, targeting_flag_filters }, attr, 'invalid_input'])
    const other = await api.post(flags, { key: 'other' })
    const known = { groups: [{ properties: [{ ...unknown, key: String(other.id) }], rollout_percentage: 50 }] }
    const survey = await create(api, { ...started, targeting_flag_filters: known })
    assert.deepEqual(survey.targeting_flag.filters, known)
  })

  it('are not written, nor are any of their flags, if one of the flags cannot be written', async t => {
    const api = await startManagement(t)
    const survey = await create(api, { ...started, targeting_flag_filters: onlyPro })
    // Here the keys of the next survey are known in advance, and the key of its second flag is taken.
    const ids = (index: number) => `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`
    const next = Number(survey.id.slice(-4))
    for (let index = next; index < next + 40; index++) {
      const body = { key: `survey-targeting-${ids(index)}-custom`, filters: { groups: [] } }
      await api.call('POST', flags, { body })
    }
    const before = (await api.get(flags)).count
    await api.refuses('POST', surveys, [{ ...started, targeting_flag_filters: onlyPro }, null, 'conflict'])
    assert.equal((await api.get(flags)).count, before, 'the flag that could be written is not there')
    assert.equal((await api.get(surveys)).count, 1)
  })

  it('can be linked only to an existing flag', async t => {
    const api = await startManagement(t)
    const linked = await api.post(flags, { key: 'linked' })
    const survey = await create(api, { ...started, linked_flag_id: linked.id })
    assert.deepEqual([survey.linked_flag.key, survey.linked_flag_id], ['linked', linked.id])
    const unlinked = await api.patch(`${surveys}${survey.id}/`, { linked_flag_id: null })
    assert.equal(unlinked.linked_flag, null)
    await api.refuses('POST', surveys, [{ ...started, linked_flag_id: 999 }, 'linked_flag_id'])
    await api.refuses('PATCH', `${surveys}${survey.id}/`, [{ linked_flag_id: 999 }, 'linked_flag_id'])
  })

  it('are deleted together with the flags that they created, but not with a linked flag', async t => {
    const api = await startManagement(t)
    const linked = await api.post(flags, { key: 'linked' })
    const survey = await create(api, { ...started, linked_flag_id: linked.id, targeting_flag_filters: onlyPro })
    assert.equal((await api.call('DELETE', `${surveys}${survey.id}/`)).status, 204)
    assert.equal((await api.call('GET', `${surveys}${survey.id}/`)).status, 404)
    const left = fieldOf((await api.get(flags)).results, 'key')
    assert.deepEqual(left, ['linked'])
  })

  it('reject invalid surveys', async t => {
    const api = await startManagement(t)
    for (const [change, attr] of [
      [{ type: 'telepathy' }, 'type'],
      [{ questions: [{ type: 'open' }] }, 'questions.0.question'],
      [{ questions: [{ type: 'essay', question: 'x' }] }, 'questions.0.type'],
      [{ schedule: 'daily' }, 'schedule'],
      [{ start_date: 'tomorrow' }, 'start_date'],
      [{ name: null }, 'name'],
    ] as const)
      await api.refuses('POST', surveys, [{ ...started, ...change }, attr])
  })

  it('need questions before they start, unless their type is `api`', async t => {
    const api = await startManagement(t)
    const { questions: _none, ...without } = started
    for (const body of [without, { ...without, questions: [] }, { ...without, questions: null }]) {
      await api.refuses('POST', surveys, [body, 'questions', 'required'])
    }
    await create(api, { ...without, type: 'api' })
    const draft = await create(api, { ...without, start_date: null })
    const start = { start_date: '2026-05-01T00:00:00Z' }
    await api.refuses('PATCH', `${surveys}${draft.id}/`, [start, 'questions'])
    await api.patch(`${surveys}${draft.id}/`, { ...start, questions })
    assert.equal((await api.call('PATCH', `${surveys}${draft.id}/`, { body: { questions: [] } })).status, 400)
  })

  it('are listed newest first, filtered by name and archived state', async t => {
    const api = await startManagement(t)
    await create(api, started)
    api.clock.advance(1)
    await create(api, { ...started, name: 'Exit poll', archived: true })
    const names = async (query: string) => fieldOf((await api.get(`${surveys}${query}`)).results, 'name')
    assert.deepEqual(await names(''), ['Exit poll', 'Feedback'])
    assert.deepEqual(await names('?archived=false'), ['Feedback'])
    assert.deepEqual(await names('?search=POLL'), ['Exit poll'])
  })
})
