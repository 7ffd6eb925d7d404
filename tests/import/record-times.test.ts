// The times by which staging sorts records, which are read without converting them and before any fact of another record is
// known.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { minOf } from '#core/min-max.ts'
import { convertRecord } from '#importer/records/convert-record.ts'
import type { SourceRecord } from '#importer/records/import-source.ts'
import { findSource } from '#importer/sources/sources.ts'

const context = { nowMs: Date.UTC(2026, 0, 15), holdLiveWindow: false }
const noonUs = Date.UTC(2024, 4, 1, 12) * 1_000
const noon = '2024-05-01T12:00:00Z'

describe('the time of a record', () => {
  const mapping = { event_constant: 'e', distinct_id: 'user', anon_id: 'device', timestamp: ['at', 'later'] }
  const ids = { user: 'ada', device: 'd-1' }
  const visit = { idVisit: 1, visitorId: 'v-1', userId: 'ada', firstActionTimestamp: noonUs / 1e6 }
  const action = (type: string, seconds: number) => ({ type, pageId: seconds, timestamp: noonUs / 1e6 + seconds })
  const pageRow = { date: '2024-05-01', hostname: 'a', page: '/', pageviews: '3', visitors: '2' }
  const made: readonly (readonly [what: string, source: string, record: JsonObject, config: JsonObject, at: string])[] =
    [
      ['a number of seconds', 'generic', { at: noonUs / 1e6, ...ids }, { mapping }, noon],
      ['a number of milliseconds', 'generic', { at: noonUs / 1e3, ...ids }, { mapping }, noon],
      ['a number of microseconds', 'generic', { at: noonUs, ...ids }, { mapping }, noon],
      ['a unit of the configuration', 'generic', { at: noonUs / 1e3, ...ids }, { mapping, unit: 'ms' }, noon],
      ['a second field', 'generic', { at: '(not set)', later: noon, ...ids }, { mapping }, noon],
      [
        'a typed text in the zone of the mapping',
        'generic',
        { at: '1.5.2024 21:45', ...ids },
        {
          mapping: {
            ...mapping,
            types: { at: 'timestamp' },
            date_order: 'dmy',
            source_timezone: 'Australia/Eucla',
          },
        },
        '2024-05-01T13:00:00Z',
      ],
      [
        "a wall clock of Mixpanel's project",
        'mixpanel',
        { event: 'e', properties: { time: noonUs / 1e6, distinct_id: 'ada', $user_id: 'ada', $device_id: 'd-1' } },
        { source_timezone: 'Asia/Kathmandu' },
        '2024-05-01T06:15:00Z',
      ],
      [
        'a profile of Mixpanel',
        'mixpanel',
        { $distinct_id: 'ada', $properties: { plan: 'pro' } },
        { profile_timestamp: noon },
        noon,
      ],
      [
        'a group call of Amplitude',
        'amplitude',
        { event_type: '$groupidentify', event_time: noon, ...{ user_id: 'ada', device_id: 'd', groups: { org: 'a' } } },
        {},
        noon,
      ],
      ['a time of the client', 'amplitude', { event_type: 'e', device_id: 'd', client_event_time: noon }, {}, noon],
      [
        'a message with a corrected time',
        'segment',
        {
          ...{ type: 'identify', userId: 'ada', anonymousId: 'd', originalTimestamp: '2024-05-01T13:00:00Z' },
          ...{ sentAt: '2024-05-01T13:00:10Z', receivedAt: '2024-05-01T12:00:10Z' },
        },
        {},
        noon,
      ],
      [
        'a visit with an order at its end and a goal at its start',
        'matomo',
        { ...visit, actionDetails: [action('goal', 7_200), action('ecommerceOrder', 7_220), action('action', 7_210)] },
        {},
        '2024-05-01T12:00:10Z',
      ],
      ['a sum of a day', 'plausible', pageRow, { site: 'a', source_timezone: 'Asia/Tokyo' }, '2024-04-30T15:00:00Z'],
      [
        'page views of a day whose clocks change',
        'plausible',
        { ...pageRow, date: '2024-03-31' },
        { site: 'a', source_timezone: 'Europe/Berlin', mode: 'synthesize' },
        '2024-03-30T23:00:00Z',
      ],
    ]
  for (const [what, source, value, config, at] of made)
    it(`is the earliest time of its events, for ${what}`, () => {
      const record = { value, table: null, ordinal: 1 }
      assert.ok(checkTime(source, record, config))
      assert.equal(timeOf(source, record, config), Date.parse(at) * 1_000)
    })

  const without: readonly (readonly [what: string, source: string, record: JsonObject, config?: JsonObject])[] = [
    ['a session marker of Amplitude', 'amplitude', { event_type: 'session_start', event_time: noon }],
    ['an event of Amplitude without a person', 'amplitude', { event_type: 'e', event_time: noon }],
    ['a merge of unknown ids', 'amplitude', { merge_time: noon, amplitude_id: 1, merged_amplitude_id: 2 }],
    [
      'a record that a filter leaves out',
      'generic',
      { at: noon },
      { mapping: { ...mapping, filters: { at: 'never' } } },
    ],
    ['a young row of GA4', 'ga4', { event_name: 'e', event_timestamp: noonUs, event_date: '20260114' }],
    ['a session of Heap', 'heap', { time: noon }, { table: 'sessions' }],
    ['a row of an unknown table of Heap', 'heap', { time: noon }],
    ['a visit without actions', 'matomo', { ...visit, actionDetails: [] }],
    ['a visit that only reached a goal', 'matomo', { ...visit, actionDetails: [action('goal', 5)] }],
    ['a merge without approval', 'mixpanel', { event: '$merge', properties: { time: noonUs / 1e6 } }],
    [
      'a row without page views',
      'plausible',
      { ...pageRow, date: '2024-05-02', pageviews: '0' },
      { site: 'a', mode: 'synthesize', source_timezone: 'Pacific/Auckland' },
    ],
    ['a session recording', 'posthog', { event: '$snapshot', timestamp: noon }],
    ['a person with one id', 'posthog', { person_distinct_id_version: 0, distinct_id: 'a', created_at: noon }],
    ['a message for another product', 'segment', { timestamp: noon, integrations: { PostHog: false } }],
  ]
  for (const [what, source, value, config = {}] of without)
    it(`is known even if the record gives no events: ${what}`, () => {
      const record = { value, table: null, ordinal: 1 }
      assert.ok(!checkTime(source, record, config))
      assert.equal(timeOf(source, record, config), noonUs)
    })

  it('is missing for a Matomo record that is not a visit, and is refused if it is too old or in the future', () => {
    const timeOfValue = (source: string, value: JsonObject) => timeOf(source, { value, table: null, ordinal: 1 }, {})
    assert.equal(timeOfValue('matomo', { result: 'error' }), null)
    for (const [at, reason] of [
      ['1969-05-01T12:00:00Z', 'timestamp_out_of_range'],
      ['2026-05-01T12:00:00Z', 'timestamp_future'],
    ] as const) {
      const seconds = Date.parse(at) / 1_000
      for (const [source, value] of [
        ['posthog', { timestamp: at }],
        ['mixpanel', { properties: { time: seconds } }],
        ['matomo', { firstActionTimestamp: seconds }],
      ] as const)
        assert.throws(() => timeOfValue(source, value), { reason })
    }
  })
})

/** Compares the time of the record with those of what it converts to. @returns whether it gives events. */
function checkTime(source: string, record: SourceRecord, config: JsonObject): boolean {
  const facts = new Map<string, string>()
  const findFact = (kind: string, key: string) => facts.get(`${kind} ${key}`) ?? null
  const converter = findSource(source)!.prepare(config, { ...context, findFact })
  for (const { kind, key, value } of converter.factsOf?.(record) ?? []) facts.set(`${kind} ${key}`, value)
  const outcome = convertRecord(converter, record)
  if (!('events' in outcome)) return false
  const { events, links = [], groups = [] } = outcome
  assert.equal(timeOf(source, record, config), minOf([...events, ...links, ...groups].map(({ timeUs }) => timeUs)))
  return true
}

function timeOf(source: string, record: SourceRecord, config: JsonObject): number | null {
  const findFact = () => {
    throw new Error('the time depends on another record')
  }
  return findSource(source)!
    .prepare(config, { ...context, findFact })
    .timeOf(record)
}
