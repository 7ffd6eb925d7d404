import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { anIncomingV1Event } from '../../../tests/support/incoming-requests.ts'
import type { CapturedEvent } from '../events/captured-event.ts'
import { createRawNumber } from '../json.ts'
import type { IncomingV1Event } from './incoming-event.ts'
import { aiEventBytesMax, eventBytesMax } from './normalize-event.ts'
import { isIllegalV1DistinctId, normalizeV1Event, type V1EventContext } from './normalize-v1-event.ts'

const receivedAtMs = Date.parse('2025-07-01T11:00:00Z')

const context: V1EventContext = {
  projectId: 7,
  token: 'phc_x',
  historicalMigration: false,
  importJobId: 0,
  receivedAtMs,
  capturedAtMs: receivedAtMs,
  sentAtMs: receivedAtMs + 10_000,
  rerouteOlderThanMs: null,
  ip: '203.0.113.7',
  sdk: null,
  aiOnly: false,
}

const anItem = (over: Partial<IncomingV1Event>) => anIncomingV1Event({ propertiesJson: '{"a":1.0}', ...over })

function normalized(over: Partial<IncomingV1Event>, contextOver: Partial<V1EventContext> = {}): CapturedEvent {
  const outcome = normalizeV1Event(anItem(over), { ...context, ...contextOver })
  assert.ok(outcome.ok, outcome.ok ? '' : outcome.error.reason)
  return outcome.value
}

function dropOf(over: Partial<IncomingV1Event>, contextOver: Partial<V1EventContext> = {}) {
  const outcome = normalizeV1Event(anItem(over), { ...context, ...contextOver })
  return outcome.ok ? null : [outcome.error.reason, outcome.error.field]
}

describe('normalizeV1Event', () => {
  it('fills in the missing fields of an event, and corrects its time by the clock of its client', () => {
    assert.deepEqual(normalized({}), {
      projectId: 7,
      token: 'phc_x',
      lane: 'main',
      historicalMigration: false,
      importJobId: 0,
      protocol: 'v1',
      personProcessingForcedOff: false,
      notes: 0,
      receivedAtMs,
      capturedAtMs: receivedAtMs,
      timestampMs: Date.parse('2025-07-01T09:59:50Z'),
      sentAtMs: receivedAtMs + 10_000,
      uuid: '0197c5a0-0000-7000-8000-000000000001',
      name: 'signed up',
      distinctId: 'ada',
      ip: '203.0.113.7',
      visitor: null,
      propertiesJson: '{"a":1.0}',
      setJson: null,
      setOnceJson: null,
    })
  })

  it('drops an invalid event, and reports the field at fault', () => {
    const eAcute = 'é' // two bytes
    const dropped: readonly (readonly [over: Partial<IncomingV1Event>, reason: string, field: string])[] = [
      [{ name: '$performance_event', distinctId: '' }, 'dropped_performance_event', 'event'],
      [{ name: '' }, 'missing_event_name', 'event'],
      [{ name: 'n'.repeat(201) }, 'event_name_too_long', 'event'],
      [{ name: eAcute.repeat(101) }, 'event_name_too_long', 'event'],
      [{ distinctId: '' }, 'missing_distinct_id', 'distinct_id'],
      [{ distinctId: eAcute.repeat(101) }, 'distinct_id_too_large', 'distinct_id'],
      [{ timestamp: '2025-07-01T10:00:00' }, 'invalid_event_timestamp', 'timestamp'],
      [{ propertiesJson: null }, 'malformed_event_properties', 'properties'],
      [{ options: [] }, 'invalid_options', 'options'],
    ]
    for (const [over, ...drop] of dropped) assert.deepEqual(dropOf(over), drop)
    for (const text of ['n'.repeat(200), eAcute.repeat(100)])
      assert.equal(normalized({ name: text, distinctId: text }).distinctId, text)
  })

  it('reports the first of several faults in the order that the protocol prescribes', () => {
    const faults: [Partial<IncomingV1Event>, string][] = [
      [{ name: '' }, 'missing_event_name'],
      [{ distinctId: '' }, 'missing_distinct_id'],
      [{ timestamp: '' }, 'invalid_event_timestamp'],
      [{ propertiesJson: null }, 'malformed_event_properties'],
      [{ options: 5 }, 'invalid_options'],
    ]
    for (let first = 0; first < faults.length; first++) {
      const item = Object.assign({}, ...faults.slice(first).map(([over]) => over))
      assert.equal(dropOf(item)![0], faults[first]![1])
    }
  })

  it('drops an event with more bytes than the log accepts, with a higher limit for AI events', () => {
    const sized = (bytes: number) => ({ propertiesJson: `{"a":"${'x'.repeat(bytes - 8)}"}` })
    assert.equal(dropOf(sized(eventBytesMax)), null)
    assert.deepEqual(dropOf(sized(eventBytesMax + 1)), ['event_too_big', 'properties'])
    assert.equal(dropOf({ ...sized(eventBytesMax + 1), name: '$ai_generation' }), null)
    const tooBig = { ...sized(aiEventBytesMax + 1), name: '$ai_generation' }
    assert.deepEqual(dropOf(tooBig), ['ai_event_too_big', 'properties'])
  })

  it('adds values that the client sends outside the properties, after the client’s own properties', () => {
    const event = normalized(
      {
        sessionId: 'S"1',
        windowId: '',
        options: {
          cookieless_mode: false,
          disable_skew_correction: ' TRUE ',
          process_person_profile: 0,
          product_tour_id: 12,
          another: {},
        },
      },
      { sdk: { name: 'posthog/rs', version: '1.2' } },
    )
    assert.equal(
      event.propertiesJson,
      '{"a":1.0,"$session_id":"S\\"1","$window_id":"","$cookieless_mode":false,"$ignore_sent_at":true,' +
        '"$product_tour_id":"12","$process_person_profile":false,"$lib":"posthog/rs","$lib_version":"1.2"}',
    )
    assert.equal(event.timestampMs, Date.parse('2025-07-01T10:00:00Z'))
    const sdk = { name: 'l', version: 'v' }
    assert.equal(normalized({ propertiesJson: ' { } ' }, { sdk }).propertiesJson, '{"$lib":"l","$lib_version":"v"}')
  })

  it('prefers values from outside the properties to properties of the same name, and writes each key once', () => {
    const propertiesJson = '{"$lib":"mine","n":1.0,"$session_id":"a","$session_id":"b","$process_person_profile":true}'
    const event = normalized(
      { propertiesJson, sessionId: 's', options: { process_person_profile: false } },
      { sdk: { name: 'l', version: 'v' } },
    )
    const properties = JSON.parse(event.propertiesJson)
    assert.deepEqual(properties, {
      $lib: 'l',
      n: 1,
      $session_id: 's',
      $process_person_profile: false,
      $lib_version: 'v',
    })
    for (const key of ['$lib', '$session_id', '$process_person_profile'])
      assert.equal(event.propertiesJson.split(`"${key}"`).length, 2, key)
    assert.ok(event.propertiesJson.includes('"n":1.0'))
  })

  it('adds values from outside the properties without parsing the properties again, however long they are', t => {
    const list = `[${'0,'.repeat(200_000)}1.0]`
    const propertiesJson = `{"$lib":"mine","list":${list}}`
    const item = anItem({ propertiesJson })
    const parses = t.mock.method(JSON, 'parse').mock
    const outcome = normalizeV1Event(item, { ...context, sdk: { name: 'l', version: 'v' } })
    assert.equal(parses.callCount(), 0)
    assert.ok(outcome.ok)
    assert.equal(outcome.value.propertiesJson, `{"list":${list},"$lib":"l","$lib_version":"v"}`)
  })

  it('reads options of several types, treats null as absent, and drops unreadable options', () => {
    const readable = [true, 'true', '1', ' True ', 1, -0.5]
    for (const value of readable) {
      assert.match(normalized({ options: { cookieless_mode: value } }).propertiesJson, /"\$cookieless_mode":true/)
    }
    for (const value of [false, 'false', '0', 'FALSE', 0])
      assert.match(normalized({ options: { cookieless_mode: value } }).propertiesJson, /"\$cookieless_mode":false/)
    const nothing = { cookieless_mode: null, product_tour_id: null }
    assert.equal(normalized({ options: nothing }).propertiesJson, '{"a":1.0}')
    for (const option of ['cookieless_mode', 'disable_skew_correction', 'process_person_profile'])
      for (const value of ['maybe', '', 'yes', {}, []])
        assert.deepEqual(dropOf({ options: { [option]: value } }), ['invalid_options', `options.${option}`])
    for (const value of [
      1.5,
      true,
      {},
      createRawNumber('12.0'),
      createRawNumber('1e2'),
      createRawNumber('9'.repeat(21)),
    ])
      assert.deepEqual(dropOf({ options: { product_tour_id: value } }), ['invalid_options', 'options.product_tour_id'])
  })

  it('keeps events with placeholder ids, but without a person', () => {
    const nil = '00000000-0000-0000-0000-000000000000'
    for (const id of ['Undefined', 'NaN', 'user', 'SYSTEM', '0', '[object Object]', nil])
      assert.ok(isIllegalV1DistinctId(id), id)
    // Some of these are on the list of ids that merges refuse, which is a different list.
    for (const id of ["'null'", '"undefined"', 'users', '00', 'ada']) assert.equal(isIllegalV1DistinctId(id), false, id)
    assert.equal(normalized({ distinctId: 'null' }).personProcessingForcedOff, true)
    assert.equal(normalized({ distinctId: 'a\0b' }).distinctId, 'a\ufffdb')
  })

  it('assigns lanes by name, and accepts only AI events on the AI path', () => {
    assert.equal(normalized({ name: '$exception' }).lane, 'error_tracking')
    assert.equal(normalized({ name: '$ai_span' }, { aiOnly: true }).lane, 'ai')
    assert.deepEqual(dropOf({ name: '$ai_unknown' }, { aiOnly: true }), ['misrouted_event', 'event'])
    assert.deepEqual(dropOf({}, { aiOnly: true }), ['misrouted_event', 'event'])
  })

  it('keeps an import’s time as written, ignores its send time, and uses the event names of imports', () => {
    const over = { historicalMigration: true, importJobId: 1 }
    const event = normalized({ name: '$group_identify', timestamp: '2023-01-01T00:00:00Z' }, over)
    assert.deepEqual(
      [event.lane, event.name, event.importJobId, event.sentAtMs],
      ['historical', '$groupidentify', 1, null],
    )
    assert.equal(event.timestampMs, Date.parse('2023-01-01T00:00:00Z'))
  })

  it('turns an old live event into an import if the instance is configured to do so', () => {
    const over = { rerouteOlderThanMs: 86_400_000, sentAtMs: receivedAtMs }
    const moved = normalized({ timestamp: '2025-06-30T11:00:00Z' }, over)
    assert.deepEqual([moved.lane, moved.historicalMigration, moved.importJobId], ['historical', true, 1])
    assert.equal(normalized({ timestamp: '2025-06-30T11:00:00.001Z' }, over).lane, 'main')
    assert.equal(normalized({ timestamp: '2025-01-01T00:00:00Z', name: '$exception' }, over).lane, 'error_tracking')
  })
})
