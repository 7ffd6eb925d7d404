// Capture protocol v1 over HTTP: bodies, one verdict per event, and which events may be sent again.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import type { Traffic } from '#core/events/log-stream.ts'
import type { EventLogAppender } from '#ports/log/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import { startCaptureServer } from '../support/capture-server.ts'
import { fieldOf, fieldsOf } from '../support/fields-of.ts'
import { assertV1Error, sendV1, uuidOf, v1Batch, v1Event } from './v1-requests.ts'

const good = v1Batch([v1Event(1)])
const ok = { result: 'ok' }
const refusingLog = { append: () => Promise.reject(new PortError('event-log', 'unavailable')) }

describe('the bodies of v1 capture', () => {
  it('are rejected as a whole when anything in them has a wrong type, and stored for the project', async t => {
    const server = await startCaptureServer(t)
    const bad: (readonly [body: string, field: string])[] = [
      ['{', ''],
      ['[]', ''],
      ['"text"', ''],
      [v1Batch([v1Event(1)]).replace('u1', '\\ud800'), ''],
      [v1Batch([v1Event(1)], { created_at: undefined }), 'created_at'],
      [v1Batch([v1Event(1)], { created_at: 5 }), 'created_at'],
      [v1Batch([v1Event(1)], { historical_migration: 'true' }), 'historical_migration'],
      [v1Batch([v1Event(1)], { historical_migration: null }), 'historical_migration'],
      [v1Batch([v1Event(1)], { capture_internal: 1 }), 'capture_internal'],
      [v1Batch([], { batch: {} }), 'batch'],
      [v1Batch([v1Event(1), null]), 'batch.1'],
      [v1Batch([v1Event(1), v1Event(2, { event: undefined })]), 'batch.1.event'],
      [v1Batch([v1Event(1, { uuid: 5 })]), 'batch.0.uuid'],
      [v1Batch([v1Event(1, { distinct_id: 5 })]), 'batch.0.distinct_id'],
      [v1Batch([v1Event(1, { timestamp: 1751364000 })]), 'batch.0.timestamp'],
      [v1Batch([v1Event(1, { session_id: 5 })]), 'batch.0.session_id'],
      [v1Batch([v1Event(1, { window_id: {} })]), 'batch.0.window_id'],
      [v1Batch([v1Event(1)]).replace('"index":1', `"deep":${'['.repeat(200)}${']'.repeat(200)}`), 'batch'],
    ]
    for (const [body, field] of bad) {
      await assertV1Error(sendV1(server, body), 400, 'request_parsing_error', 'Failed to parse request body.')
      const { rejects } = await server.records()
      assert.equal(rejects.at(-1)?.field, field, body.slice(0, 100))
    }
    const { events, rejects } = await server.records()
    assert.deepEqual([events.length, rejects.length], [0, bad.length])
    assert.deepEqual(rejects.at(-2)!.body, bad.at(-2)![0])
    const latin1 = Buffer.from(v1Batch([v1Event(1, { properties: { text: 'é' } })]), 'latin1')
    await assertV1Error(sendV1(server, latin1), 400, 'request_parsing_error')
  })

  it('are rejected for an invalid batch, and the envelope is checked before the uuids', async t => {
    const server = await startCaptureServer(t)
    await assertV1Error(sendV1(server, ''), 400, 'empty_body', 'request body is empty')
    await assertV1Error(sendV1(server, v1Batch([], { created_at: 'x' })), 400, 'empty_batch', 'request batch is empty')
    const when = 'invalid batch: created_at is not valid RFC 3339: yesterday'
    const bothBad = v1Batch([v1Event(1, { uuid: 'x' })], { created_at: 'yesterday' })
    await assertV1Error(sendV1(server, bothBad), 400, 'invalid_batch', when)
    await assertV1Error(sendV1(server, v1Batch([v1Event(1), v1Event(2, { uuid: ' ' })])), 400, 'missing_event_uuid')
    await assertV1Error(sendV1(server, v1Batch([v1Event(1, { uuid: 'x' })])), 400, 'invalid_event_uuid')
    const twice = v1Batch([v1Event(1), v1Event(2), v1Event(3, { uuid: ` ${uuidOf(1).toUpperCase()} ` })])
    await assertV1Error(
      sendV1(server, twice),
      400,
      'duplicate_event_uuid',
      `duplicate event uuid: ${uuidOf(1).toUpperCase()}`,
    )
    assert.deepEqual((await server.records()).events, [])
  })

  it('are accepted in every encoding that the protocol allows', async t => {
    const server = await startCaptureServer(t)
    const encodings: [string, (body: string) => Uint8Array][] = [
      ['gzip', gzipSync],
      ['deflate', deflateSync],
      ['deflate', deflateRawSync],
      ['br', brotliCompressSync],
      ['zstd', zstdCompressSync],
    ]
    for (const [index, [encoding, compress]] of encodings.entries()) {
      const body = compress(v1Batch([v1Event(index, { properties: { text: 'Größe' } })]))
      const { json } = await sendV1(server, body, { 'content-encoding': encoding })
      assert.deepEqual(json, { results: { [uuidOf(index)]: ok } }, encoding)
    }
    const { events } = await server.records()
    for (const event of events) assert.equal(JSON.parse(event.propertiesJson).text, 'Größe')
    for (const encoding of ['gzip', 'deflate', 'br', 'zstd']) {
      const sent = sendV1(server, 'these are no such bytes', { 'content-encoding': encoding })
      await assertV1Error(sent, 400, 'request_decoding_error', 'Failed to decode request body.')
    }
  })

  it('are limited in size as sent and as decompressed', async t => {
    const server = await startCaptureServer(t)
    const sent = await sendV1(server, Buffer.alloc(10 * 1024 * 1024 + 1, 0x20))
    assert.equal(sent.json.error_description, 'payload too large: Request body exceeds limit of 10485760 bytes')
    const zeros = Buffer.alloc(51 * 1024 * 1024)
    for (const [encoding, compress] of [
      ['gzip', gzipSync],
      ['br', (bytes: Buffer) => brotliCompressSync(bytes, { params: { 1: 1 } })],
      ['zstd', zstdCompressSync],
    ] as const)
      await assertV1Error(sendV1(server, compress(zeros), { 'content-encoding': encoding }), 413, 'payload_too_large')
  })

  it('are rejected above the limit of events', async t => {
    const server = await startCaptureServer(t)
    const many = gzipSync(v1Batch(Array.from({ length: 50_001 }, (_, index) => v1Event(index))))
    const sent = sendV1(server, many, { 'content-encoding': 'gzip' })
    await assertV1Error(sent, 413, 'payload_too_large')
    assert.deepEqual((await server.records()).events, [])
  })

  it('are decoded in a thread with the same result if they would block the event loop', async t => {
    const server = await startCaptureServer(t)
    const events = Array.from({ length: 3_000 }, (_, index) =>
      v1Event(index, index % 100 === 7 ? { distinct_id: '' } : { properties: { text: 'ü'.repeat(400) } }),
    )
    const { json } = await sendV1(server, gzipSync(v1Batch(events)), { 'content-encoding': 'gzip' })
    const results = Object.entries(json.results)
    assert.deepEqual(
      results.map(([uuid]) => uuid),
      events.map((_, index) => uuidOf(index)),
    )
    assert.deepEqual(json.results[uuidOf(8)], ok)
    assert.deepEqual(json.results[uuidOf(7)], { result: 'drop', details: 'missing_distinct_id' })
    const records = await server.records()
    assert.deepEqual([records.events.length, records.rejects.length], [2_970, 30])
    assert.deepEqual([records.events[0]!.projectId, records.events[0]!.protocol], [1, 'v1'])
  })
})

describe('the events of v1 capture', () => {
  it('are validated one by one: valid events are stored, invalid ones reported, stored as rejects and counted', async t => {
    const server = await startCaptureServer(t)
    const cases: [over: object, details: string | null][] = [
      [{}, null],
      [{ event: '' }, 'missing_event_name'],
      [{ event: 'n'.repeat(201) }, 'event_name_too_long'],
      [{ distinct_id: '  ' }, 'missing_distinct_id'],
      [{ distinct_id: 'd'.repeat(201) }, 'distinct_id_too_large'],
      [{ timestamp: '2025-07-01' }, 'invalid_event_timestamp'],
      [{ properties: [1] }, 'malformed_event_properties'],
      [{ properties: null }, 'malformed_event_properties'],
      [{ event: '$performance_event' }, 'dropped_performance_event'],
      [{ options: { cookieless_mode: 'maybe' } }, 'invalid_options'],
      [{ options: 'none' }, 'invalid_options'],
      [{ properties: { text: 'x'.repeat(1_000_000) } }, 'event_too_big'],
      [{ properties: undefined, session_id: null, options: null }, null],
    ]
    const events = cases.map(([over], index) => v1Event(index, over))
    const { status, headers, json } = await sendV1(server, v1Batch(events))
    assert.equal(status, 200)
    assert.equal(headers['retry-after'], undefined)
    for (const [index, [, details]] of cases.entries())
      assert.deepEqual(
        json.results[uuidOf(index)],
        details === null ? ok : { result: 'drop', details },
        details ?? 'ok',
      )
    const { events: stored, rejects } = await server.records()
    assert.deepEqual(fieldOf(stored, 'uuid'), [uuidOf(0), uuidOf(12)])
    assert.deepEqual(
      fieldsOf(rejects, 'uuid', 'reason'),
      cases.flatMap(([, details], index) => (details === null ? [] : [[uuidOf(index), details]])),
    )
    const noName = rejects.find(({ reason }) => reason === 'missing_event_name')!
    assert.deepEqual(JSON.parse(noName.body), events[1])
    assert.deepEqual([noName.field, noName.lane, noName.projectId], ['event', 'main', 1])
    const counted = await server.metrics.eventsRefused.get()
    const countOf = (reason: string) => counted.values.find(({ labels }) => labels.reason === reason)?.value
    assert.deepEqual([countOf('invalid_options'), countOf('event_too_big')], [2, 1])
  })

  it('may have a 64-bit integer as the id of a tour, along with options of other kinds', async t => {
    const server = await startCaptureServer(t)
    const options = `{"product_tour_id":9,"unknown":{"a":1},"product_tour_id":18446744073709551615,"process_person_profile":1.0}`
    await sendV1(server, v1Batch([v1Event(1, { distinct_id: 'é' })]).replace('"properties"', `"options":${options},$&`))
    const [event] = (await server.records()).events
    const { $product_tour_id: tour, $process_person_profile: profile } = JSON.parse(event!.propertiesJson)
    assert.deepEqual([tour, profile], ['18446744073709551615', true])
  })

  it('include values from the headers and the envelope', async t => {
    const server = await startCaptureServer(t)
    const late = { 'posthog-request-timestamp': '2025-07-01T11:00:10Z', 'x-forwarded-for': '203.0.113.9' }
    const lib = { $lib: 'mine' }
    await sendV1(server, v1Batch([v1Event(1, { properties: lib, session_id: 's1' })]), late)
    await sendV1(server, v1Batch([v1Event(2)], { capture_internal: true }), late)
    const [event, internal] = (await server.records()).events
    assert.equal(new Date(event!.timestampMs).toISOString(), '2025-07-01T10:59:48.123Z')
    assert.equal(event!.sentAtMs, Date.parse('2025-07-01T11:00:10Z'))
    const properties = { $lib: 'posthog-rs', $session_id: 's1', $lib_version: '1.0.0' }
    assert.deepEqual(JSON.parse(event!.propertiesJson), properties)
    assert.deepEqual([event!.ip, internal!.ip], ['203.0.113.9', '127.0.0.1'])
  })

  it('keep their times if they are imported, and are dropped without a time', async t => {
    const appended: Traffic[] = []
    const wrapLog = (log: EventLogAppender): EventLogAppender => ({
      append: (traffic, records) => {
        appended.push(traffic)
        return log.append(traffic, records)
      },
    })
    const server = await startCaptureServer(t, { wrapLog })
    await sendV1(server, v1Batch([v1Event(4, { event: '' })]))
    // Drops are appended with their events, so that an import's rejects do not delay live events.
    assert.deepEqual(appended.splice(0), ['live'])
    const events = [
      v1Event(1, { timestamp: '2023-01-01T00:00:00Z' }),
      v1Event(2, { timestamp: 'once' }),
      v1Event(3, { event: '$exception' }),
    ]
    const { json } = await sendV1(server, v1Batch(events, { historical_migration: true }))
    assert.deepEqual(json.results[uuidOf(2)], { result: 'drop', details: 'invalid_event_timestamp' })
    const { events: stored, rejects } = await server.records()
    const flags = fieldsOf(stored, 'lane', 'historicalMigration', 'sentAtMs')
    assert.deepEqual(flags.toSorted(), [
      ['error_tracking', true, null],
      ['historical', true, null],
    ])
    assert.deepEqual([rejects.at(-1)!.lane, rejects.at(-1)!.historicalMigration], ['historical', true])
    assert.deepEqual(appended.toSorted(), ['import', 'import', 'live'])
  })

  it('are stored as AI events if they are sent to the AI path', async t => {
    const server = await startCaptureServer(t)
    const events = [v1Event(1, { event: '$ai_generation' }), v1Event(2)]
    const { json } = await sendV1(server, v1Batch(events), {}, { to: '/i/v1/ai/events/' })
    assert.deepEqual(json.results, { [uuidOf(1)]: ok, [uuidOf(2)]: { result: 'drop', details: 'misrouted_event' } })
    const [event] = (await server.records()).events
    assert.equal(event!.lane, 'ai')
  })
})

describe('v1 capture (keys and log failures)', () => {
  it('rejects an unknown key once the body was read, unless the instance accepts unknown keys', async t => {
    const authorization = 'Bearer phc_unknown'
    const refusing = await startCaptureServer(t)
    await assertV1Error(sendV1(refusing, '{', { authorization }), 400, 'request_parsing_error')
    await assertV1Error(sendV1(refusing, v1Batch([]), { authorization }), 400, 'empty_batch')
    const noUuid = v1Batch([v1Event(1, { uuid: '' })])
    await assertV1Error(sendV1(refusing, noUuid, { authorization }), 400, 'missing_event_uuid')
    await assertV1Error(sendV1(refusing, good, { authorization }), 401, 'invalid_api_token')
    const accepting = await startCaptureServer(t, { unknownKeys: 'accept' })
    const { status, json } = await sendV1(accepting, good, { authorization })
    assert.deepEqual([status, json.results[uuidOf(1)]], [200, ok])
    assert.deepEqual(await accepting.records(), { events: [], rejects: [] })
  })

  it('asks for a retry only of events that the log rejects', async t => {
    const server = await startCaptureServer(t, { wrapLog: () => refusingLog })
    const events = [v1Event(1), v1Event(2, { event: '' }), v1Event(3, { distinct_id: 'null' })]
    const { status, headers, json } = await sendV1(server, v1Batch(events))
    assert.deepEqual([status, headers['retry-after']], [200, '1'])
    const retry = { result: 'retry', details: 'not_persisted' }
    assert.deepEqual(json.results, {
      [uuidOf(1)]: retry,
      [uuidOf(2)]: { result: 'drop', details: 'missing_event_name' },
      [uuidOf(3)]: retry,
    })
    const allBad = await sendV1(server, v1Batch([v1Event(4, { event: '' })]))
    assert.deepEqual([allBad.status, allBad.headers['retry-after']], [200, undefined])
    assert.equal(allBad.json.results[uuidOf(4)].result, 'drop')
    // They are never sent again, and the log has no record of them.
    assert.deepEqual([...server.refused], [['missing_event_name', 2]])
  })

  it('counts dropped events once, whichever stream of the log fails', async t => {
    const wrapLog = (log: EventLogAppender): EventLogAppender => ({
      append: (traffic, records) => (traffic === 'import' ? refusingLog.append() : log.append(traffic, records)),
    })
    const server = await startCaptureServer(t, { wrapLog, rerouteOlderThanDays: 1 })
    const old = v1Event(1, { timestamp: '2025-06-01T00:00:00Z' })
    const { json } = await sendV1(server, v1Batch([old, v1Event(2, { event: '' })]))
    assert.deepEqual(json.results[uuidOf(1)], { result: 'retry', details: 'not_persisted' })
    const { rejects } = await server.records()
    assert.deepEqual([rejects.length, [...server.refused]], [1, []])
  })

  it('stores rejects once when the project’s backlog is full', async t => {
    const backlog = { take: () => null, settle: () => undefined, isBelowShare: () => false }
    const server = await startCaptureServer(t, { backlogOf: () => backlog })
    const { json } = await sendV1(server, v1Batch([v1Event(1), v1Event(2, { event: '' })]))
    assert.deepEqual(json.results, {
      [uuidOf(1)]: { result: 'retry', details: 'not_persisted' },
      [uuidOf(2)]: { result: 'drop', details: 'missing_event_name' },
    })
    const { events, rejects } = await server.records()
    assert.deepEqual([events.length, rejects.map(({ reason }) => reason)], [0, ['missing_event_name']])
    assert.deepEqual([...server.refused], [])
  })

  it('asks for a retry of the whole request when the decode threads or the log fail', async t => {
    const threadEntry = new URL('./crashing-decode-thread.ts', import.meta.url)
    const crashing = await startCaptureServer(t, { threadEntry })
    const events = Array.from({ length: 2_500 }, (_, index) => v1Event(index, index === 0 ? { event: 'crash' } : {}))
    await assertV1Error(sendV1(crashing, v1Batch(events)), 503, 'service_unavailable', 'Service Unavailable')
    const corrupt = { ...refusingLog, append: () => Promise.reject(new PortError('event-log', 'corrupt')) }
    const broken = await startCaptureServer(t, { wrapLog: () => corrupt })
    await assertV1Error(sendV1(broken, good), 500, 'internal_error', 'Internal Server Error')
  })
})
