// The data of rejected requests in the reject store: the event at fault, its distinct id and lane, and how many events are
// counted as rejected.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { CapturedReject } from '#core/events/captured-event.ts'
import { type CaptureServer, startCaptureServer, testToken } from '../support/capture-server.ts'
import { eventually } from '../support/eventually.ts'
import { sendV1, uuidOf, type V1Headers, v1Batch, v1Event, v1Headers } from './v1-requests.ts'

const uuid = '0197c5a0-0000-7000-8000-000000000001'
const good = { event: 'paid', distinct_id: 'ada', uuid }

/** Sends a request that is refused, and returns its reject. */
async function keptOf(server: CaptureServer, path: string, body: object): Promise<CapturedReject> {
  const before = (await server.records()).rejects.length
  const answer = await server.post(path, JSON.stringify(body))
  assert.equal(answer.status, 400, await answer.text())
  return eventually(async () => (await server.records()).rejects[before])
}

const read = ({ name, distinctId, uuid }: CapturedReject) => [name, distinctId, uuid]

describe('the reject of a v0 request', () => {
  it('has the name, ids and uuid of the only event in the request, whatever was wrong with it', async t => {
    const server = await startCaptureServer(t)
    const single = { ...good, api_key: testToken }
    const read400 = async (path: string, body: object) => read(await keptOf(server, path, body))
    const isRead = ['paid', 'ada', uuid]
    for (const path of ['/capture/', '/e/', '/batch', '/i/v0/e/', '/track/'])
      assert.deepEqual(await read400(path, { ...single, distinct_id: ' ' }), ['paid', ' ', uuid], path)
    assert.deepEqual(await read400('/e/', { ...single, properties: { $cookieless_mode: 1 } }), isRead)
    assert.deepEqual(await read400('/e/', { ...single, timestamp: 5 }), isRead)
    assert.deepEqual(await read400('/e/', { ...single, uuid: 'x' }), ['paid', 'ada', ''])
    assert.deepEqual(await read400('/e/', { ...single, event: undefined }), ['', 'ada', uuid])
    const inProperties = { ...single, distinct_id: undefined, properties: { distinct_id: 7 }, offset: 1.5 }
    assert.deepEqual(await read400('/e/', inProperties), ['paid', '7', uuid])
    assert.deepEqual(await read400('/engage/', { ...single, event: undefined, distinct_id: '' }), [
      '$identify',
      '',
      uuid,
    ])
    assert.deepEqual(await read400('/batch/', { api_key: testToken, batch: [{ ...good, $set: 5 }] }), isRead)
    assert.deepEqual(await read400('/e/', [{ ...single, timestamp: 5 }]), isRead)
  })

  it('has no event name if there are several events, or if a quota left out the others', async t => {
    const bad = { event: 'e', uuid }
    const server = await startCaptureServer(t, { quotas: { exceptions: 0 } })
    const send = (batch: object[]) => keptOf(server, '/batch/', { api_key: testToken, batch })
    assert.deepEqual(read(await send([bad, good])), ['', '', ''])
    assert.deepEqual(read(await send([{ ...bad, timestamp: 5 }, good])), ['', '', ''])
    assert.deepEqual(read(await send([{ ...good, event: '$exception' }, bad])), ['', '', ''])
  })

  it('has at most 200 characters of an event name and of an id', async t => {
    const server = await startCaptureServer(t)
    const long = { api_key: testToken, event: 'e'.repeat(300), distinct_id: 'd'.repeat(300), timestamp: 5 }
    const { name, distinctId } = await keptOf(server, '/e/', long)
    assert.deepEqual([name.length, distinctId.length], [200, 200])
  })

  it('is in the lane of imports if the envelope of the request says so', async t => {
    const server = await startCaptureServer(t)
    const single = await keptOf(server, '/e/', {
      ...good,
      api_key: testToken,
      timestamp: 5,
      historical_migration: true,
    })
    assert.deepEqual([single.lane, single.importJobId], ['main', 0])
    const batch = { api_key: testToken, historical_migration: true, batch: [{ ...good, uuid: 'x' }] }
    const { lane, importJobId, historicalMigration } = await keptOf(server, '/batch/', batch)
    assert.deepEqual([lane, importJobId, historicalMigration], ['historical', 1, true])
  })
})

describe('a rejected v0 request with its key next to its events', () => {
  const bad = { event: 'e', distinct_id: 'u', uuid: 'x' }
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const inForm = (data: string) => `token=${testToken}&data=${encodeURIComponent(data)}`
  const sent: readonly (readonly [where: string, path: string, body: string, reason: string, headers?: object])[] = [
    ['the query, and no JSON', `/e/?token=${testToken}`, '{"event":', 'invalid_json'],
    ['the query, between blanks', `/e/?token=%20${testToken}%20`, '{"event":', 'invalid_json'],
    ['a header, and no JSON', '/e/', '[1', 'invalid_json', { 'x-posthog-project-api-key': testToken }],
    ['the form, and no JSON', '/e/', inForm('{"event":'), 'invalid_json', form],
    ['the form', '/e/', inForm(JSON.stringify(bad)), 'invalid_shape', form],
    // The request is refused because the envelope has no key; the key in the item still decides which project keeps it.
    ['an item', '/batch/', JSON.stringify({ batch: [5, { ...bad, token: testToken }] }), 'missing_api_key'],
    ['an item behind others', '/e/', JSON.stringify([5, { ...bad, token: testToken }]), 'invalid_shape'],
  ]
  it('is stored and can be inspected', async t => {
    const server = await startCaptureServer(t)
    for (const [index, [where, path, body, reason, headers = {}]] of sent.entries()) {
      assert.equal((await server.post(path, body, { ...headers })).status, 400, where)
      const reject = await eventually(async () => (await server.records()).rejects[index])
      assert.deepEqual([reject.reason, reject.body !== '', reject.source?.kind], [reason, true, 'request'], where)
    }
  })
})

describe('a request that is empty once decoded', () => {
  it('is marked as having nothing to replay', async t => {
    const server = await startCaptureServer(t)
    const empty = gzipSync('')
    assert.equal((await server.post(`/e/?token=${testToken}`, empty)).status, 400)
    const { reason, body, source } = await eventually(async () => (await server.records()).rejects[0])
    assert.deepEqual([reason, body, source?.kind ?? null], ['invalid_json', '', null])
  })
})

describe('a request that is rejected before its body is read', () => {
  it('is stored and counted when a number in its query is invalid, and can be replayed', async t => {
    const server = await startCaptureServer(t)
    const batch = { api_key: testToken, historical_migration: true, batch: [good, good] }
    const several = await keptOf(server, '/batch/?_=soon', batch)
    const { reason, field, lane, source } = several
    assert.deepEqual([reason, field, lane, source?.kind], ['invalid_query', '_', 'historical', 'request'])
    assert.deepEqual([...server.refused], [['invalid_query', 1]])
    const other = await startCaptureServer(t)
    assert.deepEqual(read(await keptOf(other, '/e/?beacon=x', { ...good, api_key: testToken })), ['paid', 'ada', uuid])
    const performance = { ...good, event: '$performance_event', api_key: testToken }
    assert.equal((await keptOf(await startCaptureServer(t), '/e/?beacon=x', performance)).reason, 'invalid_query')
  })

  it('is stored if it is too large to be read and has its key outside its body', async t => {
    const server = await startCaptureServer(t)
    const reasons = async (count: number) =>
      eventually(async () => {
        const kept = (await server.records()).rejects
        return kept.length === count ? kept.map(({ reason, body }) => [reason, body]) : undefined
      })
    const over = (mebibytes: number) => new Uint8Array(mebibytes * 1024 * 1024 + 1)
    assert.equal((await server.post(`/batch/?token=${testToken}`, over(20))).status, 413)
    assert.deepEqual(await reasons(1), [['payload_too_large', '']])
    assert.equal((await server.post('/i/v1/analytics/events', over(10), v1Headers)).status, 413)
    assert.deepEqual(await reasons(2), Array(2).fill(['payload_too_large', '']))
    assert.equal((await server.post('/batch/', over(20))).status, 413)
    const { values } = await server.metrics.eventsRefused.get()
    assert.equal(values.find(({ labels }) => labels.reason === 'payload_too_large')?.value, 3)
  })
})

describe('a v1 request that is rejected as a whole', () => {
  /** The result: its reject, and how many events are counted in addition. */
  async function refusedBy(t: TestContext, body: string, over: V1Headers = {}) {
    const server = await startCaptureServer(t)
    const { status } = await sendV1(server, body, over)
    assert.ok(status >= 400)
    const reject = await eventually(async () => (await server.records()).rejects[0])
    return { reject, counted: [...server.refused] }
  }

  it('counts each of its events, so that stored and counted events add up to those sent', async t => {
    const three = [v1Event(1), v1Event(2), v1Event(1)]
    for (const [body, reason] of [
      [v1Batch(three), 'duplicate_event_uuid'],
      [v1Batch([...three, 5]), 'request_parsing_error'],
      [v1Batch(three, { created_at: 'soon' }), 'invalid_batch'],
      [v1Batch(three, { historical_migration: 'yes' }), 'request_parsing_error'],
      [v1Batch(three).replace('u1', '\\ud800'), 'request_parsing_error'],
    ] as const) {
      const { reject, counted } = await refusedBy(t, body)
      assert.equal(reject.reason, reason)
      assert.deepEqual(counted, [[reason, body.includes(',5]') ? 3 : 2]])
      assert.deepEqual(read(reject), ['', '', ''])
    }
    const large = v1Batch([...three, v1Event(4, { properties: { a: 'x'.repeat(1_200_000) } })])
    assert.deepEqual((await refusedBy(t, large)).counted, [['duplicate_event_uuid', 3]])
  })

  it('counts as one event if its events cannot be counted', async t => {
    for (const [body, over] of [
      ['{', {}],
      ['[]', {}],
      [v1Batch([]), {}],
      [v1Batch([v1Event(1), v1Event(2)]), { 'content-encoding': 'gzip' }],
      [v1Batch([v1Event(1), v1Event(2)]), { 'posthog-attempt': '0' }],
    ] as const)
      assert.deepEqual((await refusedBy(t, body, over)).counted, [], body)
  })

  it('has the name, id and uuid of its only event, and the lane of imports when it is an import', async t => {
    const one = v1Batch([v1Event(1, { timestamp: 5 })], { historical_migration: true })
    const { reject } = await refusedBy(t, one)
    assert.deepEqual(read(reject), ['$pageview', 'u1', uuidOf(1)])
    assert.deepEqual([reject.lane, reject.importJobId], ['historical', 1])
  })
})
