import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '#core/json.ts'
import { deriveContentUuid } from '#importer/records/deterministic-uuid.ts'
import { ImportConfigError } from '#importer/records/import-source.ts'
import { conversionTimeMs, convertRecords, eventsOf } from '../../../../tests/support/convert-records.ts'
import { plausible } from './plausible.ts'

const site = 'blog.example.test'
const sums = { site, source_timezone: 'Europe/Berlin' }
const views = { ...sums, mode: 'synthesize' }
const date = '2024-05-01'
const page = (value: JsonObject): JsonObject => ({
  date,
  hostname: site,
  page: '/a',
  visitors: '2',
  pageviews: '3',
  ...value,
})

describe('a Plausible row imported as one event with totals', () => {
  it('becomes one event of the site at local midnight, with numeric properties and without a person', () => {
    const row = page({ exits: '2', time_on_page: '140' })
    assert.deepEqual(eventsOf(plausible, [row], sums), [
      {
        uuid: deriveContentUuid('plausible', row),
        event: 'plausible_imported_pages',
        distinct_id: 'plausible:blog.example.test',
        timestamp: '2024-04-30T22:00:00.000Z',
        properties: {
          hostname: site,
          page: '/a',
          visitors: 2,
          pageviews: 3,
          exits: 2,
          time_on_page: 140,
          $import_aggregate: true,
          $process_person_profile: false,
        },
      },
    ])
  })

  it('may have numbers with a fraction, and keeps text that is not a number', () => {
    const [event] = eventsOf(plausible, [page({ time_on_page: '140.5', exits: 'many' })], sums)
    assert.deepEqual([event!.properties.time_on_page, event!.properties.exits], [140.5, 'many'])
  })

  const counted = { visitors: '2', visits: '3', visit_duration: '40', bounces: '1' }
  const tables: readonly (readonly [table: string, columns: JsonObject, properties: JsonObject])[] = [
    ['imported_visitors', { pageviews: '5', ...counted }, {}],
    [
      'imported_pages',
      { hostname: site, page: '/a', visitors: '2', pageviews: '5', exits: '1', time_on_page: '9' },
      {},
    ],
    ['imported_sources', { source: 'Search', utm_medium: 'cpc', utm_term: '', ...counted }, { utm_medium: 'cpc' }],
    ['imported_entry_pages', { entry_page: '/a', entrances: '2', ...counted }, {}],
    ['imported_exit_pages', { exit_page: '/a', visitors: '2', exits: '2' }, {}],
    // The code of a city looks like a number but must not be summed.
    ['imported_locations', { country: 'NO', region: 'NO-03', city: '3143244', ...counted }, { city: '3143244' }],
    ['imported_devices', { device: 'Desktop', ...counted }, {}],
    ['imported_browsers', { browser: 'Firefox', browser_version: '124', ...counted }, { browser_version: '124' }],
    ['imported_operating_systems', { operating_system: 'Mac', operating_system_version: '14.4', ...counted }, {}],
  ]
  for (const [table, columns, properties] of tables)
    it(`is recognized as a row of ${table} by its columns, or by its file name`, () => {
      const value = { date, ...columns }
      const named = { table: `${table}_20240401_20240531`, value }
      const [byColumns, byFile] = eventsOf(plausible, [value, named], sums)
      assert.equal(byColumns!.event, `plausible_${table}`)
      assert.deepEqual(byFile, byColumns)
      assert.equal(byColumns!.properties.visitors, 2)
      for (const [name, expected] of Object.entries(properties)) assert.equal(byColumns!.properties[name], expected)
    })

  it('is recognized by its file name when direct visits leave the identifying cells empty', () => {
    const row = { table: 'imported_sources_20240401_20240531', value: { date, ...counted } }
    assert.equal(eventsOf(plausible, [row], sums)[0]!.event, 'plausible_imported_sources')
    assert.deepEqual(convertRecords(plausible, [row.value], sums), [
      { rejected: { reason: 'event_missing', field: 'table' } },
    ])
  })

  const midnights: readonly (readonly [zone: string, day: string, instant: string])[] = [
    ['Europe/Berlin', '2024-01-10', '2024-01-09T23:00:00.000Z'],
    ['Europe/Berlin', '2024-07-10', '2024-07-09T22:00:00.000Z'],
    ['America/Los_Angeles', '2024-03-10', '2024-03-10T08:00:00.000Z'],
    ['Asia/Kolkata', '2024-05-01', '2024-04-30T18:30:00.000Z'],
    // The clocks went forward at midnight, so the day began at one; and back at one, so midnight occurred twice.
    ['America/Havana', '2024-03-10', '2024-03-10T05:00:00.000Z'],
    ['America/Havana', '2024-11-03', '2024-11-03T04:00:00.000Z'],
  ]
  for (const [zone, day, instant] of midnights)
    it(`is at the first instant of ${day} in ${zone}`, () => {
      const [event] = eventsOf(plausible, [page({ date: day })], { site, source_timezone: zone })
      assert.equal(event!.timestamp, instant)
    })

  it('is refused if the zone of the site is missing, or if its day is missing or invalid', () => {
    assert.deepEqual(convertRecords(plausible, [page({})], { site }), [
      { rejected: { reason: 'timestamp_zone_unknown', field: 'date' } },
    ])
    const rows = [page({ date: null }), page({ date: '2024-02-30' }), page({ date: '2026-01-17' })]
    assert.deepEqual(
      convertRecords(plausible, rows, sums).map(outcome => 'rejected' in outcome && outcome.rejected.reason),
      ['timestamp_missing', 'timestamp_invalid', 'timestamp_future'],
    )
  })
})

describe('a Plausible row imported as page views', () => {
  it('has the same totals of views and visitors, within the day, on every run', () => {
    const days = fc.constantFrom('2024-03-31', '2024-05-01', '2024-10-27', '2024-12-31')
    const counts = fc.record({ visitors: fc.integer({ min: 1, max: 40 }), pageviews: fc.integer({ min: 1, max: 200 }) })
    fc.assert(
      fc.property(days, counts, (day, { visitors, pageviews }) => {
        const row = page({ date: day, visitors: String(visitors), pageviews: String(pageviews) })
        const events = eventsOf(plausible, [row], views)
        assert.equal(events.length, pageviews)
        assert.equal(new Set(events.map(({ uuid }) => uuid)).size, pageviews)
        assert.equal(new Set(events.map(event => event.distinct_id)).size, Math.min(visitors, pageviews))
        assert.deepEqual(new Set(events.map(({ timestamp }) => dayInBerlin(timestamp))), new Set([day]))
        assert.deepEqual(eventsOf(plausible, [row], views), events)
      }),
    )
  })

  it('spreads page views over 23 hours on a day whose clocks went forward', () => {
    const [first, second] = eventsOf(plausible, [page({ date: '2024-03-31', pageviews: '2' })], views)
    assert.equal(Date.parse(second!.timestamp) - Date.parse(first!.timestamp), 11.5 * 3_600_000)
  })

  it('takes the number of visitors from the configuration if set', () => {
    const events = eventsOf(plausible, [page({ visitors: '3', pageviews: '6' })], { ...views, visitors: 2 })
    assert.equal(new Set(events.map(event => event.distinct_id)).size, 2)
  })

  it('with the totals of a day becomes page views only if no row has its pages, so that no view counts twice', () => {
    const totals = { date, visitors: '2', pageviews: '3', bounces: '1' }
    const alone = eventsOf(plausible, [totals], views)
    assert.deepEqual(
      alone.map(({ event, properties }) => [event, properties.$host, properties.$current_url]),
      Array.from({ length: 3 }, () => ['$pageview', site, undefined]),
    )
    const withPages = eventsOf(plausible, [totals, page({}), page({ page: '/b' })], views)
    assert.deepEqual(
      withPages.map(({ event }) => event),
      ['plausible_imported_visitors', ...Array.from({ length: 6 }, () => '$pageview')],
    )
    assert.equal(new Set(withPages.map(({ uuid }) => uuid)).size, 7)
  })

  it('of another table becomes an event with totals', () => {
    const rows = [{ date, browser: 'Firefox', visitors: '2', pageviews: '3' }, page({ pageviews: 'many' })]
    assert.deepEqual(
      eventsOf(plausible, rows, views).map(({ event }) => event),
      ['plausible_imported_browsers', 'plausible_imported_pages'],
    )
  })

  it('is skipped if it has no views, and refused if it has more views than fit into memory', () => {
    assert.deepEqual(convertRecords(plausible, [page({ pageviews: 0 }), page({ pageviews: '1000001' })], views), [
      { skipped: 'filtered' },
      { rejected: { reason: 'record_too_large', field: 'pageviews' } },
    ])
  })

  it('is refused for a day that has not ended', () => {
    const today = new Date(conversionTimeMs).toISOString().slice(0, 10)
    assert.deepEqual(convertRecords(plausible, [page({ date: today })], views), [
      { rejected: { reason: 'timestamp_future', field: 'date' } },
    ])
  })
})

describe('the configuration of Plausible', () => {
  const wrong: readonly JsonObject[] = [
    {},
    { site, mode: 'invent' },
    { site, visitors: 0 },
    { site, source_timezone: '+02:00' },
    { site, zone: 'UTC' },
  ]
  for (const config of wrong)
    it(`is refused if it is ${JSON.stringify(config)}`, () => {
      assert.throws(() => convertRecords(plausible, [], config), ImportConfigError)
    })
})

function dayInBerlin(instant: string): string {
  return Temporal.Instant.from(instant).toZonedDateTimeISO('Europe/Berlin').toPlainDate().toString()
}
