import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { EventQuery, EventView } from '#ports/events/event-queries.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import { PortError, QueryTooLargeError } from '#ports/port-error.ts'
import { eventually } from '../support/eventually.ts'
import { fieldsOf } from '../support/fields-of.ts'
import { startManagement } from '../support/management-api.ts'
import { anEventView } from '../support/values.ts'

const path = '/api/projects/1/events/'
const uuid = (last: number) => `0195a000-0000-7000-8000-${String(last).padStart(12, '0')}`

const anEvent = (over: Partial<EventView> = {}) =>
  anEventView({
    ...{ uuid: uuid(1), event: 'signed up', personId: uuid(900) },
    timestampMs: Date.parse('2026-04-30T10:00:00.123Z'),
    capturedAtMs: Date.parse('2026-04-30T10:00:01.000Z'),
    createdAtMs: Date.parse('2026-04-30T10:00:02.000Z'),
    propertiesJson: '{"b":1.0,"a":12345678901234567890,"__proto__":{"x":1}}',
    personCreatedAtMs: Date.parse('2026-01-01T00:00:00.000Z'),
    personPropertiesJson: '{"plan":"pro","n":2.50}',
    ...over,
  })

/** A store with scripted answers that records its calls. */
function scripted(over: Partial<EventStore> = {}) {
  const queries: EventQuery[] = []
  const events: Pick<EventStore, 'listEvents' | 'findEvent' | 'listRejected'> = {
    listEvents: async query => {
      queries.push(query)
      return { events: [], next: null }
    },
    findEvent: async () => null,
    listRejected: async () => ({ rejected: [], next: null }),
    ...over,
  }
  return { events, queries }
}

describe('events', () => {
  it('are shown with person and elements, and with properties exactly as stored', async t => {
    const event = anEvent({ elementsChain: 'button.big:nth-child="1"text="Go";form:' })
    const api = await startManagement(t, scripted({ listEvents: async () => ({ events: [event], next: null }) }))
    const { status, body, text } = await api.call('GET', path)
    assert.equal(status, 200)
    assert.deepEqual(Object.keys(body), ['next', 'results'])
    assert.ok(text.includes(`"properties":${event.propertiesJson},`))
    assert.ok(text.includes(`"person_properties":${event.personPropertiesJson},`))
    const { properties, person_properties, person, elements, ...rest } = body.results[0]
    assert.equal(properties.b, 1)
    assert.deepEqual(person_properties, { plan: 'pro', n: 2.5 })
    assert.deepEqual(person, {
      uuid: uuid(900),
      created_at: '2026-01-01T00:00:00.000Z',
      distinct_ids: ['ada'],
      properties: { plan: 'pro', n: 2.5 },
    })
    assert.deepEqual(fieldsOf(elements, 'order', 'tag_name', 'text', 'attr_class'), [
      [0, 'button', 'Go', ['big']],
      [1, 'form', null, null],
    ])
    assert.deepEqual(rest, {
      id: uuid(1),
      uuid: uuid(1),
      event: 'signed up',
      distinct_id: 'ada',
      timestamp: '2026-04-30T10:00:00.123Z',
      elements_chain: event.elementsChain,
      person_id: uuid(900),
      person_mode: 'full',
      person_created_at: '2026-01-01T00:00:00.000Z',
      lane: 'main',
      historical_migration: false,
      import_job_id: 0,
      captured_at: '2026-04-30T10:00:01.000Z',
      created_at: '2026-04-30T10:00:02.000Z',
    })
  })

  it('are listed without a time window by default, newest first, a hundred per page', async t => {
    const { events, queries } = scripted()
    const api = await startManagement(t, { events })
    await api.call('GET', path)
    assert.deepEqual(queries, [{ projectId: 1, descending: true, limit: 100 }])
  })

  it('are filtered by every query parameter, with times in the project’s time zone', async t => {
    const { events, queries } = scripted()
    const api = await startManagement(t, { events })
    await api.patch('/api/projects/1/', { timezone: 'Europe/Vienna' })
    const query = new URLSearchParams({
      event: '$pageview',
      distinct_id: 'ada',
      person_id: uuid(900).toUpperCase(),
      uuid: uuid(1),
      after: '2026-04-01',
      before: '2026-04-30T12:00:00+00:00',
      properties: '[{"key":"n","value":1.0},{"key":"__proto__","value":["x"],"operator":"exact","type":"event"}]',
      orderBy: '["timestamp"]',
      limit: '5000',
    })
    await api.get(`${path}?${query}`)
    const [asked] = queries
    assert.equal(JSON.stringify(asked!.properties), '[{"key":"n","value":1.0},{"key":"__proto__","value":"x"}]')
    assert.deepEqual(
      { ...asked, properties: null },
      {
        projectId: 1,
        event: '$pageview',
        distinctId: 'ada',
        personId: uuid(900),
        uuid: uuid(1),
        afterMs: Date.parse('2026-03-31T22:00:00Z'),
        beforeMs: Date.parse('2026-04-30T12:00:00Z'),
        properties: null,
        descending: false,
        limit: 1_000,
      },
    )
  })

  it('have a `next` URL that fixes relative bounds and contains the cursor', async t => {
    const cursor = { timestampMs: -5, uuid: uuid(7), tieBreak: '12345678901234567890' }
    const queries: EventQuery[] = []
    const { events } = scripted({
      listEvents: async query => {
        queries.push(query)
        return { events: [anEvent()], next: query.after === undefined ? cursor : null }
      },
    })
    const api = await startManagement(t, { events })
    const first = await api.get(`${path}?after=-7d&limit=1&event=a%26b`)
    assert.ok(first.next.startsWith(`${api.url}${path}?`))
    api.clock.advance(60_000)
    const second = await api.get(first.next.slice(api.url.length))
    assert.equal(second.next, null)
    assert.deepEqual(queries[1], { ...queries[0], after: cursor })
    assert.equal(queries[0]!.afterMs, Date.parse('2026-04-24T12:00:00Z'))
  })

  it('may be listed with times before or after every possible event', async t => {
    const { events, queries } = scripted()
    const api = await startManagement(t, { events })
    await api.call('GET', `${path}?after=0001-01-01&before=9999-12-31`)
    await api.call('GET', `${path}?before=0001-01-01`)
    assert.deepEqual(fieldsOf(queries, 'afterMs', 'beforeMs'), [
      [undefined, undefined],
      [undefined, Date.UTC(1900, 0, 1)],
    ])
  })

  it('reject invalid parameters', async t => {
    const api = await startManagement(t, scripted())
    await api.refuses(
      'GET',
      path,
      ['after=soon', 'after'],
      ['before=2026-13-01', 'before'],
      ['person_id=1', 'person_id'],
      ['uuid=x', 'uuid'],
      ['limit=0', 'limit'],
      ['orderBy=["event"]', 'orderBy'],
      ['orderBy=[', 'orderBy'],
      ['cursor=1_2_3', 'cursor'],
      [`cursor=1_${uuid(1)}_18446744073709551616`, 'cursor'],
      [`cursor=99999999999999_${uuid(1)}_1`, 'cursor'],
      ['event=%00', 'event'],
      ['properties={}', 'properties'],
      ['properties=[', 'properties'],
      [`properties=${'['.repeat(10_000)}`, 'properties'],
      ['properties=[1]', 'properties.0'],
      ['properties=[{"value":1}]', 'properties.0.key'],
      ['properties=[{"key":"a"}]', 'properties.0.value'],
      ['properties=[{"key":"a","value":[1,2]}]', 'properties.0.value'],
      ['properties=[{"key":"a","value":1,"operator":"gt"}]', 'properties.0.operator'],
      ['properties=[{"key":"a","value":1,"type":"person"}]', 'properties.0.type'],
      [`event=${'e'.repeat(1_001)}`, 'event'],
    )
  })

  it('are found individually', async t => {
    const asked: unknown[] = []
    const { events } = scripted({
      findEvent: async (seen, id) => {
        asked.push([seen, id])
        return id === uuid(1) ? anEvent() : null
      },
    })
    const api = await startManagement(t, { events })
    assert.equal((await api.get(`${path}${uuid(1).toUpperCase()}/`)).event, 'signed up')
    assert.equal((await api.call('GET', `${path}${uuid(2)}/`)).status, 404)
    assert.equal((await api.call('GET', `${path}nonsense/`)).status, 404)
    assert.deepEqual(asked, [
      [{ projectId: 1 }, uuid(1)],
      [{ projectId: 1 }, uuid(2)],
    ])
  })

  it('answer 503 with the reason when the store fails', async t => {
    for (const [portCode, code] of [
      ['unavailable', 'event_store_unavailable'],
      ['timeout', 'event_store_timeout'],
      ['full', 'event_store_busy'],
    ] as const) {
      const fail = () => Promise.reject(new PortError('event-store', portCode))
      const api = await startManagement(t, scripted({ listEvents: fail, findEvent: fail, listRejected: fail }))
      for (const address of [path, `${path}${uuid(1)}/`, '/api/projects/1/rejected_events/']) {
        const { status, body, headers } = await api.call('GET', address)
        assert.deepEqual([status, body.type, body.code], [503, 'server_error', code])
        assert.match(headers.get('retry-after') ?? '', /^\d+$/)
      }
    }
  })

  it('answer 400 query_too_large for a query that the store can never answer', async t => {
    for (const [portCode, status, code] of [
      ['full', 400, 'query_too_large'],
      ['timeout', 503, 'event_store_timeout'],
    ] as const) {
      const fail = async () => {
        throw new QueryTooLargeError('event-store', portCode, new Error('too much'))
      }
      const api = await startManagement(t, scripted({ listEvents: fail }))
      const answer = await api.call('GET', path)
      assert.deepEqual([answer.status, answer.body.code], [status, code])
      assert.equal(answer.headers.has('retry-after'), status === 503)
    }
  })

  it('are no longer queried once the caller has disconnected', async t => {
    const { running, cancelled, events } = hangingStore(t)
    const api = await startManagement(t, { events })
    const caller = new AbortController()
    const answer = api.call('GET', path, { signal: caller.signal })
    await eventually(() => running.length === 1)
    assert.equal(cancelled.length, 0)
    caller.abort()
    await assert.rejects(answer, { name: 'AbortError' })
    await eventually(() => cancelled.length === 1)
    await api.get('/api/projects/1/')
  })
})

function hangingStore(t: TestContext) {
  const running: AbortSignal[] = []
  const cancelled: AbortSignal[] = []
  const ended = new AbortController()
  t.after(() => ended.abort())
  const { events } = scripted({
    listEvents: (_query, signal) =>
      new Promise((_resolve, reject) => {
        running.push(signal!)
        signal!.addEventListener('abort', () => {
          cancelled.push(signal!)
          reject(new Error('the query was cancelled'))
        })
        ended.signal.addEventListener('abort', () => reject(new Error('the test ended')))
      }),
  })
  return { running, cancelled, events }
}
