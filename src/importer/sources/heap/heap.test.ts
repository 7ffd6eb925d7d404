import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, parseJson } from '#core/json.ts'
import { deriveImportUuid } from '#importer/records/deterministic-uuid.ts'
import { convertRecords, eventsOf, renamedFields } from '../../../../tests/support/convert-records.ts'
import { heap } from './heap.ts'

const time = '2024-05-01 12:00:00'
const user = (value: JsonObject) => ({ table: 'users', value: { joindate: '2024-01-01 08:00:00', ...value } })
const view = (value: JsonObject) => ({ table: 'pageviews', value: { event_id: 1, user_id: 7, time, ...value } })

describe('a Heap event row', () => {
  it('keeps every digit of 64-bit ids in the uuid, the id and the properties', () => {
    const row = parseJson(
      `{"event_id":7325461098234567891,"user_id":8123456789012345678,"session_id":7325461098234567003,"time":"${time}"}`,
    ) as JsonObject
    assert.deepEqual(eventsOf(heap, [{ table: 'pageviews', value: row }]), [
      {
        uuid: deriveImportUuid('heap', 'pageviews', '7325461098234567891'),
        event: '$pageview',
        distinct_id: '8123456789012345678',
        timestamp: '2024-05-01T12:00:00.000Z',
        properties: { $heap_user_id: '8123456789012345678', $heap_session_id: '7325461098234567003' },
      },
    ])
  })

  it('gives the same event when its numbers are text, as in CSV', () => {
    const numbers = eventsOf(heap, [view({ session_id: 3 })])
    assert.deepEqual(eventsOf(heap, [view({ event_id: '1', user_id: '7', session_id: '3' })]), numbers)
  })

  it('belongs to the identity in the users table, even if that table is read later', () => {
    const rows = [view({}), user({ user_id: 7, identity: 'ada@example.test' }), user({ user_id: 8, identity: 'guest' })]
    const [event] = eventsOf(heap, rows)
    assert.equal(event!.distinct_id, 'ada@example.test')
    assert.equal(event!.properties.$heap_user_id, '7')
    assert.equal(eventsOf(heap, [...rows, view({ user_id: 8 })]).at(-1)!.distinct_id, '8', 'guest is a placeholder')
  })

  it('is named after its table', () => {
    const row = { table: 'app.heap_main_production.checkout_done', value: { event_id: 1, user_id: 7, time } }
    assert.equal(eventsOf(heap, [row])[0]!.event, 'checkout_done')
  })

  it('maps fields to the names of live properties, and keeps all other fields', () => {
    const { fields, properties } = renamedFields(`
      browser=$browser browser_version=$browser_version device_type=$device_type library=$lib ip=$ip
      city=$geoip_city_name country=$geoip_country_name referrer=$referrer title=title utm_source=utm_source
      landing_page=landing_page`)
    const row = view({ ...fields, region: '(not set)', plan: '' })
    assert.deepEqual(eventsOf(heap, [row])[0]!.properties, { ...properties, $heap_user_id: '7' })
  })

  const addresses: readonly (readonly [JsonObject, JsonObject])[] = [
    [
      { domain: 'a.example.test', path: '/p', query: '?x=1', hash: '#top' },
      { $host: 'a.example.test', $pathname: '/p', $current_url: 'https://a.example.test/p?x=1#top' },
    ],
    [
      { domain: 'a.example.test', path: 'p', query: 'x=1', hash: 'top' },
      { $host: 'a.example.test', $pathname: 'p', $current_url: 'https://a.example.test/p?x=1#top' },
    ],
    [{ domain: 'a.example.test' }, { $host: 'a.example.test', $current_url: 'https://a.example.test' }],
    [
      { path: '/p', query: '?x=1' },
      { $pathname: '/p', query: '?x=1' },
    ],
  ]
  for (const [row, properties] of addresses)
    it(`has the URL assembled from ${JSON.stringify(row)}`, () => {
      assert.deepEqual(eventsOf(heap, [view(row)])[0]!.properties, { ...properties, $heap_user_id: '7' })
    })

  const platforms: readonly (readonly [string, JsonObject])[] = [
    ['Mac OS X 14.4', { $os: 'Mac OS X', $os_version: '14.4' }],
    ['Windows 11', { $os: 'Windows', $os_version: '11' }],
    ['Windows XP', { $os: 'Windows XP' }],
    ['Linux', { $os: 'Linux' }],
    ['11', { $os: '11' }],
  ]
  it('splits the platform into the OS and its version', () => {
    for (const [platform, properties] of platforms)
      assert.deepEqual(eventsOf(heap, [view({ platform })])[0]!.properties, { ...properties, $heap_user_id: '7' })
  })

  it('is refused without a table', () => {
    const { table: _, value } = view({})
    const refused = { rejected: { reason: 'event_missing', field: 'table' } }
    assert.deepEqual(convertRecords(heap, [value, { table: 'part-00001', value }]), [refused, refused])
  })

  it('is skipped if it marks a session, or if another table has the same event', () => {
    const rows = [
      { table: 'sessions', value: {} },
      { table: 'all_events', value: {} },
    ]
    assert.deepEqual(convertRecords(heap, rows), [{ skipped: 'session_marker' }, { skipped: 'duplicate_in_source' }])
  })
})

describe('a Heap user row', () => {
  it("links the identity to the user id, and sets the user's properties", () => {
    const row = user({
      user_id: 1003,
      identity: 'ada@example.test',
      last_modified: '2024-04-30 09:00:00',
      lastseen: 'Invalid date',
      identity_time: 1704096000000,
      initial_platform: 'Windows 11',
      initial_browser: 'Edge',
      initial_path: '/a',
      initial_city: 'Oslo',
      initial_landing_page: 'https://app.example.test/a',
      initial_utm_source: 'mail',
      initial_referrer: null,
      role: 'owner',
    })
    const stamp = '2024-04-30T09:00:00.000Z'
    assert.deepEqual(eventsOf(heap, [row]), [
      {
        uuid: deriveImportUuid('identify', 'heap', 'ada@example.test', '1003'),
        event: '$identify',
        distinct_id: 'ada@example.test',
        timestamp: stamp,
        properties: { $anon_distinct_id: '1003' },
      },
      {
        uuid: deriveImportUuid('heap', 'user', '1003', stamp),
        event: '$set',
        distinct_id: 'ada@example.test',
        timestamp: stamp,
        properties: {
          $set: {
            joindate: '2024-01-01T08:00:00.000Z',
            last_modified: stamp,
            identity_time: '2024-01-01T08:00:00.000Z',
            role: 'owner',
          },
          $set_once: {
            $initial_os: 'Windows',
            $initial_os_version: '11',
            $initial_browser: 'Edge',
            $initial_pathname: '/a',
            $initial_geoip_city_name: 'Oslo',
            $initial_current_url: 'https://app.example.test/a',
            $initial_utm_source: 'mail',
          },
        },
      },
    ])
  })

  it('belongs to the configured identity, like the user’s events', () => {
    const row = user({ user_id: 5, identity: null })
    const [link, set] = eventsOf(heap, [row], { identities: { 5: 'five' } })
    assert.deepEqual([link!.uuid, link!.distinct_id], [deriveImportUuid('identify', 'heap', 'five', '5'), 'five'])
    assert.deepEqual([set!.event, set!.distinct_id], ['$set', 'five'])
    const named = user({ user_id: 5, identity: 'row' })
    assert.equal(eventsOf(heap, [named], { identities: { 5: 'five' } })[1]!.distinct_id, 'five')
  })

  it('only sets properties if it has no identity, and uses joindate if no modification time is given', () => {
    for (const last_modified of ['Invalid date', '(not set)', ' ', null])
      assert.deepEqual(eventsOf(heap, [user({ id: 5, last_modified })]), [
        {
          uuid: deriveImportUuid('heap', 'user', '5', '2024-01-01T08:00:00.000Z'),
          event: '$set',
          distinct_id: '5',
          timestamp: '2024-01-01T08:00:00.000Z',
          properties: { $set: { joindate: '2024-01-01T08:00:00.000Z' } },
        },
      ])
  })

  it('is recognized by its columns when the file does not name the table', () => {
    const { value } = user({ user_id: 5, identity: 'ada@example.test' })
    assert.deepEqual(
      eventsOf(heap, [value]).map(({ event }) => event),
      ['$identify', '$set'],
    )
  })

  it('is refused without a date', () => {
    const row = user({ user_id: 5, joindate: null })
    assert.deepEqual(convertRecords(heap, [row]), [
      { rejected: { reason: 'timestamp_missing', field: 'last_modified' } },
    ])
  })
})

describe('a Heap user migration', () => {
  const migration = (value: JsonObject) => ({ table: 'user_migrations', value: { time, ...value } })

  it('makes the old id an alias of the new one', () => {
    assert.deepEqual(eventsOf(heap, [migration({ from_user_id: 11, to_user_id: 12 })]), [
      {
        uuid: deriveImportUuid('alias', 'heap', '12', '11'),
        event: '$create_alias',
        distinct_id: '12',
        timestamp: '2024-05-01T12:00:00.000Z',
        properties: { alias: '11' },
      },
    ])
  })

  it('makes the old id an alias of the identity, if the new user has one', () => {
    const identities = { identities: { 12: 'ada@example.test' } }
    const [event] = eventsOf(heap, [migration({ from_user_id: 11, to_user_id: 12 })], identities)
    assert.equal(event!.distinct_id, 'ada@example.test')
    assert.equal(event!.uuid, deriveImportUuid('alias', 'heap', 'ada@example.test', '11'))
  })

  it('is skipped if it moves a user to itself, and refused when an id is missing', () => {
    const rows = [migration({ from_user_id: 11, to_user_id: 11 }), migration({ from_user_id: null, to_user_id: 12 })]
    assert.deepEqual(convertRecords(heap, rows), [
      { skipped: 'filtered' },
      { rejected: { reason: 'distinct_id_missing', field: 'from_user_id' } },
    ])
  })
})
