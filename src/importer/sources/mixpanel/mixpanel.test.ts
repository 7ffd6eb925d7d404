import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { deriveImportUuid, deriveMixpanelUuid } from '#importer/records/deterministic-uuid.ts'
import { convertRecords, droppedOf, eventsOf, renamedFields } from '../../../../tests/support/convert-records.ts'
import { mixpanel } from './mixpanel.ts'

const noon = 1_714_564_800
const row = (properties: JsonObject, event = 'Opened'): JsonObject => ({
  event,
  properties: { time: noon, distinct_id: 'ada', $insert_id: 'i', ...properties },
})
const only = (record: JsonObject, config?: JsonObject) => eventsOf(mixpanel, [record], config).at(-1)!
const outcomeOf = (record: JsonObject, config?: JsonObject) => convertRecords(mixpanel, [record], config)[0]!

describe('a Mixpanel event', () => {
  it('has the event name and the $event_type of live events', () => {
    const names = ['$mp_web_page_view', '$mp_page_leave', '$mp_rage_click', '$mp_dead_click', 'Signed up']
    assert.deepEqual(
      names.map(name => only(row({}, name)).event),
      ['$pageview', '$pageleave', '$rageclick', '$dead_click', 'Signed up'],
    )
    const clicks = ['$mp_click', '$mp_submit', '$mp_input_change'].map(name => only(row({}, name)))
    assert.deepEqual(
      clicks.map(({ event, properties }) => [event, properties]),
      ['click', 'submit', 'change'].map(type => ['$autocapture', { $event_type: type }]),
    )
  })

  it('maps properties to the names of live events, drops those about the export, and keeps all others', () => {
    const { fields, properties } = renamedFields(`
      current_url_path=$pathname current_domain=$host current_page_title=title mp_lib=$lib $browser=$browser plan=plan`)
    const dropped = {
      ...{ empty: '', unset: '(not set)', $mp_api_endpoint: 'api', mp_processing_time_ms: 1, $geo_source: 'ip' },
      ...{ $mp_api_timestamp_ms: 1, $import: true, $mp_event_size: 12 },
    }
    const $set = { $browser: '$browser' }
    assert.deepEqual(only(row({ ...fields, ...dropped })).properties, { ...properties, $set })
  })

  it('keeps the value under the live name if it has a property under both names, in any order', () => {
    const both = { current_page_title: 'A', title: 'B', mp_lib: 'web', $lib: '' }
    for (const properties of [both, Object.fromEntries(Object.entries(both).reverse())]) {
      assert.deepEqual(only(row(properties)).properties, { title: 'B', $lib: 'web' })
      assert.deepEqual(droppedOf(mixpanel, row(properties)), ['current_page_title'])
    }
  })

  it('lists the fields that it drops, except for the id that its uuid is derived from', () => {
    assert.deepEqual(droppedOf(mixpanel, row({ $mp_event_size: 12 })), ['$mp_event_size'])
    const alias = row({ alias: 'b' }, '$create_alias')
    assert.deepEqual(droppedOf(mixpanel, alias), ['$insert_id'], 'its uuid is derived from both ids')
  })

  it('sets the latest and the first-touch properties of its person', () => {
    const first = { $initial_referrer: 'https://a.example.test', $initial_utm_source: 'mail', $initial_utm_term: 'x' }
    const { properties } = only(row({ $os: 'Linux', $current_url: 'https://b.example.test', ...first }))
    assert.deepEqual(properties.$set, { $os: 'Linux', $current_url: 'https://b.example.test' })
    assert.deepEqual(properties.$set_once, first)
  })

  it('names countries as live events do, and does not name an unknown code', () => {
    assert.equal(only(row({ mp_country_code: 'nl' })).properties.$geoip_country_name, 'The Netherlands')
    const { properties } = only(row({ mp_country_code: 'XX' }))
    assert.deepEqual(properties, { $geoip_country_code: 'XX', $set: { $geoip_country_code: 'XX' } })
  })

  it("has a uuid derived from $insert_id, as in PostHog's imports, or else from its content", () => {
    assert.equal(only(row({})).uuid, deriveMixpanelUuid('i'))
    const written = row({ $insert_id: null, a: 1, b: 2 })
    const reordered = { properties: Object.fromEntries(Object.entries(written.properties!).reverse()), event: 'Opened' }
    assert.equal(only(written).uuid, only(reordered).uuid)
  })

  it('is refused with the name of the faulty field', () => {
    const refusals: [JsonObject, string, string][] = [
      [{ event: 'a' }, 'properties_not_object', 'properties'],
      [{ event: 'a', properties: [] }, 'properties_not_object', 'properties'],
      [row({ time: '2020-08-01 10:16:46' }), 'timestamp_zone_unknown', 'properties.time'],
      [row({ time: 1 }), 'timestamp_out_of_range', 'properties.time'],
      [row({ time: 1_800_000_000 }), 'timestamp_future', 'properties.time'],
    ]
    for (const [record, reason, field] of refusals)
      assert.deepEqual(outcomeOf(record), { rejected: { reason, field } }, JSON.stringify(record).slice(0, 80))
  })
})

describe('the id of a Mixpanel event', () => {
  const idOf = (properties: JsonObject) => only(row(properties)).distinct_id

  it('is the resolved id, unless that is a device’s and an earlier id is known', () => {
    const earlier = { $distinct_id_before_identity: 'ada' }
    assert.equal(idOf({ distinct_id: 'u-1', ...earlier }), 'u-1')
    assert.equal(idOf({ distinct_id: '12345', ...earlier }), '12345')
    for (const device of ['$device:d-1', '1A2B-3C4D', 'ABC'])
      assert.equal(idOf({ distinct_id: device, ...earlier }), 'ada')
    assert.equal(idOf({ distinct_id: '1A2B-3C4D' }), '1A2B-3C4D')
  })

  it('is the id of the user or the device if the record has no other id', () => {
    const ids = { $user_id: 'u-2', $device_id: 'd-2' }
    for (const placeholder of [
      null,
      '',
      'anonymous',
      'nil',
      'N/A',
      '-1',
      '[]',
      '00000000-0000-0000-0000-000000000000',
      '$device:',
    ])
      assert.equal(idOf({ distinct_id: placeholder, ...ids }), 'u-2', String(placeholder))
    assert.equal(idOf({ distinct_id: null, $user_id: 'unknown', $device_id: 'd-2' }), 'd-2')
    assert.equal(idOf({ distinct_id: 12345 }), '12345')
  })

  it('is the id before identification if the resolved id is a device or missing, in any order of fields', () => {
    type Ids = readonly [resolved: JsonObject[string], earlier: string, userId: string, deviceId: string]
    const cases: readonly (readonly [ids: Ids, chosen: string | null])[] = [
      // A device: the earlier id, then itself, then the user.
      [['$device:d-1', 'ada', 'u-2', 'd-2'], 'ada'],
      [['$device:d-1', '$device:d-0', 'u-2', 'd-2'], 'd-0'],
      [['$device:d-1', 'guest', 'u-2', 'd-2'], 'd-1'],
      [['$device:undefined', 'ada', 'u-2', 'd-2'], 'ada'],
      [['$device:undefined', 'guest', 'u-2', 'd-2'], 'u-2'],
      [['1A2B-3C4D', 'ada', 'u-2', 'd-2'], 'ada'],
      [['1A2B-3C4D', '', 'u-2', 'd-2'], '1A2B-3C4D'],
      // A user whose id consists of capitals, as $user_id shows.
      [['CUST-7', 'ada', 'CUST-7', 'd-2'], 'CUST-7'],
      [['$device:CUST-7', 'ada', 'CUST-7', 'd-2'], 'ada'],
      // A user.
      [['u-1', 'ada', 'u-2', 'd-2'], 'u-1'],
      [['12345', 'ada', 'u-2', 'd-2'], '12345'],
      // A placeholder, also if its capitals look like a device id.
      [[null, 'ada', 'u-2', 'd-2'], 'u-2'],
      [['', 'ada', '', 'd-2'], 'ada'],
      [[null, 'ada', 'guest', 'd-2'], 'ada'],
      [['', 'guest', '', 'd-2'], 'd-2'],
      [['anonymous', 'ada', 'u-2', 'd-2'], 'u-2'],
      [['UNDEFINED', 'ada', 'u-2', 'd-2'], 'u-2'],
      [['NIL', 'ada', 'guest', 'd-2'], 'd-2'],
      [['UNKNOWN', 'ada', '', ''], null],
    ]
    const names = ['distinct_id', '$distinct_id_before_identity', '$user_id', '$device_id']
    for (const [ids, chosen] of cases)
      for (let turn = 0; turn < names.length; turn++) {
        const entries = names.map((name, index) => [name, ids[index]!] as const)
        const properties = Object.fromEntries([...entries.slice(turn), ...entries.slice(0, turn)])
        if (chosen !== null) assert.equal(idOf(properties), chosen, JSON.stringify(properties))
        else
          assert.deepEqual(outcomeOf(row(properties)), {
            rejected: { reason: 'distinct_id_missing', field: 'distinct_id' },
          })
      }
  })
})

describe('the time of a Mixpanel event', () => {
  const timeOf = (time: JsonObject[string], zone?: string) =>
    only(row({ time }), zone === undefined ? {} : { source_timezone: zone }).timestamp

  const notesOf = (properties: JsonObject, config?: JsonObject) =>
    (outcomeOf(row(properties), config) as { notes: readonly string[] }).notes

  it('is read as seconds or milliseconds according to its size, and keeps its fraction', () => {
    assert.equal(timeOf(noon), '2024-05-01T12:00:00.000Z')
    assert.equal(timeOf(noon + 0.25), '2024-05-01T12:00:00.250Z')
    assert.equal(timeOf(noon * 1000 + 7), '2024-05-01T12:00:00.007Z')
    assert.equal(timeOf(String(noon)), '2024-05-01T12:00:00.000Z')
    // The largest number that is read as seconds.
    assert.equal(timeOf(50_000_000_000), '1971-08-02T16:53:20.000Z')
  })

  it('is local time in the project’s zone if that zone is configured, in summer and winter', () => {
    assert.equal(timeOf(Date.UTC(2023, 6, 1, 12) / 1000, 'America/Los_Angeles'), '2023-07-01T19:00:00.000Z')
    assert.equal(timeOf(Date.UTC(2023, 0, 1, 12) / 1000, 'America/Los_Angeles'), '2023-01-01T20:00:00.000Z')
    assert.equal(timeOf(Date.UTC(2023, 0, 1, 12) + 123, 'America/Los_Angeles'), '2023-01-01T20:00:00.123Z')
    assert.equal(timeOf('2023-01-01 12:00:00', 'America/Los_Angeles'), '2023-01-01T20:00:00.000Z')
    assert.equal(timeOf('2023-01-01T12:00:00Z', 'America/Los_Angeles'), '2023-01-01T12:00:00.000Z')
  })

  it('has a note with its difference from the time of receipt, in quarters of an hour', () => {
    const received = { $mp_api_timestamp_ms: noon * 1000 + 3000, mp_processing_time_ms: noon * 1000 + 9e6 }
    assert.deepEqual(notesOf(received), ['zone_shift:0'])
    assert.deepEqual(notesOf({ ...received, time: noon + 19_800 }), ['zone_shift:19800'])
    assert.deepEqual(notesOf({ mp_processing_time_ms: (noon + 7200) * 1000 }), ['zone_shift:-7200'])
    assert.deepEqual(notesOf({ ...received, $import: true }), [])
    assert.deepEqual(notesOf({ mp_processing_time_ms: 406_572 }), [])
    const india = { source_timezone: 'Asia/Kolkata' }
    assert.deepEqual(notesOf({ ...received, time: noon + 19_800 }, india), ['zone_shift:19800'])
    assert.deepEqual(notesOf(received, india), ['zone_shift:0', 'zone_shift_differs'])
  })

  it('has a note that its zone is unknown if it is from before 2023 and has no time of receipt', () => {
    const time = Date.UTC(2022, 11, 31, 23) / 1000
    assert.deepEqual(notesOf({ time }), ['zone_unproved'])
    assert.deepEqual(notesOf({ time, $import: true, mp_processing_time_ms: noon * 1000 }), ['zone_unproved'])
    assert.deepEqual(notesOf({ time: '2022-12-31T23:00:00Z' }), [])
    assert.deepEqual(notesOf({ time }, { source_timezone: 'UTC' }), [])
    assert.deepEqual(notesOf({ time: time + 3600 }), [])
  })
})

describe('a link between Mixpanel ids', () => {
  const pair = { $user_id: 'ada', $device_id: 'd-1' }

  it('is made by $identify, and is identical to the link that other records make for the same ids', () => {
    const identify = row(
      { $identified_id: 'ada', $anon_id: '$device:d-1', distinct_id: 'ada', plan: 'pro' },
      '$identify',
    )
    const [event, ...others] = eventsOf(mixpanel, [identify, row(pair)])
    assert.deepEqual(event, {
      uuid: deriveImportUuid('identify', 'mixpanel', 'ada', 'd-1'),
      event: '$identify',
      distinct_id: 'ada',
      timestamp: '2024-05-01T12:00:00.000Z',
      properties: { $anon_distinct_id: 'd-1', plan: 'pro' },
    })
    assert.deepEqual(
      others.map(each => each.event),
      ['Opened'],
    )
    const long = row({ $identified_id: 'x'.repeat(201), $anon_id: 'd' }, '$identify')
    assert.deepEqual(outcomeOf(long), { rejected: { reason: 'distinct_id_too_long', field: 'distinct_id' } })
    const itself = row({ $identified_id: 'ada', $anon_id: 'ada' }, '$identify')
    assert.deepEqual(outcomeOf(itself), { skipped: 'filtered' })
  })

  it('is also made between the user id and the device id in an $identify or alias row', () => {
    const [identified, aliased] = [
      row({ ...pair, $identified_id: 'eve', $anon_id: 'd-9' }, '$identify'),
      row({ ...pair, alias: 'e' }, '$create_alias'),
    ]
    const linksOf = (record: JsonObject) =>
      eventsOf(mixpanel, [record]).flatMap(({ event, distinct_id, properties }) =>
        event === '$identify' ? `${distinct_id} ${properties.$anon_distinct_id}` : [],
      )
    assert.deepEqual(linksOf(identified), ['eve d-9', 'ada d-1'])
    assert.deepEqual(linksOf(aliased), ['ada d-1'])
  })

  it('is made by an alias, only once for repeated rows', () => {
    const alias = { distinct_id: '$device:d', alias: '$device:e' }
    const [first, again] = [
      only(row(alias, '$create_alias')),
      only(row({ ...alias, $insert_id: 'j' }, '$create_alias')),
    ]
    assert.deepEqual([first.distinct_id, first.properties], ['d', { alias: 'e' }])
    assert.equal(first.uuid, deriveImportUuid('alias', 'mixpanel', 'd', 'e'))
    assert.deepEqual(again, first)
    const refused = (value: JsonObject[string]) => outcomeOf(row({ alias: value }, '$create_alias'))
    assert.deepEqual(refused('guest'), { rejected: { reason: 'distinct_id_illegal', field: 'properties.alias' } })
    assert.deepEqual(refused(null), { rejected: { reason: 'distinct_id_missing', field: 'properties.alias' } })
    assert.deepEqual(refused('ada'), { skipped: 'filtered' })
  })

  it('is not made by a merge of a single id', () => {
    const one = outcomeOf(row({ $distinct_ids: ['ada'] }, '$merge'), { allow_dangerous_merge: true })
    assert.deepEqual(one, { rejected: { reason: 'distinct_id_missing', field: 'properties.$distinct_ids' } })
  })
})

describe('a Mixpanel profile', () => {
  const config = { profile_timestamp: '2024-06-01T00:00:00Z' }

  it('sets the properties of its person at the configured time, under the names that Pennon uses', () => {
    const { fields, properties } = renamedFields(`
      $email=email $name=name $first_name=first_name $last_name=last_name $phone=phone $avatar=avatar
      $region=$geoip_subdivision_1_name $city=$geoip_city_name $os=$os`)
    const from = { ...fields, $country_code: 'KR', $last_seen: '2024-05-01T11:00:00', empty: '' }
    const country = { $geoip_country_code: 'KR', $geoip_country_name: 'South Korea' }
    assert.deepEqual(only({ $distinct_id: '$device:d-1', $properties: from }, config), {
      uuid: deriveImportUuid('mixpanel', 'profile', 'd-1', '2024-06-01T00:00:00.000Z'),
      event: '$set',
      distinct_id: 'd-1',
      timestamp: '2024-06-01T00:00:00.000Z',
      properties: { $set: { ...properties, ...country } },
    })
  })

  it('keeps the value under the live name if it has a property under both names', () => {
    const both = { $email: 'old@example.test', email: 'new@example.test' }
    for (const properties of [both, Object.fromEntries(Object.entries(both).reverse())])
      assert.deepEqual(only({ $distinct_id: 'u-1', $properties: properties }, config).properties, {
        $set: { email: 'new@example.test' },
      })
  })

  it('is refused without the configured time, an id or properties', () => {
    const reasonOf = (record: JsonObject, settings: JsonObject = config) =>
      (outcomeOf(record, settings) as { rejected: { reason: string } }).rejected.reason
    assert.equal(reasonOf({ $distinct_id: 'ada', $properties: {} }, {}), 'timestamp_missing')
    assert.equal(reasonOf({ $distinct_id: 'guest', $properties: {} }), 'distinct_id_missing')
    assert.equal(reasonOf({ $distinct_id: 'ada' }), 'properties_not_object')
  })
})
