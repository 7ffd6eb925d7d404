import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { convertRecord } from './convert-record.ts'
import type { Conversion, ConvertedRecord } from './imported-event.ts'
import { findServiceDropFix } from './service-drops.ts'

const eventOf = (event: string, properties: JsonObject = {}) => ({
  uuid: 'u',
  event,
  distinctId: 'ada',
  timeUs: 7,
  properties,
})
const good = eventOf('Tap')

function converted(record: ConvertedRecord): Conversion {
  return convertRecord({ convert: () => record }, { value: {}, table: null, ordinal: 1 })
}

describe('events that the service drops', () => {
  const dropped: readonly (readonly [reason: string, field: string, name: string, properties?: JsonObject])[] = [
    ['heatmap', 'event', '$$heatmap'],
    ['client_ingestion_warning', 'event', '$$client_ingestion_warning'],
    ['dropped_performance_event', 'event', '$performance_event'],
    ['invalid_anon_distinct_id', '$anon_distinct_id', '$identify', { $anon_distinct_id: 5 }],
    ['invalid_alias', 'alias', '$create_alias', { alias: ['ada'] }],
    ['group_key_too_long', '$group_key', '$groupidentify', { $group_type: 'org', $group_key: 'x'.repeat(401) }],
    ['group_key_too_long', '$group_key', '$group_identify', { $group_key: 'x'.repeat(401) }],
    [
      'invalid_event_when_process_person_profile_is_false',
      '$process_person_profile',
      '$identify',
      { $anon_distinct_id: 'd', $process_person_profile: false },
    ],
  ]
  for (const [reason, field, name, properties] of dropped)
    it(`are refused in advance with the service’s reason, even next to good events: ${reason} of ${name}`, () => {
      const rejected = { rejected: { reason: `server_refused:${reason}`, field } }
      const event = eventOf(name, properties)
      assert.deepEqual(converted({ events: [event] }), rejected)
      assert.deepEqual(converted({ events: [good, event] }), rejected)
      assert.notEqual(findServiceDropFix(`server_refused:${reason}`), null)
    })

  it('are refused when a link would become such an event', () => {
    const link = { userId: 'ada', deviceId: 'd', timeUs: 7, properties: { alias: 5 } }
    assert.deepEqual(converted({ events: [], links: [link] }), {
      rejected: { reason: 'server_refused:invalid_alias', field: 'alias' },
    })
  })

  it('do not include old events, events with the properties of links, or a group key of 400 characters', () => {
    const kept = [
      eventOf('Tap', { alias: 5, $anon_distinct_id: 5, $process_person_profile: false }),
      eventOf('$groupidentify', { $group_type: 'org', $group_key: 'x'.repeat(400) }),
      eventOf('$identify', { $anon_distinct_id: null, alias: 'b' }),
    ]
    const record = { events: kept, links: [{ userId: 'ada', deviceId: 'd', timeUs: 7, properties: {} }] }
    assert.equal(converted(record), record)
  })

  it('are not generated for a group whose key is too long: the record is kept, with a note', () => {
    const group = (key: string) => ({ type: 'org', key, properties: {}, distinctId: 'ada', timeUs: 7 })
    assert.deepEqual(
      converted({ events: [good], groups: [group('x'.repeat(401)), group('y')], notes: ['invalid_uuid'] }),
      { events: [good], groups: [group('y')], notes: ['invalid_uuid', 'group_key_too_long'] },
    )
  })
})
