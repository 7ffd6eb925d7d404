// Input from broken, careless and hostile clients always gets the documented answer, never a 500, and is never half
// stored.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { PortError } from '#ports/port-error.ts'
import { type CaptureServer, startCaptureServer, testToken } from '../support/capture-server.ts'
import { eventually } from '../support/eventually.ts'
import { fieldOf, fieldsOf } from '../support/fields-of.ts'

const event = { api_key: testToken, event: 'e', distinct_id: 'u', properties: { a: 1 } }
const item = { event: 'e', distinct_id: 'u', properties: { a: 1 } }

async function answerOf(response: Response): Promise<{ status: number; code: string | null; attr: string | null }> {
  const text = await response.text()
  if (response.status === 200) {
    assert.equal(text, '{"status":"Ok"}')
    return { status: 200, code: null, attr: null }
  }
  const body = JSON.parse(text) as { type: string; code: string; detail: string; attr: string | null }
  assert.ok(body.type !== '' && body.detail !== '', text)
  assert.equal(response.headers.get('content-type'), 'application/json')
  return { status: response.status, code: body.code, attr: body.attr }
}

async function assertRefused(server: CaptureServer, sent: Promise<Response>, status: number, code: string) {
  const answer = await answerOf(await sent)
  assert.deepEqual([answer.status, answer.code], [status, code])
  assert.deepEqual((await server.records()).events, [])
}

const json = (value: unknown) => JSON.stringify(value)
const batch = (...items: unknown[]) => json({ api_key: testToken, batch: items })

describe('the capture endpoints, given bad input', () => {
  it('refuse text that no parser accepts, and values that are nested too deeply or too large', async t => {
    const server = await startCaptureServer(t)
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
    const start = `{"api_key":"${testToken}","event":"e",`
    for (const [body, status, code] of [
      ['{"api_key": ', 400, 'invalid_json'],
      ['hello', 400, 'invalid_json'],
      ['null', 400, 'invalid_utf8'], // which reads as base64
      [`{"event":"e","properties":${nested(1_000)}}`, 400, 'invalid_json'],
      [`{"event":"e","properties":${nested(500)}}`, 400, 'invalid_shape'],
      [`${start}"distinct_id":"u","properties":{"a":${nested(500)}}}`, 400, 'invalid_json'],
      [`${start}"distinct_id":${nested(500)}}`, 400, 'invalid_json'],
      [json({ ...event, properties: { a: 'x'.repeat(1_000_000) } }), 413, 'payload_too_large'],
    ] as const)
      await assertRefused(server, server.post('/batch/', body), status, code)
  })

  it('count every event of a malformed request, and every event that is dropped without a reject', async t => {
    const server = await startCaptureServer(t)
    const timing = { ...item, event: '$performance_event' }
    const refused = json({ api_key: testToken, batch: [item, item, { ...item, uuid: 'nope' }] })
    assert.equal((await server.post('/batch/', refused)).status, 400)
    assert.equal((await server.post('/batch/', batch(item, timing, { event: 'no id' }))).status, 400)
    // One of each request's events is counted by its reject.
    assert.deepEqual(
      [...server.refused],
      [
        ['invalid_shape', 2],
        ['missing_distinct_id', 2],
      ],
    )
    server.refused.clear()
    assert.equal((await server.post('/batch/', batch(item, timing, timing))).status, 200)
    assert.equal((await server.post('/batch/?verbose=1', batch(item, timing))).status, 200)
    assert.equal((await server.post('/batch/', batch(timing, timing))).status, 200)
    await new Promise(setImmediate)
    assert.deepEqual([...server.refused], [['dropped_performance_event', 5]])
  })

  it('report the actual fault of a broken envelope, and the index of a bad event, in the answer and in the reject', async t => {
    const server = await startCaptureServer(t)
    const faults: [body: object, code: string, attr: string][] = [
      [{ api_key: testToken, batch: [item, { ...item, uuid: 'nope' }] }, 'invalid_shape', 'batch.1.uuid'],
      [{ api_key: testToken, batch: [item, { distinct_id: 'u' }] }, 'missing_event_name', 'batch.1.event'],
      [{ api_key: testToken, batch: [item, { ...item, event: 5 }] }, 'invalid_shape', 'batch.1.event'],
      [{ api_key: testToken, batch: [item, { ...item, offset: 1.5 }] }, 'invalid_shape', 'batch.1.offset'],
      [{ api_key: testToken, batch: [item, 5] }, 'invalid_shape', 'batch.1'],
      [{ api_key: testToken, batch: { 0: item } }, 'invalid_shape', 'batch'],
      [{ api_key: testToken, batch: [item], historical_migration: 'true' }, 'invalid_shape', 'historical_migration'],
      [{ api_key: testToken, batch: [item], sent_at: 5 }, 'invalid_shape', 'sent_at'],
      [{ api_key: testToken, token: testToken, batch: [item] }, 'invalid_shape', 'api_key'],
      [{ batch: [{ ...item, token: testToken }] }, 'missing_api_key', 'api_key'],
      [{ $token: testToken, batch: [item] }, 'missing_api_key', 'api_key'],
      [{ ...event, event: 5 }, 'invalid_shape', 'event'],
      [{ ...event, properties: ['a'] }, 'invalid_shape', 'properties'],
      [[{ ...event, uuid: 'x' }], 'invalid_shape', '0.uuid'],
      [{ api_key: testToken, distinct_id: 'u' }, 'missing_event_name', 'event'],
      [{ api_key: testToken, batch: [item, { event: 'b' }] }, 'missing_distinct_id', 'batch.1.distinct_id'],
      [{ api_key: testToken, data: [item, { event: 'b' }] }, 'missing_distinct_id', 'data.1.distinct_id'],
      [[event, { event: 'b' }], 'missing_distinct_id', '1.distinct_id'],
      [{ api_key: testToken, event: 'b' }, 'missing_distinct_id', 'distinct_id'],
    ]
    for (const [body, code, attr] of faults) {
      const answer = await answerOf(await server.post('/batch/', json(body)))
      assert.deepEqual([answer.status, answer.code, answer.attr], [400, code, attr], json(body))
      const reject = (await server.records()).rejects.at(-1)
      assert.deepEqual([reject?.reason, reject?.field], [code, attr], json(body))
    }
  })

  it('answer 413 to an oversized body, and to a decompression bomb before it is decompressed', async t => {
    const server = await startCaptureServer(t)
    await assertRefused(server, server.post('/batch/', ' '.repeat(20 * 1024 * 1024 + 1)), 413, 'payload_too_large')
    const many = gzipSync(`[${'0,'.repeat(5_000_000)}0]`)
    await assertRefused(server, server.post('/batch/', many), 413, 'payload_too_large')
    const spaces = Buffer.alloc(110 * 1024 * 1024, 0x20)
    for (const bomb of [gzipSync(spaces), zstdCompressSync(spaces)]) {
      await assertRefused(
        server,
        server.post('/batch/', bomb, { 'content-encoding': bomb[0] === 0x1f ? 'gzip' : 'zstd' }),
        413,
        'payload_too_large',
      )
    }
  })

  it('answer 413 to a batch above the limit of events on every path, and accept a batch at the limit', async t => {
    const server = await startCaptureServer(t)
    const list = (count: number) => Array<string>(count).fill(json(item)).join(',')
    const bodies: [path: string, body: string][] = [
      ['/batch/', `{"api_key":"${testToken}","batch":[${list(50_001)}]}`],
      ['/batch/', `{"api_key":"${testToken}","historical_migration":true,"batch":[${list(50_001)}]}`],
      ['/batch/?verbose=1', `{"api_key":"${testToken}","batch":[${list(50_001)}]}`],
      ['/capture/', `[${Array<string>(50_001).fill(json(event)).join(',')}]`],
      ['/engage/', `{"api_key":"${testToken}","data":[${list(50_001)}]}`],
    ]
    for (const [path, body] of bodies)
      await assertRefused(server, server.post(path, gzipSync(body)), 413, 'payload_too_large')
    const { rejects } = await server.records()
    assert.deepEqual(
      fieldOf(rejects, 'reason'),
      bodies.map(() => 'payload_too_large'),
    )
    const largest = gzipSync(`{"api_key":"${testToken}","batch":[${list(50_000)}]}`)
    assert.equal((await answerOf(await server.post('/batch/', largest))).status, 200)
    assert.equal((await server.records()).events.length, 50_000)
  })

  it('treat __proto__ and constructor as ordinary keys everywhere', async t => {
    const server = await startCaptureServer(t)
    const hostile =
      '"__proto__":{"event":"x","distinct_id":"x","polluted":true},"constructor":{"prototype":{"polluted":true}}'
    const properties = `{${hostile},"a":1}`
    const bodies = [
      `{${hostile},"api_key":"${testToken}","event":"e","distinct_id":"u","properties":${properties},"$set":{${hostile}}}`,
      `{"api_key":"${testToken}","batch":[{${hostile},"event":"e","distinct_id":"u","properties":${properties}}],${hostile}}`,
      `[{"token":"${testToken}",${hostile},"event":"e","distinct_id":"u","properties":${properties}}]`,
    ]
    for (const body of bodies) assert.equal((await answerOf(await server.post('/e/', body))).status, 200)
    const form = new URLSearchParams({ __proto__: 'x', constructor: 'y', data: bodies[0]! }).toString()
    const formType = { 'content-type': 'application/x-www-form-urlencoded' }
    assert.equal(
      (await answerOf(await server.post('/e/?__proto__=1&constructor=2', form.replace(/^/, '_=1&'), formType))).status,
      200,
    )
    const { events } = await server.records()
    assert.deepEqual(fieldsOf(events, 'propertiesJson', 'name'), Array(4).fill([properties, 'e']))
    assert.equal(events[0]!.setJson, `{${hostile}}`)
    assert.equal(({} as { polluted?: boolean }).polluted, undefined)
    const onlyInherited = `{"api_key":"${testToken}","__proto__":{"event":"x","distinct_id":"x"}}`
    assert.equal((await answerOf(await server.post('/e/', onlyInherited))).code, 'missing_event_name')
  })

  it('store what they rejected for the project, within size limits', async t => {
    const server = await startCaptureServer(t)
    const body = batch(item, { event: 'e', note: 'x'.repeat(100_000) })
    for (let count = 0; count < 120; count++) assert.equal((await server.post('/batch/', body)).status, 400)
    await server.post('/batch/', json({ ...event, uuid: 'x', api_key: 'phc_other' }))
    const { rejects, events } = await server.records()
    assert.deepEqual(events, [])
    assert.equal(rejects.length, 100)
    assert.deepEqual([rejects[0]!.reason, rejects[0]!.field], ['missing_distinct_id', 'batch.1.distinct_id'])
    assert.equal(rejects[0]!.body, body.slice(0, 64 * 1024))
    const refusedCount = (await server.metrics.eventsRefused.get()).values.find(
      value => value.labels.reason === 'missing_distinct_id',
    )
    assert.equal(refusedCount?.value, 120)
    server.clock.advance(1_000)
    await server.post('/batch/', json({ ...event, uuid: 'x' }))
    const last = await eventually(async () => (await server.records()).rejects[100])
    assert.deepEqual([last.reason, last.field], ['invalid_shape', 'uuid'])
  })

  it('store events of an import with unreadable times as rejects, and answer 200', async t => {
    const server = await startCaptureServer(t)
    const bad = { ...item, timestamp: 'long ago', uuid: '0197c5a0-0000-7000-8000-000000000009' }
    const good = { ...item, timestamp: '2020-01-01T00:00:00Z' }
    const body = json({ api_key: testToken, historical_migration: true, batch: [bad, good] })
    assert.equal((await answerOf(await server.post('/batch/', body))).status, 200)
    const { events, rejects } = await server.records()
    assert.deepEqual(fieldsOf(events, 'lane', 'timestampMs'), [['historical', Date.parse(good.timestamp)]])
    assert.deepEqual(
      rejects.map(({ reason, uuid, body: kept }) => [reason, uuid, kept]),
      [['timestamp_invalid', bad.uuid, json(bad)]],
    )
  })

  it('ask for a retry when the log rejects events, also in answers to pages of other origins, and never answer 200', async t => {
    for (const code of ['full', 'unavailable', 'timeout'] as const) {
      const server = await startCaptureServer(t, {
        wrapLog: log => ({ ...log, append: () => Promise.reject(new PortError('event-log', code)) }),
      })
      const response = await server.post('/capture/', json(event), { origin: 'https://shop.example' })
      assert.equal(response.headers.get('access-control-allow-origin'), 'https://shop.example')
      const retryAfter = response.headers.get('retry-after') ?? ''
      assert.ok(/^\d+$/.test(retryAfter) && Number(retryAfter) >= 1 && Number(retryAfter) <= 30, retryAfter)
      await assertRefused(server, Promise.resolve(response), 503, 'transient_error')
    }
  })

  it('answer only after the log has stored the events', async t => {
    let release = () => {}
    const server = await startCaptureServer(t, {
      wrapLog: log => ({
        ...log,
        append: (traffic, records) =>
          new Promise<void>(resolve => (release = resolve)).then(() => log.append(traffic, records)),
      }),
    })
    let answered = false
    const sent = server.post('/capture/', json(event)).then(response => {
      answered = true
      return response
    })
    const waiting = release
    await eventually(() => release !== waiting)
    assert.equal(answered, false)
    release()
    assert.equal((await sent).status, 200)
    assert.equal((await server.records()).events.length, 1)
  })

  it('preserve the literals, the order and the duplicates of properties', async t => {
    const server = await startCaptureServer(t)
    const properties = '{ "z":1.0, "big":12345678901234567890,"e":1e2, "é":"\\u00e9\\ud83d\\ude00", "z":2 }'
    await server.post(
      '/e/',
      `{"api_key":"${testToken}","event":"e","distinct_id":12345678901234567890,"properties":${properties},"$set":{"n":1.50}}`,
    )
    const [stored] = (await server.records()).events
    assert.equal(stored!.propertiesJson, properties)
    assert.equal(stored!.setJson, '{"n":1.50}')
    assert.equal(stored!.distinctId, '12345678901234567890')
  })

  it('never answer 500', async t => {
    const server = await startCaptureServer(t)
    const field = fc.constantFrom(
      'api_key',
      'token',
      'event',
      'distinct_id',
      'uuid',
      'properties',
      'timestamp',
      'offset',
      '$set',
      'batch',
      'sent_at',
      'historical_migration',
      '__proto__',
    )
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 3 }),
      fc.constantFrom(testToken, '', null, '2025-07-01T10:00:00Z', '0197c5a0-0000-7000-8000-000000000001'),
      fc.constant([{ event: 'e', distinct_id: 'u' }]),
    )
    const body = fc.oneof(
      fc.dictionary(field, value).map(json),
      fc.array(fc.dictionary(field, value), { maxLength: 3 }).map(json),
      fc.string(),
      fc.uint8Array().map(bytes => gzipSync(bytes) as Uint8Array<ArrayBuffer>),
    )
    const path = fc.constantFrom(
      '/e/',
      '/batch',
      '/engage/',
      '/track/',
      '/i/v0/e',
      '/capture/?compression=gzip',
      '/e/?_=1&sent_at=2',
      '/e/?beacon=1',
    )
    const type = fc.constantFrom('application/json', 'text/plain', 'application/x-www-form-urlencoded', 'x')
    await fc.assert(
      fc.asyncProperty(path, body, type, async (to, sent, contentType) => {
        const response = await server.post(to, sent, { 'content-type': contentType })
        const text = await response.text()
        assert.ok([200, 204, 400, 401].includes(response.status), `${response.status} ${text}`)
      }),
      { numRuns: 400 },
    )
  })
})
