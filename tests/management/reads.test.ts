import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { noEventUsage } from '#core/usage.ts'
import { PortError } from '#ports/port-error.ts'
import { fieldOf } from '../support/fields-of.ts'
import { startManagement } from '../support/management-api.ts'
import { aGroup, created } from '../support/values.ts'

describe('groups', () => {
  it('can be deleted with their type, which frees the type’s index, unless flags use the type', async t => {
    const api = await startManagement(t)
    const types = ['company', 'junk'].map((name, index) => ({ projectId: 1, name, index }))
    const groups = Array.from({ length: 1_200 }, (_, index) => created(aGroup({ typeIndex: 1, key: `k${index}` })))
    await api.commit({ groupTypes: types, groups: [created(aGroup()), ...groups] })
    const path = '/api/projects/1/groups_types'
    const flags = [
      { key: 'set', filters: { groups: [{ properties: [], aggregation_group_type_index: 1 }] } },
      { key: 'whole', active: false, filters: { aggregation_group_type_index: 1, groups: [{ properties: [] }] } },
      { key: 'other', filters: { aggregation_group_type_index: 0, groups: [{ properties: [] }] } },
    ]
    for (const body of flags) await api.post('/api/projects/1/feature_flags/', body)
    const inUse = 'used by the flags whole, set.'
    await api.refuses('DELETE', `${path}/1/`, [undefined, 'group_type_index', 'invalid_input', inUse])
    for (const key of ['set', 'whole']) await api.call('DELETE', `/api/projects/1/feature_flags/${key}/`)

    const servedBefore = api.served.length
    assert.equal((await api.call('DELETE', `${path}/1/`)).status, 204)
    assert.equal(api.served.length, servedBefore + 1, 'answered when the definitions are served')
    assert.deepEqual(await api.get(`${path}/`), [{ group_type: 'company', group_type_index: 0 }])
    assert.deepEqual((await api.get('/api/projects/1/groups/?group_type_index=1')).results, [])
    assert.equal((await api.get('/api/projects/1/groups/?group_type_index=0')).results.length, 1)
    for (const index of ['1', '4', '5', '-1', 'company', '00'])
      assert.equal((await api.call('DELETE', `${path}/${index}/`)).status, 404, index)
  })

  it('are deleted completely by a second request if the first was interrupted', async t => {
    let callsUntilFailure = 2
    const api = await startManagement(t, {
      before: {
        deleteGroupsOfType: () => {
          if (callsUntilFailure-- === 0) throw new PortError('state', 'timeout')
        },
      },
    })
    const groups = Array.from({ length: 1_200 }, (_, index) => created(aGroup({ key: `k${index}` })))
    await api.commit({ groupTypes: [{ projectId: 1, name: 'junk', index: 0 }], groups })
    const path = '/api/projects/1/groups_types'
    assert.equal((await api.call('DELETE', `${path}/0/`)).status, 503)
    assert.deepEqual(await api.get(`${path}/`), [{ group_type: 'junk', group_type_index: 0, being_deleted: true }])
    assert.equal((await api.call('DELETE', `${path}/0/`)).status, 204)
    assert.deepEqual(await api.get(`${path}/`), [])
  })

  it('cannot be used by a flag that is written while their type is being deleted', async t => {
    const duringDelete: (() => Promise<unknown>)[] = []
    const duringCreate: (() => Promise<unknown>)[] = []
    const api = await startManagement(t, {
      before: {
        startDeletingGroupType: () => duringDelete.pop()?.(),
        createFlag: () => duringCreate.pop()?.(),
      },
    })
    await api.commit({ groupTypes: [{ projectId: 1, name: 'company', index: 0 }], groups: [created(aGroup())] })
    const filters = { aggregation_group_type_index: 0, groups: [{ properties: [] }] }
    const createFlag = (key: string) => api.call('POST', '/api/projects/1/feature_flags/', { body: { key, filters } })
    const deleteType = () => api.call('DELETE', '/api/projects/1/groups_types/0/')

    duringDelete.push(async () => assert.equal((await createFlag('early')).status, 201))
    const kept = await deleteType()
    assert.deepEqual([kept.status, kept.body.attr], [400, 'group_type_index'])
    assert.equal((await api.call('DELETE', '/api/projects/1/feature_flags/early/')).status, 204)

    duringCreate.push(async () => assert.equal((await deleteType()).status, 204))
    const isGoing = 'group type 0 (company) is being deleted'
    const late = [{ key: 'late', filters }, 'filters.aggregation_group_type_index', undefined, isGoing] as const
    await api.refuses('POST', '/api/projects/1/feature_flags/', late)
    assert.equal((await createFlag('before-its-type')).status, 201)
  })

  it('cannot be used by a flag if their type was replaced at its index during the write', async t => {
    const duringCreate: (() => Promise<unknown>)[] = []
    const api = await startManagement(t, {
      before: { createFlag: () => duringCreate.pop()?.() },
    })
    const type = { projectId: 1, index: 0 }
    await api.commit({ groupTypes: [{ ...type, name: 'company' }] })
    duringCreate.push(async () => {
      assert.equal((await api.call('DELETE', '/api/projects/1/groups_types/0/')).status, 204)
      await api.commit({ groupTypes: [{ ...type, name: 'junk' }] })
    })
    const body = { key: 'late', filters: { aggregation_group_type_index: 0, groups: [] } }
    assert.equal((await api.call('POST', '/api/projects/1/feature_flags/', { body })).status, 400)
  })

  it('have types that a project setting freezes, and that setting survives changes of other settings', async t => {
    const api = await startManagement(t)
    assert.equal((await api.get('/api/projects/1/')).group_types_frozen, false)
    await api.patch('/api/projects/1/', { group_types_frozen: true })
    const body = await api.patch('/api/projects/1/', { person_processing_opt_out: true })
    assert.deepEqual([body.group_types_frozen, body.person_processing_opt_out], [true, true])
  })

  it('are listed by type, with the types as a plain array', async t => {
    const api = await startManagement(t)
    await api.commit({
      groupTypes: [
        { projectId: 1, name: 'company', index: 0 },
        { projectId: 1, name: 'team', index: 1 },
      ],
      groups: [created(aGroup({ properties: { seats: 5 } })), created(aGroup({ typeIndex: 1, key: 'core' }))],
    })
    assert.deepEqual(await api.get('/api/projects/1/groups_types/'), [
      { group_type: 'company', group_type_index: 0 },
      { group_type: 'team', group_type_index: 1 },
    ])
    const acme = {
      group_type_index: 0,
      group_key: 'acme',
      group_properties: { seats: 5 },
      created_at: '2023-11-14T22:13:20.000Z',
      version: 1,
    }
    const listed = await api.get('/api/projects/1/groups/?group_type_index=0')
    assert.deepEqual(listed, { next: null, previous: null, results: [acme] })
    const found = await api.get('/api/projects/1/groups/find/?group_type_index=0&group_key=acme')
    assert.deepEqual(found, acme)
    await api.refuses('GET', '/api/projects/1/groups/find/', ['group_type_index=1&group_key=acme', null, 'not_found'])
  })

  it('require a type', async t => {
    const api = await startManagement(t)
    await api.refuses(
      'GET',
      '/api/projects/1/groups/',
      ['', 'group_type_index', 'required'],
      ['group_type_index=5', 'group_type_index', 'invalid_input'],
      ['group_type_index=company', 'group_type_index', 'invalid'],
    )
    await api.refuses('GET', '/api/projects/1/groups/find/', ['group_type_index=0', 'group_key', 'required'])
  })
})

describe('ingestion status', () => {
  it('compares the end of each stream with the worker’s position', async t => {
    const appendedAtMs = Date.parse('2026-05-01T11:59:57.500Z')
    const api = await startManagement(t, {
      log: {
        readStreamStatus: async (stream, offset) => ({
          endOffset: stream === 'main' ? 12 : offset,
          appendedAtMs: stream === 'main' ? appendedAtMs : null,
        }),
      },
    })
    assert.deepEqual(await api.get('/api/projects/1/ingestion_status/'), {
      lanes: {
        main: { appended: 12, processed: 0, lag_seconds: 2.5 },
        historical: { appended: 0, processed: 0, lag_seconds: 0 },
      },
      outcomes: [],
      refused: [],
    })
  })

  it('counts a deferred project’s waiting records as unprocessed, even if later records of others are processed', async t => {
    const asked: number[] = []
    const api = await startManagement(t, {
      log: {
        readStreamStatus: async (stream, offset) => {
          if (stream === 'main') asked.push(offset)
          return { endOffset: stream === 'main' ? 12 : offset, appendedAtMs: Date.parse('2026-05-01T11:59:57.500Z') }
        },
      },
    })
    await api.commit({}, 3)
    assert.ok(await api.management.deferProject('main', 'test', 1, 3))
    await api.commit({}, 10)
    const { lanes } = await api.get('/api/projects/1/ingestion_status/')
    assert.deepEqual(lanes.main, { appended: 12, processed: 3, lag_seconds: 2.5 })
    assert.deepEqual(asked, [3])
  })

  it('reports the outcomes of a project’s records, and the refusals of the last 30 days', async t => {
    const api = await startManagement(t)
    await api.commit({
      outcomes: [
        { projectId: 1, lane: 'main', outcome: 'stored', reason: '', count: 5 },
        { projectId: 1, lane: 'main', outcome: 'dropped', reason: 'heatmap', count: 2 },
        { projectId: 2, lane: 'main', outcome: 'stored', reason: '', count: 9 },
      ],
    })
    const lastSeenMs = Date.parse('2026-05-01T10:00:00Z')
    const row = { projectId: 1, lastSeenMs, warning: null }
    await api.management.addRefused([
      { ...row, day: '2026-05-01', reason: 'events_over_quota', count: 7 },
      { ...row, day: '2026-04-01', reason: 'events_over_quota', count: 1, lastSeenMs: 0 },
      { ...row, day: '2026-03-31', reason: 'events_over_quota', count: 100, lastSeenMs: 0 },
      { ...row, day: '2026-05-01', reason: 'invalid_json', count: 3, projectId: 2 },
    ])
    const { outcomes, refused } = await api.get('/api/projects/1/ingestion_status/')
    const byOutcome = (a: { outcome: string }, b: { outcome: string }) => (a.outcome < b.outcome ? -1 : 1)
    assert.deepEqual(outcomes.toSorted(byOutcome), [
      { lane: 'main', outcome: 'dropped', reason: 'heatmap', count: 2 },
      { lane: 'main', outcome: 'stored', reason: '', count: 5 },
    ])
    assert.deepEqual(refused, [{ reason: 'events_over_quota', count: 8, last_seen: '2026-05-01T10:00:00.000Z' }])
  })
})

describe('usage', () => {
  it('leaves out days before the project was created, unless they have usage', async t => {
    const api = await startManagement(t)
    const nothing = noEventUsage
    await api.management.saveEventCounts(
      1,
      [
        { ...nothing, day: '2026-04-28', eventsImported: 1 },
        { day: '2026-04-29', ...nothing },
        { day: '2026-04-30', ...nothing },
        { day: '2026-05-01', ...nothing },
        { day: '2026-05-02', ...nothing },
      ],
      '2026-01-01',
    )
    api.clock.set(Date.parse('2026-05-03T00:00:00Z'))
    const { results } = await api.get('/api/projects/1/usage/?date_from=-7d')
    assert.deepEqual(fieldOf(results, 'date'), ['2026-04-28', '2026-05-01', '2026-05-02'])
  })

  it('is summed per UTC day, between days given as dates or relative spans', async t => {
    const api = await startManagement(t)
    await api.management.addFlagRequests([{ projectId: 1, day: '2026-05-01', count: 7 }])
    await api.management.saveEventCounts(
      1,
      [
        { day: '2026-04-30', ...noEventUsage, eventsCharged: 13, eventsImported: 2, exceptions: 3, llmEvents: 4 },
        { day: '2026-03-01', ...noEventUsage, eventsCharged: 9, surveyResponses: 1, recordings: 2 },
      ],
      '2026-01-01',
    )
    const none = {
      events_charged: 0,
      events_imported: 0,
      flag_requests: 0,
      exceptions: 0,
      llm_events: 0,
      survey_responses: 0,
      recordings: 0,
    }
    const march = { ...none, date: '2026-03-01', events_charged: 9, survey_responses: 1, recordings: 2 }
    const april = { ...none, date: '2026-04-30', events_charged: 13, events_imported: 2, exceptions: 3, llm_events: 4 }
    const may = { ...none, date: '2026-05-01', flag_requests: 7 }
    for (const [query, results] of [
      ['', [april, may]],
      ['?date_from=-1d', [april, may]],
      ['?date_from=2026-05-01', [may]],
      ['?date_from=2026-04-01&date_to=2026-04-30', [april]],
      ['?date_from=-90d&date_to=-40d', [march]],
    ] as const) {
      assert.deepEqual(await api.get(`/api/projects/1/usage/${query}`), { results }, query)
    }
    await api.refuses(
      'GET',
      '/api/projects/1/usage/',
      ['date_from=yesterday', 'date_from', 'invalid'],
      ['date_from=1970-01-01', 'date_from', 'invalid_input'],
    )
  })
})

describe('ingestion warnings', () => {
  it('are summarized by type', async t => {
    const api = await startManagement(t)
    const timestampMs = Date.parse('2026-04-30T10:00:00.000Z')
    const warning = { projectId: 1, type: 'cannot_merge_with_illegal_distinct_id', details: { alias: 'null' } }
    await api.commit({
      warnings: [
        { ...warning, timestampMs },
        { ...warning, timestampMs: timestampMs + 1_000 },
      ],
    })
    const body = await api.get('/api/projects/1/ingestion_warnings/')
    assert.deepEqual(
      [body.results.length, body.results[0].type, body.results[0].count, body.results[0].last_seen],
      [1, warning.type, 2, '2026-04-30T10:00:01.000Z'],
    )
    assert.deepEqual(body.results[0].warnings[0].details, { alias: 'null' })
  })
})

describe('users and the organization', () => {
  it('describe the caller and its organization', async t => {
    const api = await startManagement(t)
    const me = await api.get('/api/users/@me/?limit=1')
    assert.deepEqual([me.first_name, me.team.id, me.team.api_token], ['*', 1, 'phc_first'])
    const organization = await api.get('/api/organizations/@current/')
    assert.deepEqual(organization, me.organization)
    const byId = await api.get(`/api/organizations/${organization.id}/projects/`)
    assert.equal(byId.count, 1)
    await api.call('DELETE', '/api/projects/1/')
    assert.equal((await api.get('/api/users/@me/')).team, null)
    assert.equal((await api.call('GET', '/api/projects/@current/')).status, 404)
  })
})
