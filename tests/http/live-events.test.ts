import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { startFront } from '../support/front.ts'
import { watchLive } from '../support/live-client.ts'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { tempDir } from '../support/temp-dir.ts'

// The live view with the real service: capture, a log on disk, HTTP. Source: docs/operating/live-view.md.

const path = '/api/projects/@current/events/live'
const front = startedForTests(startFront)

async function post(url: string, to: string, body: object): Promise<number> {
  const response = await fetch(url + to, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  await response.arrayBuffer()
  return response.status
}

async function capture(event: string, over: object = {}, key = testProjectKey): Promise<void> {
  assert.equal(await post(front.url, '/capture/', { api_key: key, event, distinct_id: 'ada', ...over }), 200)
}

async function watching(t: TestContext, query = '', key = testPersonalKey) {
  const client = await watchLive(front.url, path + query, key)
  t.after(() => client.leave())
  return client
}

describe('the live view of a front', () => {
  it('shows each event as it was sent, soon after the 200 response', async t => {
    const client = await watching(t, '/')
    assert.equal(client.response.headers['content-type'], 'text/event-stream')
    assert.equal(client.response.headers['cache-control'], 'no-store, no-transform')
    assert.equal(client.messages[0]!.kind, 'ready')
    assert.equal(client.messages[0]!.data.project.id, 1)
    for (const name of ['first', 'second']) {
      await capture(name, { properties: { plan: 'pro', n: 1 }, $set: { a: 1 } })
      const shown = await eventually(() => client.of('event').find(({ data }) => data.event === name))
      assert.deepEqual([shown.data.distinct_id, shown.data.properties.plan, shown.data.$set], ['ada', 'pro', { a: 1 }])
      assert.match(shown.id!, /^main:\d+$/)
    }
  })

  it('shows only events that match the filters', async t => {
    const of = async (query: string) => {
      const client = await watching(t, query)
      return () => client.of('event').map(({ data }) => data.event)
    }
    const properties = encodeURIComponent('[{"key":"plan","value":"pro"}]')
    const shown = {
      all: await of(''),
      names: await of('?event=a&event=b,c'),
      person: await of('?distinct_id=bob'),
      properties: await of(`?properties=${properties}`),
      lanes: await of('?lane=ai,historical'),
      imports: await of('?historical=true'),
      ai: await of('?lane=ai'),
      aiWithImports: await of('?lane=ai&historical=true'),
    }
    await capture('a')
    await capture('b,c', { distinct_id: 'bob' })
    await capture('d', { properties: { plan: 'pro' } })
    await capture('$ai_generation')
    const ofPast = { distinct_id: 'ada', timestamp: '2020-01-01T00:00:00Z' }
    const old = ['old', '$ai_span'].map(event => ({ event, ...ofPast }))
    await post(front.url, '/batch/', { api_key: testProjectKey, historical_migration: true, batch: old })
    await capture('last', { distinct_id: 'bob', properties: { plan: 'pro' } })
    await eventually(() => shown.imports().length === 7 && shown.lanes().length === 3 && shown.all().at(-1) === 'last')
    assert.deepEqual(shown.all(), ['a', 'b,c', 'd', '$ai_generation', 'last'])
    assert.deepEqual(shown.names(), ['a', 'b,c'])
    assert.deepEqual(shown.person(), ['b,c', 'last'])
    assert.deepEqual(shown.properties(), ['d', 'last'])
    assert.deepEqual(shown.lanes().sort(), ['$ai_generation', '$ai_span', 'old'])
    assert.deepEqual([shown.ai(), shown.aiWithImports()], [['$ai_generation'], ['$ai_generation', '$ai_span']])
    assert.deepEqual(shown.imports().toSorted(), ['$ai_generation', '$ai_span', 'a', 'b,c', 'd', 'last', 'old'])
  })

  it('rejects an invalid query, and keys without the scope', async () => {
    const refused = async (query: string, key = testPersonalKey, at = path) => {
      const response = await fetch(front.url + at + query, { headers: { authorization: `Bearer ${key}` } })
      const { code, attr } = (await response.json()) as { code: string; attr: string | null }
      return [response.status, code, attr]
    }
    assert.deepEqual(await refused('?lane=fast'), [400, 'invalid_input', 'lane'])
    assert.deepEqual(await refused('?properties=x'), [400, 'invalid', 'properties'])
    assert.deepEqual(await refused('?rejected=maybe'), [400, 'invalid', 'rejected'])
    assert.deepEqual(await refused('?evnt=a'), [400, 'invalid_input', 'evnt'])
    const tooMany = Array.from({ length: 101 }, (_, n) => `event=${n}`).join('&')
    assert.deepEqual(await refused(`?${tooMany}`), [400, 'invalid_input', 'event'])
    const lesser = await front.api<{ value: string }>('POST', '/api/personal_api_keys/', {
      label: 'flags only',
      scopes: ['feature_flag:read'],
    })
    assert.deepEqual(await refused('', lesser.value), [403, 'permission_denied', null])
    assert.deepEqual(await refused('', testProjectKey), [401, 'not_authenticated', null])
    assert.deepEqual(await refused('', testPersonalKey, '/api/environments/77/events/live/'), [404, 'not_found', null])
  })

  it('answers HEAD at once, rejects other methods with 405, and sends no CORS headers', async () => {
    const ask = async (method: string) => {
      const headers = { authorization: `Bearer ${testPersonalKey}`, origin: 'https://shop.example' }
      const response = await fetch(front.url + path, { method, headers })
      await response.arrayBuffer()
      return response
    }
    const head = await ask('HEAD')
    assert.deepEqual([head.status, head.headers.get('content-type')], [200, 'text/event-stream'])
    assert.equal(head.headers.get('access-control-allow-origin'), null)
    assert.equal((await ask('POST')).status, 405)
  })

  it('shows why a request was rejected, unless the client turns that off', async t => {
    const [all, quiet] = [await watching(t), await watching(t, '?rejected=false')]
    assert.equal(await post(front.url, '/capture/', { api_key: testProjectKey, distinct_id: 'ada' }), 400)
    const rejected = await eventually(() => all.of('rejected')[0])
    assert.equal(rejected.data.reason, 'missing_event_name')
    assert.match(rejected.data.body, /"distinct_id":"ada"/)
    await capture('behind it')
    await eventually(() => quiet.of('event').length === 1)
    assert.equal(quiet.of('rejected').length, 0)
  })

  it('shows no events of another project, and ends when its own project is deleted', async t => {
    const other = await front.api<{ id: number; api_token: string }>('POST', '/api/projects/', { name: 'other' })
    const mine = await watching(t)
    const theirs = await watchLive(front.url, `/api/environments/${other.id}/events/live/`, testPersonalKey)
    await capture('of mine')
    await capture('of theirs', {}, other.api_token)
    assert.equal(await post(front.url, '/capture/', { api_key: other.api_token, distinct_id: 'ada' }), 400)
    await capture('of mine too')
    await eventually(() => mine.of('event').length === 2 && theirs.of('rejected').length === 1)
    assert.deepEqual([mine.of('rejected').length, theirs.of('event').map(({ data }) => data.event)], [0, ['of theirs']])
    await front.api('DELETE', `/api/projects/${other.id}/`)
    await eventually(() => theirs.isClosed())
    assert.deepEqual(theirs.messages.at(-1)!.data, { reason: 'project_deleted' })
    assert.equal(mine.isClosed(), false)
  })

  it('ends when its key is deleted, within a second', async t => {
    const made = await front.api<{ id: string; value: string }>('POST', '/api/personal_api_keys/', {
      label: 'short-lived',
      scopes: ['query:read'],
    })
    const [ending, staying] = [await watching(t, '', made.value), await watching(t)]
    await front.api('DELETE', `/api/personal_api_keys/${made.id}/`)
    await eventually(() => ending.isClosed(), { what: 'the end of the stream' })
    assert.deepEqual(ending.messages.at(-1)!.data, { reason: 'access_ended' })
    assert.equal(staying.isClosed(), false)
  })

  it('accepts a hundred clients per project, and answers 503 to any more', async () => {
    const clients = await Promise.all(Array.from({ length: 100 }, () => watchLive(front.url, path, testPersonalKey)))
    const response = await fetch(front.url + path, { headers: { authorization: `Bearer ${testPersonalKey}` } })
    assert.deepEqual([response.status, response.headers.get('retry-after')], [503, '1'])
    assert.equal(((await response.json()) as { code: string }).code, 'too_many_live_views')
    for (const client of clients) client.leave()
    await eventually(async () => {
      const again = await watchLive(front.url, path, testPersonalKey)
      again.leave()
      return again.response.statusCode === 200
    })
  })
})

describe('fronts that share a log', () => {
  it('show events that any of them accepted, and stop at once even while clients are connected', async t => {
    const settings = { PENNON_DATA: tempDir(t) }
    const fronts = [await startFront(settings), await startFront(settings)] as const
    let closing: Promise<unknown> | null = null
    const close = () => {
      closing ??= Promise.all(fronts.map(front => front.close()))
      return closing
    }
    t.after(close)
    const clients = await Promise.all(fronts.map(({ url }) => watchLive(url, path, testPersonalKey)))
    for (const [index, { url }] of fronts.entries()) {
      const body = { api_key: testProjectKey, event: `from ${index}`, distinct_id: 'ada' }
      assert.equal(await post(url, '/capture/', body), 200)
    }
    for (const client of clients) {
      await eventually(() => client.of('event').length === 2)
      const shown = client.of('event').map(({ data }) => data.event)
      assert.deepEqual(shown, ['from 0', 'from 1'])
    }
    // No timer runs here, so the timer for idle connections cannot be what ends them.
    t.mock.timers.enable({ apis: ['setTimeout'] })
    await close()
    t.mock.timers.reset()
    for (const client of clients) {
      await eventually(() => client.isClosed())
      assert.deepEqual(client.messages.at(-1)!.data, { reason: 'stopping' })
    }
  })
})
