import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseCaptureQuery } from './capture-query.ts'
import { type CaptureParse, parseCaptureRequest } from './capture-request.ts'
import { structuredIdBytesMax } from './incoming-item.ts'
import type { CaptureContext } from './open-request.ts'

function parse(value: unknown, over: Partial<CaptureContext> = {}, formToken: string | null = null): CaptureParse {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const context = {
    engage: false,
    querySentAtMs: null,
    fallbackToken: null,
    itemCountMax: 1e6,
    parsedBytesMax: 1e6,
    structuredIdBytesMax,
    ...over,
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: tests for ASCII, control characters included.
  const ascii = /^[\x00-\x7f]*$/.test(text)
  return parseCaptureRequest({ text, bytes: Buffer.from(text), ascii, formToken }, context)
}

function requestOf(value: unknown, over: Partial<CaptureContext> = {}, formToken: string | null = null) {
  const parsed = parse(value, over, formToken)
  assert.ok(parsed.ok && typeof parsed.value === 'object' && !('kind' in parsed.value), JSON.stringify(parsed))
  const events = parsed.value.items.filter(item => item.kind === 'event')
  return { ...parsed.value, events }
}

function codeOf(value: unknown, over: Partial<CaptureContext> = {}): string {
  const parsed = parse(value, over)
  if (!parsed.ok) return parsed.error.error.code
  return typeof parsed.value === 'object' && 'kind' in parsed.value ? parsed.value.kind : String(parsed.value)
}

const named = { event: 'e', distinct_id: 'u' }

describe('parseCaptureRequest, shapes', () => {
  it('reads a list, a batch and a single event alike', () => {
    for (const value of [[{ ...named, token: 'k' }], { token: 'k', batch: [named] }, { ...named, api_key: 'k' }]) {
      const { token, events, historicalMigration } = requestOf(value)
      assert.deepEqual([token, events.map(({ name }) => name), historicalMigration], ['k', ['e'], false])
    }
  })
  it('accepts a batch under the name data, unless the object is an event itself', () => {
    assert.equal(requestOf({ api_key: 'k', data: [named, named] }).events.length, 2)
    assert.equal(requestOf({ ...named, api_key: 'k', data: [named, named] }).events.length, 1)
  })
  it('explains that a list under events must be sent as batch', () => {
    const parsed = parse({ api_key: 'k', events: [named] })
    assert.ok(!parsed.ok)
    const { code, attr, hint } = parsed.error.error
    assert.deepEqual([code, attr], ['missing_event_name', 'event'])
    assert.match(hint!, /a list of events is in `batch`/)
  })
  it('accepts events without a name only on engage, as $identify', () => {
    const profile = { $token: 'k', $distinct_id: 'u', $set: { plan: 'pro' } }
    assert.equal(codeOf(profile), 'missing_event_name')
    const [event] = requestOf(profile, { engage: true }).events
    assert.deepEqual([event!.name, event!.distinctId, event!.setJson], ['$identify', 'u', '{"plan":"pro"}'])
    assert.equal(requestOf({ ...named, token: 'k' }, { engage: true }).events[0]!.name, 'e')
    assert.equal(codeOf([profile], { engage: true }), 'invalid_shape')
  })
  it('takes a batch’s key from an item’s api_key or properties, and a list’s key from any place', () => {
    for (const item of [
      { ...named, api_key: 'k' },
      { ...named, properties: { token: 'k' } },
    ])
      for (const root of [{ batch: [item] }, { data: [item] }, [item]]) assert.equal(requestOf(root).token, 'k')
    for (const root of [{ data: [{ ...named, token: 'k' }] }, [{ ...named, token: 'k' }]])
      assert.equal(requestOf(root).token, 'k')
  })
  it('distinguishes a broken envelope from an event without a name', () => {
    const envelopes: [object, string][] = [
      [{ batch: [named] }, 'missing_api_key'],
      [{ token: 'k', batch: [{}] }, 'missing_event_name'],
      [{ token: 'k', batch: [named], historical_migration: 'true' }, 'invalid_shape'],
      [{ token: 'k', batch: [named], sent_at: 5 }, 'invalid_shape'],
      [{ $token: 'k', batch: [{ ...named }] }, 'missing_api_key'],
      [{ batch: [{ ...named, token: 'k' }] }, 'missing_api_key'],
      [{ batch: [{ ...named, $token: 'k' }] }, 'missing_api_key'],
    ]
    for (const [envelope, code] of envelopes) assert.equal(codeOf(envelope), code, JSON.stringify(envelope))
  })
  it('separates performance events before it requires a key', () => {
    assert.equal(codeOf([{ event: '$performance_event' }]), 'no_event_left')
    const { items, events, sourceJson } = requestOf({
      token: 'k',
      batch: [{ event: '$performance_event' }, { ...named, uuid: '' }],
    })
    assert.deepEqual(items[0], { kind: 'performance', uuid: '' })
    assert.equal(events.length, 1)
    assert.equal(sourceJson(1), '{"event":"e","distinct_id":"u","uuid":""}')
  })
  it('leaves requests with too many items or too long a text to a thread', () => {
    assert.equal(codeOf({ token: 'k', batch: [named, named] }, { itemCountMax: 1 }), 'too_much_work')
    assert.equal(codeOf('[0,0,0,0,0,0]', { parsedBytesMax: 12 }), 'too_much_work')
    assert.equal(codeOf({ token: 'k', batch: [] }, { parsedBytesMax: 12 }), 'empty_batch')
    const listed = { event: 'e', distinct_id: Array(500).fill(0) }
    assert.equal(codeOf({ token: 'k', batch: [listed, listed] }, { structuredIdBytesMax: 2_000 }), 'too_much_work')
    assert.equal(requestOf({ token: 'k', batch: [listed] }, { structuredIdBytesMax: 2_000 }).events.length, 1)
    assert.equal(codeOf('[0,0,0,0,0,0]', { parsedBytesMax: 13 }), 'invalid_shape')
  })
})

describe('parseCaptureRequest, keys', () => {
  it('prefers the envelope’s key to an item’s, and an item’s to one outside the body', () => {
    assert.equal(requestOf({ api_key: 'k', batch: [{ ...named, token: 'other' }] }).token, 'k')
    assert.equal(requestOf({ batch: [{ ...named, api_key: 'own' }] }, { fallbackToken: 'out' }).token, 'own')
    assert.equal(requestOf({ ...named, properties: { token: 'inside' } }).token, 'inside')
    assert.equal(requestOf({ batch: [named] }, { fallbackToken: 'out' }).token, 'out')
    assert.equal(requestOf(named, { fallbackToken: 'out' }, 'form').token, 'form')
  })
  it('requires one key for a list, wherever its events have it', () => {
    assert.equal(requestOf([named, { ...named, properties: { token: 'k' } }, { ...named, $token: 'k' }]).token, 'k')
    assert.equal(
      codeOf([
        { ...named, token: 'a' },
        { ...named, token: 'b' },
      ]),
      'inconsistent_api_keys',
    )
    assert.equal(codeOf([named]), 'missing_api_key')
  })
  it('trims a key and names its fault', () => {
    assert.equal(requestOf({ ...named, token: ' k\n' }).token, 'k')
    const faults = {
      ' ': 'empty',
      [`${'x'.repeat(65)}`]: 'too_long',
      é: 'not_ascii',
      phx_1: 'personal_api_key',
      'a\0b': 'null_byte',
    }
    for (const [token, fault] of Object.entries(faults)) {
      const parsed = parse({ ...named, token })
      assert.equal(parsed.ok || parsed.error.error.detail, `API key is not valid: ${fault}`)
    }
  })
  it('reports the key of a refused request', () => {
    for (const value of [
      { token: 'k', batch: [] },
      { ...named, api_key: 'k', uuid: 'x' },
      [{ ...named, token: 'k', offset: 'x' }],
    ]) {
      const parsed = parse(value)
      assert.equal(parsed.ok || parsed.error.token, 'k')
    }
  })
})

describe('parseCaptureRequest, fields', () => {
  const eventOf = (fields: object) => requestOf({ event: 'e', token: 'k', ...fields }).events[0]!
  it('takes the distinct id from the top level, then from properties, and keeps an empty one', () => {
    const properties = { distinct_id: 'inside' }
    assert.equal(eventOf({ distinct_id: 'top', properties }).distinctId, 'top')
    assert.equal(eventOf({ distinct_id: null, properties }).distinctId, 'inside')
    assert.equal(eventOf({ properties }).distinctId, 'inside')
    assert.equal(eventOf({ distinct_id: '', properties }).distinctId, '')
    assert.equal(eventOf({ properties: { distinct_id: null } }).distinctId, null)
    assert.equal(eventOf({ properties: { distinct_id: null, $distinct_id: 'aliased' } }).distinctId, 'aliased')
    assert.equal(eventOf({ properties: { distinct_id: 'inside', $distinct_id: 'aliased' } }).distinctId, 'inside')
    assert.equal(eventOf({ $distinct_id: 23.5 }).distinctId, '23.5')
    assert.equal(eventOf({ distinct_id: { b: [true], a: null } }).distinctId, '{"a":null,"b":[true]}')
  })
  it('keeps the digits of numeric ids', () => {
    const read = (text: string) => requestOf(text).events[0]!.distinctId
    assert.equal(read('{"event":"é","token":"k","distinct_id":12345678901234567890}'), '12345678901234567890')
    assert.equal(
      read('{"event":"e","token":"k","properties":{"distinct_id":12345678901234567891}}'),
      '12345678901234567891',
    )
  })
  it('distinguishes numeric ids beyond the precision of doubles', () => {
    const read = (text: string) => requestOf(text).events[0]!.distinctId
    assert.equal(read('{"event":"e","token":"k","distinct_id":1e400}'), '1e400')
    assert.equal(read('{"event":"e","token":"k","distinct_id":-1E+401}'), '-1E+401')
    assert.equal(read('{"event":"e","token":"k","properties":{"distinct_id":[1e400]}}'), '[1e400]')
    assert.equal(
      read('{"event":"e","token":"k","properties":{"distinct_id":1,"a":{"distinct_id":2},"distinct_id" : 1.50 }}'),
      '1.5',
    )
  })
  it('refuses lists and objects as ids that are too long in total', () => {
    const long = (count: number) => [...Array(count).keys()].map(index => 1e5 + index)
    const batch = (count: number) => [1, 2].map(() => ({ event: 'e', properties: { distinct_id: long(count) } }))
    assert.equal(requestOf({ token: 'k', batch: batch(4_000) }).events.length, 2)
    assert.equal(codeOf({ token: 'k', batch: batch(5_000) }), 'invalid_shape')
    assert.equal(codeOf({ token: 'k', event: 'e', distinct_id: long(10_000) }), 'invalid_shape')
  })
  it('reads uuids, old message ids that are uuids, and neither', () => {
    const uuid = '0197c5a0-0000-7000-8000-00000000abcd'
    assert.equal(eventOf({ uuid: uuid.toUpperCase() }).uuid, uuid)
    assert.equal(eventOf({ uuid: '', messageId: uuid }).uuid, uuid)
    assert.equal(eventOf({ uuid: null, messageId: 'msg-1' }).uuid, null)
  })
  it('accepts PHP’s empty list as an empty map, and no other list', () => {
    const [event] = requestOf({ ...named, token: 'k', properties: [], $set: [], $set_once: [] }).events
    assert.deepEqual([event!.propertiesJson, event!.setJson, event!.setOnceJson], ['{}', null, null])
    for (const field of ['properties', '$set', '$set_once'])
      assert.equal(codeOf({ ...named, token: 'k', [field]: [1] }), 'invalid_shape')
  })
  it('drops unknown fields, and an unset outside properties', () => {
    const event = eventOf({
      $unset: ['a'],
      type: 'capture',
      ip: '8.8.8.8',
      $set: null,
      $set_once: { a: 1 },
      timestamp: null,
      offset: null,
    })
    assert.deepEqual(
      [event.propertiesJson, event.setJson, event.setOnceJson, event.timestamp, event.offsetMs],
      ['{}', null, '{"a":1}', null, null],
    )
  })
  it('takes the send time of the envelope when it names a zone, else of the query', () => {
    const sentAt = (envelope: object) =>
      requestOf({ token: 'k', batch: [named], ...envelope }, { querySentAtMs: 7 }).sentAtMs
    assert.equal(sentAt({ sent_at: '2025-07-01T11:00:05Z' }), Date.parse('2025-07-01T11:00:05Z'))
    assert.equal(sentAt({ sentAt: '2025-07-01T11:00:05+00:00' }), Date.parse('2025-07-01T11:00:05Z'))
    assert.equal(sentAt({ sent_at: '2025-07-01T11:00:05' }), 7)
    assert.equal(requestOf({ ...named, token: 'k', sent_at: '2025-07-01T11:00:05Z' }).sentAtMs, null)
  })
  it('takes the historical flag from an envelope alone, as a boolean', () => {
    const flagged = { historical_migration: true }
    assert.equal(requestOf({ token: 'k', batch: [named], ...flagged }).historicalMigration, true)
    assert.equal(requestOf({ token: 'k', batch: [{ ...named, ...flagged }] }).historicalMigration, false)
    assert.equal(requestOf({ ...named, token: 'k', ...flagged }).historicalMigration, false)
  })
})

describe('parseCaptureQuery', () => {
  it('reads what it knows and ignores the rest', () => {
    assert.deepEqual(parseCaptureQuery({ compression: 'gzip', beacon: '1', _: '1751367610000', v: '3', token: 'k' }), {
      ok: true,
      value: { compression: 'gzip', data: '', beacon: true, sentAtMs: 1751367610000, token: 'k', verbose: false },
    })
    assert.equal(parseCaptureQuery(undefined).ok, true)
  })
  it('reads verbose 1 and true as a request for verdicts', () => {
    for (const [verbose, expected] of [
      ['1', true],
      ['true', true],
      ['0', false],
      ['false', false],
      ['2', false],
      ['', false],
    ] as const) {
      const query = parseCaptureQuery({ verbose })
      assert.equal(query.ok && query.value.verbose, expected, verbose)
    }
  })
  it('refuses a beacon that is not an integer, empty text included', () => {
    for (const name of ['_', 'sent_at', 'beacon']) {
      for (const value of ['', '1.5', 'x', '0x1', ' 1', '2025-07-01T10:00:00Z']) {
        const query = parseCaptureQuery({ [name]: value })
        assert.equal(query.ok ? null : query.error.attr, name, `${name}=${value}`)
      }
    }
  })
  it('ignores send times before 2021, so seconds too', () => {
    for (const _ of ['1751367610', '-5']) {
      const query = parseCaptureQuery({ _ })
      assert.equal(query.ok && query.value.sentAtMs, null)
    }
  })
  it('refuses a send time that is not an integer, and two send times', () => {
    for (const query of [
      { beacon: 'true' },
      { _: '1.5' },
      { sent_at: '2025-07-01' },
      { _: '1', sent_at: '1' },
      { beacon: ['1', '1'] },
    ]) {
      const parsed = parseCaptureQuery(query)
      assert.equal(parsed.ok || parsed.error.code, 'invalid_query')
    }
  })
})
