import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject, JsonValue } from '#core/json.ts'
import { deriveImportUuid, deriveSessionUuid } from '#importer/records/deterministic-uuid.ts'
import { convertRecords, droppedOf, eventsOf, renamedFields } from '../../../../tests/support/convert-records.ts'
import { ga4 } from './ga4.ts'

const row = (value: JsonObject): JsonObject => ({
  event_name: 'login',
  event_timestamp: '1714564800123456',
  user_pseudo_id: '111.222',
  ...value,
})
const param = (key: string, value: JsonValue) => ({ key, value })
const propertiesOf = (value: JsonObject) => {
  const { $ga4_user_pseudo_id, ...properties } = eventsOf(ga4, [row(value)])[0]!.properties
  return properties
}

describe('a GA4 row', () => {
  it('keeps its microseconds, and its uuid depends on every field that identifies it', () => {
    const parts = {
      stream_id: '55',
      event_bundle_sequence_id: '8',
      batch_page_id: '17',
      batch_ordering_id: '1',
      batch_event_index: '2',
    }
    const [event] = eventsOf(ga4, [row(parts)])
    assert.equal(event!.timestamp, '2024-05-01T12:00:00.123456Z')
    assert.equal(
      event!.uuid,
      deriveImportUuid('ga4', '55', '111.222', 'login', '1714564800123456', '8', '17', '1', '2'),
    )
    const inSeconds = { rejected: { reason: 'timestamp_out_of_range', field: 'event_timestamp' } }
    assert.deepEqual(convertRecords(ga4, [row({ event_timestamp: '1714564800' })]), [inSeconds])
    assert.deepEqual(event!.properties, { $ga4_user_pseudo_id: '111.222' })
    const uuids = Object.keys(parts).map(part => eventsOf(ga4, [row({ ...parts, [part]: '99' })])[0]!.uuid)
    assert.equal(new Set([event!.uuid, ...uuids]).size, 6)
    assert.deepEqual(droppedOf(ga4, row(parts)), Object.keys(parts))
  })

  it('has a uuid that depends on its content if the export lacks its place in the batch', () => {
    // Without the content, seven events of one hit would be two: they share name, time and bundle.
    const said = (index: number) =>
      row({ event_bundle_sequence_id: '8', event_params: [param('n', { int_value: `${index}` })] })
    const rows = Array.from({ length: 7 }, (_, index) => said(index))
    const uuids = eventsOf(ga4, rows).map(event => event.uuid)
    assert.equal(new Set(uuids).size, 7)
    assert.deepEqual(
      eventsOf(ga4, rows.toReversed())
        .map(event => event.uuid)
        .toReversed(),
      uuids,
    )
    const placed = rows.map(each => eventsOf(ga4, [{ ...each, batch_event_index: '1' }])[0]!.uuid)
    assert.equal(new Set(placed).size, 1, 'the place identifies it')
  })

  it('gives the same event when whole numbers are exported as numbers, and empty fields are present', () => {
    const texts = {
      event_timestamp: '1714564800123456',
      stream_id: '55',
      event_bundle_sequence_id: '8',
      event_params: [param('n', { int_value: '1' }), param('x', { double_value: 1.5 })],
    }
    const numbers = {
      event_timestamp: 1714564800123456,
      stream_id: 55,
      event_bundle_sequence_id: 8,
      event_params: [
        param('n', { string_value: null, int_value: 1, double_value: null }),
        param('x', { string_value: null, double_value: 1.5 }),
      ],
      user_properties: [],
      geo: { city: null },
      batch_event_index: null,
    }
    assert.deepEqual(eventsOf(ga4, [row(numbers)]), eventsOf(ga4, [row(texts)]))
  })

  it('gives the same event in a later export with other columns and changed person properties', () => {
    const said = {
      event_bundle_sequence_id: '8',
      event_params: [param('n', { int_value: '1' }), param('x', { double_value: 12 })],
      items: [{ item_id: 'sku-1', price: 10.5, is_sold: true }],
      ecommerce: { transaction_id: 't-1', purchase_revenue: 1e3 },
    }
    const later = {
      ...said,
      event_params: [param('x', { double_value: '12.0' }), param('n', { int_value: '1' })],
      items: [{ item_id: 'sku-1', price: '10.50', is_sold: 'true' }],
      ecommerce: { transaction_id: 't-1', purchase_revenue: '1000.0', refund_value: null },
      traffic_source: { source: 'google' },
      user_ltv: { revenue: 5 },
      user_properties: [param('tier', { string_value: 'gold' })],
      geo: { city: 'Kassel' },
      privacy_info: { analytics_storage: 'Yes' },
      is_active_user: true,
      _TABLE_SUFFIX: '20240501',
    }
    const uuidOf = (value: JsonObject) => eventsOf(ga4, [row(value)])[0]!.uuid
    assert.equal(uuidOf(later), uuidOf(said))
    const others = [
      { event_params: [param('n', { int_value: '9007199254740992' }), said.event_params[1]!] },
      { event_params: [param('n', { int_value: '9007199254740993' }), said.event_params[1]!] },
      { items: [{ ...said.items[0], price: 11 }] },
      { ecommerce: {} },
    ].map(each => uuidOf({ ...said, ...each }))
    assert.equal(new Set([uuidOf(said), ...others]).size, 5)
  })

  it('gets the event name that live events have', () => {
    const names = { page_view: '$pageview', screen_view: '$screen', user_engagement: 'user_engagement' }
    for (const [event_name, event] of Object.entries(names))
      assert.equal(eventsOf(ga4, [row({ event_name })])[0]!.event, event)
  })

  it('is skipped when it only marks a session, even without an id', () => {
    const rows = ['session_start', 'first_visit'].map(event_name => ({ event_name }))
    assert.deepEqual(convertRecords(ga4, rows), [{ skipped: 'session_marker' }, { skipped: 'session_marker' }])
  })

  it('keeps its parameters in their own types, with every digit', () => {
    const event_params = [
      param('method', { string_value: 'sso' }),
      param('seconds', { int_value: '12' }),
      param('huge', { int_value: '9007199254740993' }),
      param('price', { double_value: 20.5 }),
      param('share', { float_value: '0.25' }),
      param('none', { double_value: 'NaN' }),
      param('empty', { string_value: '' }),
      param('unset', { string_value: '(not set)' }),
      param('nothing', null),
      'broken',
    ]
    assert.equal(
      JSON.stringify(propertiesOf({ event_params })),
      '{"method":"sso","seconds":12,"huge":9007199254740993,"price":20.5,"share":0.25,"none":"NaN"}',
    )
  })

  it('maps page, device, location and campaign to the names of live events', () => {
    const { fields, properties } = renamedFields(`
      device.mobile_brand_name=$device_manufacturer device.mobile_model_name=$device_model device.operating_system=$os
      device.operating_system_version=$os_version device.language=$browser_language device.web_info.browser=$browser
      device.web_info.browser_version=$browser_version device.web_info.hostname=$host
      geo.continent=$geoip_continent_name geo.country=$geoip_country_name geo.region=$geoip_subdivision_1_name
      collected_traffic_source.manual_source=utm_source collected_traffic_source.manual_medium=utm_medium
      collected_traffic_source.manual_campaign_name=utm_campaign collected_traffic_source.manual_campaign_id=utm_id
      collected_traffic_source.manual_term=utm_term collected_traffic_source.manual_content=utm_content
      collected_traffic_source.manual_source_platform=utm_source_platform
      collected_traffic_source.manual_creative_format=utm_creative_format
      collected_traffic_source.manual_marketing_tactic=utm_marketing_tactic
      collected_traffic_source.gclid=gclid collected_traffic_source.dclid=dclid collected_traffic_source.srsltid=srsltid`)
    assert.deepEqual(propertiesOf(fields), properties)
    const page = propertiesOf({
      event_params: [
        param('page_location', { string_value: 'https://www.example.test/p?q=1' }),
        param('page_title', { string_value: 'P' }),
        param('page_referrer', { string_value: 'https://search.example.test/' }),
      ],
      device: { category: 'mobile', mobile_marketing_name: '(not set)', is_limited_ad_tracking: 'No' },
    })
    assert.deepEqual(page, {
      $current_url: 'https://www.example.test/p?q=1',
      ...{ $pathname: '/p', title: 'P', $referrer: 'https://search.example.test/', $device_type: 'Mobile' },
      device: { is_limited_ad_tracking: 'No' },
    })
  })

  it('sets properties of its person, and the first-touch campaign once', () => {
    const properties = propertiesOf({
      traffic_source: { source: 'google', medium: 'organic', name: '(not set)' },
      user_first_touch_timestamp: '1714000000000001',
      user_properties: [
        param('tier', { string_value: 'gold', set_timestamp_micros: '1714000000000000' }),
        param('seats', { int_value: '4' }),
        param('gone', { set_timestamp_micros: '1714000000000000' }),
      ],
    })
    const campaign = { $initial_utm_source: 'google', $initial_utm_medium: 'organic' }
    assert.deepEqual(properties, {
      $set: { tier: 'gold', seats: 4 },
      $set_once: { ...campaign, first_touch_at: '2024-04-24T23:06:40.000001Z' },
    })
  })

  it('keeps items and ecommerce whole, and unmapped fields unless they are empty', () => {
    const kept = {
      items: [{ item_id: 'sku-1', price: 10.25, quantity: '2', item_name: '' }],
      ecommerce: { transaction_id: 't-1', refund_value: null },
      privacy_info: { analytics_storage: 'Yes' },
      app_info: { id: 'test.example.app', version: '1.2' },
      platform: 'WEB',
      event_previous_timestamp: '1714564700000000',
    }
    assert.deepEqual(propertiesOf(kept), kept)
    const partly = {
      geo: { city: '(not set)', sub_continent: 'Western Europe', metro: '(not set)' },
      user_ltv: { revenue: 1.5, currency: '', deep: { x: null } },
    }
    const left = { geo: { sub_continent: 'Western Europe' }, user_ltv: { revenue: 1.5 } }
    assert.deepEqual(propertiesOf(partly), left)
    assert.deepEqual(
      propertiesOf({ items: [], ecommerce: { refund_value: null }, privacy_info: {}, user_ltv: null, platform: '' }),
      {},
    )
  })

  it('does not overwrite a field of the row with a parameter', () => {
    const event_params = [param('platform', { string_value: 'desktop app' }), param('gclid', { string_value: 'g-1' })]
    const fields = { platform: 'WEB', collected_traffic_source: { gclid: 'g-1' } }
    assert.deepEqual(propertiesOf({ ...fields, event_params }), {
      platform: 'WEB',
      gclid: 'g-1',
      'event_params.platform': 'desktop app',
    })
  })

  it('belongs to the session that is identified by its start and its device', () => {
    const event_params = [param('ga_session_id', { int_value: '1714564700' })]
    const session = deriveSessionUuid(1714564700000, 'ga4', 'session', '111.222', '1714564700')
    assert.deepEqual(propertiesOf({ event_params }), { ga_session_id: 1714564700, $session_id: session })
    assert.notEqual(propertiesOf({ event_params, user_pseudo_id: '111.333' }).$session_id, session)
    const ofUser = propertiesOf({ event_params, user_pseudo_id: '(not set)', user_id: 'ada' }).$session_id
    assert.equal(ofUser, deriveSessionUuid(1714564700000, 'ga4', 'session', 'ada', '1714564700'))
    const odd = [param('ga_session_id', { string_value: 'session_123' })]
    assert.deepEqual(propertiesOf({ event_params: odd }), { ga_session_id: 'session_123' })
  })

  it('is skipped while its table can still change, judged by the date in the property’s time zone', () => {
    // The clock of the conversion is 2026-01-15T00:00:00Z.
    const at = (day: number) => String(Date.UTC(2026, 0, day, 23) * 1_000)
    const settling = { skipped: 'filtered' }
    assert.deepEqual(convertRecords(ga4, [row({ event_timestamp: at(12) })]), [settling])
    assert.deepEqual(convertRecords(ga4, [row({ event_timestamp: at(11), event_date: '20260112' })]), [settling])
    assert.equal(eventsOf(ga4, [row({ event_timestamp: at(11) })]).length, 1)
    assert.equal(eventsOf(ga4, [row({ event_timestamp: at(14) })], { settle_days: 0 }).length, 1)
  })
})
