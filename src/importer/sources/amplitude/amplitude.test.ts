import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, parseJson } from '#core/json.ts'
import { deriveImportUuid, deriveSessionUuid } from '#importer/records/deterministic-uuid.ts'
import { convertRecords, droppedOf, eventsOf, renamedFields } from '../../../../tests/support/convert-records.ts'
import { amplitude } from './amplitude.ts'

const uuid = '3b1f0c5e-6f2a-4c1d-9a77-0d2b5c3e4f01'
const line = (fields: JsonObject): JsonObject => ({
  event_type: 'Opened',
  user_id: 'ada',
  event_time: '2024-05-01 12:00:00.250000',
  uuid,
  ...fields,
})
const only = (fields: JsonObject) => eventsOf(amplitude, [line(fields)]).at(-1)!
const outcomeOf = (fields: JsonObject) => convertRecords(amplitude, [line(fields)])[0]!
const own = { $amplitude_user_id: 'ada' }

describe('an Amplitude event', () => {
  it('has the event name and the $event_type of live events', () => {
    assert.equal(only({ event_type: '[Amplitude] Page Viewed' }).event, '$pageview')
    assert.equal(only({ event_type: '$identify' }).event, '$set')
    assert.equal(only({}).event, 'Opened')
    for (const [name, type] of [
      ['Clicked', 'click'],
      ['Changed', 'change'],
    ] as const) {
      const text = { '[Amplitude] Element Text': 'Buy' }
      const { event, properties } = only({ event_type: `[Amplitude] Element ${name}`, event_properties: text })
      assert.deepEqual([event, properties], ['$autocapture', { ...text, $event_type: type, $el_text: 'Buy', ...own }])
    }
  })

  it('is skipped if it only marks a session', () => {
    for (const type of ['session_start', 'session_end'])
      assert.deepEqual(outcomeOf({ event_type: type, user_id: null }), { skipped: 'session_marker' })
  })

  it('has the uuid of its record, or one derived from its $insert_id, or else from its content', () => {
    for (const written of [uuid.toUpperCase(), uuid.replaceAll('-', ''), `{${uuid}}`])
      assert.equal(only({ uuid: written }).uuid, uuid)
    const inserted = { uuid: 'no-uuid', $insert_id: 'k', app: 9001, device_id: 'd' }
    assert.equal(only(inserted).uuid, deriveImportUuid('amplitude', 'insert', '9001', 'd', 'k'))
    assert.equal(
      only({ ...inserted, app: null, device_id: null }).uuid,
      deriveImportUuid('amplitude', 'insert', '', '', 'k'),
    )
    const none = { uuid: null, event_properties: { n: 1 } }
    const empty = { ...none, $insert_id: 'EMPTY' }
    assert.notEqual(only(empty).uuid, only({ ...empty, event_properties: {} }).uuid)
  })

  it('lists the fields that it drops, except for the id that its uuid is derived from', () => {
    assert.deepEqual(droppedOf(amplitude, line({ uuid: null, $insert_id: 'k' })), [])
    assert.deepEqual(droppedOf(amplitude, line({ uuid, $insert_id: 'k' })), ['$insert_id'])
  })

  it('has the first readable time, in UTC', () => {
    const timeOf = (fields: JsonObject) => only({ event_time: null, ...fields }).timestamp
    assert.equal(timeOf({ event_time: '2024-05-01T12:00:00.123456' }), '2024-05-01T12:00:00.123456Z')
    const later = { client_event_time: '2024-05-01 12:00:01', server_received_time: '2024-05-01 12:00:02' }
    assert.equal(timeOf(later), '2024-05-01T12:00:01.000Z')
    assert.equal(
      timeOf({ ...later, event_time: 'x', client_event_time: '2024-02-30 00:00:00' }),
      '2024-05-01T12:00:02.000Z',
    )
  })

  it('is refused with the name of the faulty field', () => {
    const refusals: [JsonObject, string, string][] = [
      [{ event_time: '', server_received_time: 'x' }, 'timestamp_invalid', 'server_received_time'],
      [{ event_time: null, client_event_time: '2031-01-01 00:00:00' }, 'timestamp_future', 'client_event_time'],
      [{ event_properties: [] }, 'properties_not_object', 'event_properties'],
      [{ user_properties: 'plan=pro' }, 'properties_not_object', 'user_properties'],
      [{ groups: 5 }, 'properties_not_object', 'groups'],
    ]
    for (const [fields, reason, field] of refusals)
      assert.deepEqual(outcomeOf(fields), { rejected: { reason, field } }, JSON.stringify(fields).slice(0, 80))
  })
})

describe('the id of an Amplitude event', () => {
  it('is the user’s id, or otherwise the device’s, or otherwise Amplitude’s own, with a note', () => {
    assert.equal(only({ device_id: 'd' }).distinct_id, 'ada')
    assert.equal(only({ user_id: '', device_id: 'd' }).distinct_id, 'd')
    const record = parseJson(`{"amplitude_id":9007199254740993,"device_id":"null"}`) as JsonObject
    const outcome = outcomeOf({ ...record, user_id: null })
    assert.ok('events' in outcome)
    assert.deepEqual([outcome.events[0]!.distinct_id, outcome.notes], ['9007199254740993', ['amplitude_id_used']])
  })

  it('is never the placeholder EMPTY', () => {
    assert.equal(eventsOf(amplitude, [line({ device_id: 'EMPTY' })]).length, 1)
    assert.equal(only({ user_id: 'EMPTY', device_id: 'd' }).distinct_id, 'd')
    assert.equal('rejected' in outcomeOf({ user_id: 'EMPTY', device_id: 'EMPTY' }), true)
  })

  it("is accompanied by Amplitude's ids and its session", () => {
    const start = 1_714_564_790_000
    const { properties } = only({ device_id: 'd', event_id: 17, session_id: start })
    assert.deepEqual(properties, {
      ...own,
      $amplitude_device_id: 'd',
      $device_id: 'd',
      $amplitude_event_id: 17,
      $amplitude_session_id: start,
      $session_id: deriveSessionUuid(start, 'amplitude', 'session', 'd', String(start)),
    })
    for (const none of [-1, '-1', null, 'x', 2 ** 60]) assert.deepEqual(only({ session_id: none }).properties, own)
  })
})

describe('the properties of an Amplitude event', () => {
  it('are its own properties, plus all fields that are not mapped otherwise', () => {
    const { properties } = only({
      event_properties: { amount: 7, coupon: 'EMPTY', gone: null, library: 'own' },
      library: 'amplitude-js/8',
      version_name: '1.2',
      device_family: 'Linux',
      location_lat: 52.5,
      language: '(not set)',
      app: 9001,
      amplitude_id: 5,
      $insert_id: 'k',
      server_upload_time: '2024-05-01 12:00:05',
      processed_time: '2024-05-01 12:00:06',
    })
    assert.deepEqual(properties, {
      amount: 7,
      library: 'own',
      $app_version: '1.2',
      device_family: 'Linux',
      location_lat: 52.5,
      ...own,
    })
  })

  it('include booleans in every spelling that exports use', () => {
    for (const yes of [true, 1, '1', 'true', 'TRUE']) assert.equal(only({ paying: yes }).properties.paying, true)
    for (const no of [false, 0, '0', 'false', 'FALSE'])
      assert.equal(only({ is_attribution_event: no }).properties.is_attribution_event, false)
    assert.equal('paying' in only({ paying: null }).properties, false)
    const data = { user_properties_updated: 1, group_ids: { org: 5 } }
    assert.deepEqual(only({ data }).properties.data, { user_properties_updated: true, group_ids: { org: 5 } })
    assert.deepEqual(only({ data: JSON.stringify(data) }).properties.data, only({ data }).properties.data)
    assert.deepEqual(only({ data: { path: '/batch' } }).properties.data, { path: '/batch' })
  })

  it('include the page as live events do, from its location or otherwise its URL', () => {
    const [url, referrer, referring_domain] = [
      'https://a.example.test/x?y=1',
      'https://r.example.test/',
      'r.example.test',
    ]
    const set = { $current_url: url, $pathname: '/x', $referrer: referrer, $referring_domain: referring_domain }
    const event_properties = {
      ...{ '[Amplitude] Page Location': url, '[Amplitude] Page URL': '/x', '[Amplitude] Page Path': '/x' },
      ...{ '[Amplitude] Page Domain': 'a.example.test', referrer, referring_domain },
      ...{ '[Amplitude] Viewport Height': 600, '[Amplitude] Viewport Width': 800 },
    }
    const screen = { $host: 'a.example.test', $viewport_height: 600, $viewport_width: 800 }
    const { properties } = only({ event_properties })
    assert.deepEqual(properties, { ...event_properties, ...set, ...screen, ...own, $set: set })
    const withoutLocation = { ...event_properties, '[Amplitude] Page Location': '' }
    assert.equal(only({ event_properties: withoutLocation }).properties.$current_url, '/x')
  })

  it('take the browser from the OS fields on the web', () => {
    const device = { $browser: 'Chrome', $browser_version: '17.4', $os: 'Mac', $device_type: 'Desktop' }
    const fields = { os_name: 'Chrome', os_version: '17.4', device_type: 'Mac', device_model: 'MacBook' }
    for (const platform of ['Web', null])
      assert.deepEqual(only({ ...fields, platform }).properties, {
        ...device,
        device_model: 'MacBook',
        ...own,
        $set: device,
      })
    const kindOf = (type: string) => only({ device_type: type }).properties.$device_type
    assert.deepEqual(['Windows', 'Linux', 'iOS', 'Android', 'Apple TV'].map(kindOf), [
      'Desktop',
      'Desktop',
      'Mobile',
      'Mobile',
      undefined,
    ])
  })

  it('are treated as those of a web event if the platform is a placeholder', () => {
    const { properties } = only({ platform: 'EMPTY', os_name: 'Chrome', device_type: 'EMPTY' })
    assert.deepEqual(properties, { $browser: 'Chrome', ...own, $set: { $browser: 'Chrome' } })
  })

  it('take the OS from the OS fields on other platforms', () => {
    const { fields, properties } = renamedFields(`
      os_version=$os_version device_manufacturer=$device_manufacturer device_model=$device_model device_type=$device_name`)
    const device = { ...properties, $os: 'ios', $device_type: 'Mobile' }
    const event = only({ ...fields, platform: 'iOS', os_name: 'ios' })
    assert.deepEqual(event.properties, { ...device, ...own, $set: device })
  })

  it('include the location, and keep the recorded IP address', () => {
    const place = { $geoip_country_name: 'Norway', $geoip_city_name: 'Oslo', $geoip_subdivision_1_name: 'Oslo County' }
    const { properties } = only({ country: 'Norway', city: 'Oslo', region: 'Oslo County', ip_address: '192.0.2.1' })
    assert.deepEqual(properties, { ...place, $ip: '192.0.2.1', ...own, $set: place })
  })

  it('are read from JSON text in warehouse copies', () => {
    const { properties } = only({ event_properties: '{"id":8123456789012345678}', user_properties: '{}', groups: '' })
    assert.equal(JSON.stringify(properties), '{"id":8123456789012345678,"$amplitude_user_id":"ada"}')
  })
})

describe('the person of an Amplitude event', () => {
  it('gets every changed property, and first-touch properties once', () => {
    const initial = { initial_utm_term: 'lamp', initial_referrer: 'EMPTY' }
    const events = eventsOf(amplitude, [
      line({ user_properties: { ...initial, plan: 'pro', seats: 4, gone: null, list: ['a'] } }),
      line({ user_properties: { plan: 'pro', seats: 5, list: ['a'] } }),
      line({ user_properties: { plan: 'pro', seats: 5, list: ['a'] } }),
      line({ user_properties: { plan: 'pro' }, user_id: 'bob' }),
    ])
    assert.deepEqual(
      events.map(({ properties }) => [properties.$set, properties.$set_once]),
      [
        [{ plan: 'pro', seats: 4, list: ['a'] }, { $initial_utm_term: 'lamp' }],
        [{ seats: 5 }, undefined],
        [undefined, undefined],
        [{ plan: 'pro' }, undefined],
      ],
    )
  })
})

const acme = (properties: JsonObject) =>
  line({ groups: { org: ['acme'] }, group_properties: { org: { acme: properties } } })

describe('the groups of an Amplitude event', () => {
  it('have no empty properties', () => {
    const [event] = eventsOf(amplitude, [acme({ tier: 'gold', gone: 'EMPTY' })])
    assert.deepEqual(event!.properties, { $group_type: 'org', $group_key: 'acme', $group_set: { tier: 'gold' } })
  })

  it('keep their properties when a record only names them', () => {
    const records = [line({ groups: { org: ['acme'] } }), acme({ tier: 'gold' })]
    const told = eventsOf(amplitude, [...records, ...records]).filter(({ event }) => event === '$groupidentify')
    assert.deepEqual(
      told.map(({ properties }) => properties.$group_set),
      [{}, { tier: 'gold' }],
    )
  })

  const groupsOf = (record: JsonObject) => {
    const events = eventsOf(amplitude, [record])
    return [events.at(-1)!.properties.$groups, events.slice(0, -1).map(({ properties }) => properties.$group_key)]
  }

  it('are limited to one per type in the event, but every group has a $groupidentify', () => {
    const record = line({
      groups: { org: ['', 'north', 'south', 'EMPTY'], team: 'red' },
      group_properties: { org: { west: { tier: 'new' }, '': { tier: 'none' }, '(not set)': {} } },
    })
    assert.deepEqual(groupsOf(record), [{ org: 'north', team: 'red' }, ['north', 'south', 'west', 'red']])
    assert.partialDeepStrictEqual(convertRecords(amplitude, [record]), [{ notes: ['group_values_dropped'] }])
  })

  it('may have keys that would be illegal as distinct ids', () => {
    const record = line({ groups: { org: [0, 'guest', 'True'] }, group_properties: { org: { null: { tier: 'new' } } } })
    assert.deepEqual(groupsOf(record), [{ org: '0' }, ['0', 'guest', 'True', 'null']])
  })

  it('may be the only content of a record', () => {
    const call = { ...acme({ tier: 'gold' }), event_type: '$groupidentify' }
    assert.deepEqual(
      eventsOf(amplitude, [call]).map(({ event }) => event),
      ['$groupidentify'],
    )
    const empty = line({ event_type: '$groupidentify', groups: {} })
    assert.deepEqual(convertRecords(amplitude, [empty]), [{ skipped: 'filtered' }])
  })
})

describe('a row of an Amplitude merge file', () => {
  const merge = { scope: 9001, merge_time: '2024-05-02 08:00:00', amplitude_id: 2, merged_amplitude_id: 1 }
  const seen = (amplitudeId: number, ids: JsonObject) => line({ amplitude_id: amplitudeId, user_id: null, ...ids })
  const lastOutcome = (records: JsonObject[]) => convertRecords(amplitude, records).at(-1)!

  it('links a user id to the device id of the events, whether the merge row comes before or after them', () => {
    for (const [user, device] of [
      [1, 2],
      [2, 1],
    ] as const) {
      const outcome = lastOutcome([seen(user, { user_id: 'ada' }), seen(device, { device_id: 'd' }), merge])
      assert.deepEqual(outcome, {
        events: [
          {
            uuid: deriveImportUuid('identify', 'amplitude', 'ada', 'd'),
            event: '$identify',
            distinct_id: 'ada',
            timestamp: '2024-05-02T08:00:00.000Z',
            properties: { $anon_distinct_id: 'd' },
          },
        ],
        notes: [],
      })
    }
  })

  it('joins two users only if the configuration allows dangerous merges', () => {
    const records = [seen(1, { user_id: 'ada' }), seen(2, { user_id: 'bob' }), merge]
    const field = 'merged_amplitude_id'
    assert.deepEqual(lastOutcome(records), { rejected: { reason: 'merge_needs_approval', field } })
    assert.partialDeepStrictEqual(eventsOf(amplitude, records, { allow_dangerous_merge: true }).slice(-1), [
      {
        uuid: deriveImportUuid('merge', 'amplitude', 'ada', 'bob'),
        event: '$merge_dangerously',
        distinct_id: 'ada',
        properties: { alias: 'bob' },
      },
    ])
  })

  it('is skipped when no event has one of its ids', () => {
    assert.deepEqual(lastOutcome([seen(1, { user_id: 'ada' }), merge]), { skipped: 'filtered' })
  })
})
