import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { EventNameQuery, PropertyNameQuery, SurveyCountQuery } from '#ports/events/event-queries.ts'
import { PortError } from '#ports/port-error.ts'
import { startManagement } from '../support/management-api.ts'

// The contract `tests/ports/event-names.contract.ts` tests the store itself.

const timestampMs = Date.parse('2026-04-30T10:00:00Z')

function start(t: TestContext) {
  const asked: { events?: EventNameQuery; properties?: PropertyNameQuery; surveys?: SurveyCountQuery } = {}
  const count = (count: number, persons: number) => ({ count, persons, firstMs: timestampMs, lastMs: timestampMs })
  return {
    asked,
    starting: startManagement(t, {
      events: {
        listEventNames: async query => {
          asked.events = query
          const seen = { firstCapturedAtMs: timestampMs, lastSeenMs: timestampMs }
          return { count: 3, results: [{ name: 'paid', ...seen }] }
        },
        listPropertyNames: async query => {
          asked.properties = query
          return { count: 1, results: [{ name: 'price', type: 'Numeric', isSeenOnEvents: true }] }
        },
        countSurveyEvents: async query => {
          asked.surveys = query
          return { shown: count(8, 6), dismissed: count(2, 2), sent: count(3, 2), personsDismissedAndSent: 1 }
        },
      },
    }),
  }
}

describe('event definitions', () => {
  it('are listed in pages in PostHog’s format, with stable ids', async t => {
    const { starting, asked } = start(t)
    const api = await starting
    const path = '/api/projects/1/event_definitions/'
    const body = await api.get(`${path}?search=pai&limit=1&offset=1`)
    assert.deepEqual([body.count, body.next], [3, `${api.url}${path}?search=pai&limit=1&offset=2`])
    assert.deepEqual(asked.events, { projectId: 1, search: 'pai', limit: 1, offset: 1 })
    const [{ id, ...definition }] = body.results
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.deepEqual(definition, {
      ...{ name: 'paid', created_at: '2026-04-30T10:00:00.000Z', last_seen_at: '2026-04-30T10:00:00.000Z' },
      ...{ is_action: false, description: null, owner: null, tags: [], updated_at: null, updated_by: null },
      ...{ verified: false, verified_at: null, verified_by: null, hidden: false },
    })
    assert.equal((await api.get(path)).results[0].id, id)
    await api.post('/api/projects/', { name: 'Second' })
    assert.notEqual((await api.get(path.replace('1', '2'))).results[0].id, id)
  })

  it('need one query per page, since each query reads the names of all events', async t => {
    const names = Array.from({ length: 2_500 }, (_, n) => ({ name: `e${n}`, firstCapturedAtMs: 0, lastSeenMs: 0 }))
    let queryCount = 0
    const listEventNames = async ({ limit, offset }: EventNameQuery) => {
      queryCount++
      return { count: names.length, results: names.slice(offset, offset + limit) }
    }
    const api = await startManagement(t, { events: { listEventNames } })
    const body = await api.get('/api/projects/1/event_definitions/?limit=2500')
    assert.deepEqual([body.results.length, queryCount], [2_500, 1])
  })

  it('support the parameters of PostHog’s clients where possible, and reject other parameters with an explanation', async t => {
    const { starting, asked } = start(t)
    const api = await starting
    const path = '/api/projects/1/event_definitions/'
    for (const [query, order] of [
      ['ordering=name', { by: 'name', isDescending: false }],
      ['ordering=-last_seen_at', { by: 'lastSeen', isDescending: true }],
      ['ordering=created_at', { by: 'firstCaptured', isDescending: false }],
      ['ordering=', undefined],
      ['exclude_hidden=true&exclude_stale=false&event_type=event&search=', undefined],
      ['exclude_hidden=false&event_type=all', undefined],
    ] as const) {
      const { status, text } = await api.call('GET', `${path}?${query}`)
      assert.equal(status, 200, text)
      assert.deepEqual([asked.events?.order, asked.events?.search], [order, undefined], query)
    }
    for (const [query, attr, detail] of [
      ['exclude_stale=true', 'exclude_stale', /last_seen_at/],
      ['event_type=event_custom', 'event_type', /one of all, event/],
      ['ordering=-volume_30_day', 'ordering', /one of name, -name, last_seen_at/],
    ] as const)
      await api.refuses('GET', path, [query, attr, undefined, detail])
  })

  it('answer 503 while the store is unavailable', async t => {
    const listEventNames = async () => {
      throw new PortError('event-store', 'timeout')
    }
    const api = await startManagement(t, { events: { listEventNames } })
    await api.refuses('GET', '/api/projects/1/event_definitions/', ['', null, 'event_store_timeout'])
  })
})

describe('property definitions', () => {
  const path = '/api/projects/1/property_definitions/'

  it('are filtered by PostHog’s parameters', async t => {
    const { starting, asked } = start(t)
    const api = await starting
    const plain = await api.get(path)
    assert.equal(plain.results[0].is_seen_on_filtered_events, null)
    assert.deepEqual(asked.properties, {
      ...{ projectId: 1, kind: 'event', limit: 100, offset: 0, leavesOutCore: false, onlyOfEvents: false },
    })
    const query = `?type=person&event_names=["paid","left"]&filter_by_event_names=true&properties=price,plan&is_feature_flag=false&exclude_core_properties=true&search=p&excluded_properties=["price"]&exclude_hidden=true`
    const body = await api.get(path + query)
    assert.deepEqual(asked.properties, {
      ...{ projectId: 1, kind: 'person', limit: 100, offset: 0, leavesOutCore: true, onlyOfEvents: true },
      ...{ search: 'p', names: ['price', 'plan'], events: ['paid', 'left'], ofFlags: false },
      excludedNames: ['price'],
    })
    const { name, property_type, is_numerical, is_seen_on_filtered_events } = body.results[0]
    assert.deepEqual([name, property_type, is_numerical, is_seen_on_filtered_events], ['price', 'Numeric', true, true])
  })

  it('reject unsupported filters', async t => {
    const api = await startManagement(t)
    await api.refuses(
      'GET',
      path,
      ['type=group', 'type'],
      ['event_names=paid', 'event_names'],
      ['event_names=[1]', 'event_names'],
      ['excluded_properties=price', 'excluded_properties'],
      [`properties=${Array(101).fill('a').join(',')}`, 'properties'],
      ['event_name=["paid"]', 'event_name'],
    )
  })
})

describe('survey statistics', () => {
  const path = '/api/projects/1/surveys/'
  const survey = { name: 'Why', type: 'popover', questions: [{ type: 'open', question: 'Why?' }] }

  it('contain counts and rates, for one survey and for all surveys that are not archived', async t => {
    const { starting, asked } = start(t)
    const api = await starting
    const { id } = await api.post(path, { ...survey, start_date: '2026-04-01' })
    const archived = await api.post(path, { ...survey, archived: true })
    const at = '2026-04-30T10:00:00.000Z'
    const counted = (total: number, persons: number) => ({
      ...{ total_count: total, unique_persons: persons, first_seen: at, last_seen: at },
      ...{ total_count_only_seen: 0, unique_persons_only_seen: 0 },
    })
    const expected = {
      stats: {
        'survey shown': { ...counted(8, 6), total_count_only_seen: 3, unique_persons_only_seen: 3 },
        'survey dismissed': counted(2, 1),
        'survey sent': counted(3, 2),
      },
      rates: {
        ...{ response_rate: 37.5, dismissal_rate: 25, unique_users_response_rate: 33.33 },
        unique_users_dismissal_rate: 16.67,
      },
    }
    const all = await api.get(`${path}stats/?date_from=2026-04-01T00:00:00Z&date_to=2026-05-01`)
    assert.deepEqual(all, expected)
    assert.deepEqual(asked.surveys, {
      ...{ projectId: 1, surveyIds: [id], fromMs: Date.parse('2026-04-01'), toMs: Date.parse('2026-05-01') },
    })
    const one = await api.get(`${path}${archived.id}/stats/`)
    assert.deepEqual(one, { survey_id: archived.id, start_date: null, end_date: null, ...expected })
    assert.deepEqual(asked.surveys, { projectId: 1, surveyIds: [archived.id] })
    assert.equal((await api.call('GET', `${path}00000000-0000-4000-8000-000000000099/stats/`)).status, 404)
    await api.refuses('GET', `${path}stats/`, ['date_from=2026-05-02&date_to=2026-05-01', 'date_from'])
  })

  it('are zero without events', async t => {
    const api = await startManagement(t)
    const body = await api.get(`${path}stats/`)
    assert.deepEqual([body.rates.response_rate, body.stats['survey shown'].first_seen], [0, null])
  })
})
