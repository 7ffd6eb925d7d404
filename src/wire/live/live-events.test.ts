import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { aCapturedEvent, aCapturedReject } from '../../../tests/support/values.ts'
import { encodeLiveReady, liveMessages, liveTextMax } from './live-events.ts'

/** The lines of a message, which ends with an empty line, and its data. */
function read(bytes: Uint8Array) {
  const text = Buffer.from(bytes).toString()
  assert.ok(text.endsWith('\n\n'))
  const lines = text.slice(0, -2).split('\n')
  const data = lines.at(-1)!
  assert.ok(data.startsWith('data: '), data)
  return { lines: lines.slice(0, -1), data: JSON.parse(data.slice(6)), text: data.slice(6) }
}

describe('messages of the live view', () => {
  it('show an event with the field names of lists of stored events, and properties as they were sent', () => {
    const event = aCapturedEvent(1, {
      propertiesJson: '{\r\n  "n": 1.0,\n  "big": 12345678901234567890 }',
      setJson: '{"plan": "pro"}',
    })
    const { lines, data, text } = read(liveMessages.event(event, 'main', 12))
    assert.deepEqual(lines, ['id: main:12', 'event: event'])
    const { properties, $set, ...head } = data
    assert.deepEqual(head, {
      uuid: event.uuid,
      event: '$pageview',
      distinct_id: 'person-1',
      timestamp: new Date(event.timestampMs).toISOString(),
      captured_at: new Date(event.capturedAtMs).toISOString(),
      lane: 'main',
      historical_migration: false,
      import_job_id: 0,
    })
    assert.deepEqual(Object.keys(properties), ['n', 'big'])
    assert.deepEqual($set, { plan: 'pro' })
    assert.ok(text.includes('"n": 1.0') && text.includes('12345678901234567890'))
  })

  it('keep the first members of values that are too large, and are marked as truncated', () => {
    const propertiesJson = JSON.stringify({ a: 1, b: ['},"'], pad: 'x'.repeat(liveTextMax.properties), c: 2 })
    const { data } = read(liveMessages.event(aCapturedEvent(1, { propertiesJson }), 'main', 0))
    assert.deepEqual([data.properties, data.cut], [{ a: 1, b: ['},"'] }, true])
  })

  it('show a reject with its reason and the start of the sent text', () => {
    const body = `{"a":"${'é'.repeat(liveTextMax.body)}"}`
    const { lines, data } = read(liveMessages.reject(aCapturedReject({ body }), 'historical', 3))
    assert.deepEqual(lines, ['id: historical:3', 'event: rejected'])
    assert.deepEqual([data.reason, data.field, data.distinct_id], ['missing_event_name', 'event', 'ada'])
    assert.deepEqual([data.body, data.cut], [body.slice(0, liveTextMax.body), true])
    assert.equal('cut' in read(liveMessages.reject(aCapturedReject(), 'main', 3)).data, false)
  })

  it('count hidden events in total and by reason, and report lost events with their reason but without a count', () => {
    const { lines, data } = read(liveMessages.skipped({ rate: 5, slow: 0, too_large: 2 }))
    assert.deepEqual(lines, ['event: skipped'])
    assert.deepEqual(data, { count: 7, reasons: { rate: 5, too_large: 2 } })
    assert.deepEqual(read(liveMessages.lost('main', 'behind')).data, { count: null, reason: 'behind', lane: 'main' })
  })

  it('begin with the retry interval, the project and the current position', () => {
    const { lines, data } = read(
      encodeLiveReady({ project: { id: 1, name: 'a\nb' }, offsets: { main: 9 }, eventsPerSecondMax: 200 }),
    )
    assert.deepEqual(lines, ['retry: 3000', 'event: ready'])
    assert.deepEqual(data, { project: { id: 1, name: 'a\nb' }, offsets: { main: 9 }, events_per_second_max: 200 })
  })
})
