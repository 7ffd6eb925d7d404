// Files as other tools and connectors write them. Every record gives events or is counted as skipped, rejected or collapsed,
// with the reason. The mappings come from docs/import-mapping.md.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { type JsonObject, parseJson } from '#core/json.ts'
import { generic } from '#importer/sources/generic/generic.ts'
import { findSource } from '#importer/sources/sources.ts'
import { readSamples } from '#importer/stages/report/samples.ts'
import type { ShownEvent } from '../support/convert-records.ts'
import { jobOf, rejectsOf } from '../support/import-job.ts'

const samples = join(import.meta.dirname, 'exports')
const guide = readFileSync('docs/import-mapping.md', 'utf8')

interface Rehearsed {
  /** Rows by outcome, labelled as in the report. */
  readonly tally: Readonly<Record<string, number>>
  /** `line reason field` of each reject. */
  readonly rejects: readonly string[]
  readonly events: readonly ShownEvent[]
}

describe('exports written by other tools', () => {
  it("Amplitude exports written by a connector are read like Amplitude's own", async t => {
    const { tally, rejects, events } = await rehearsed(t, 'amplitude-events.csv', 'amplitude')
    assert.deepEqual(tally, {
      read: 10,
      'giving events': 6,
      'skipped session_marker': 1,
      'rejected event_name_too_long': 2,
      'rejected timestamp_missing': 1,
    })
    assert.deepEqual(rejects, [
      '7 event_name_too_long event_type',
      '8 event_name_too_long event_type',
      '11 timestamp_missing event_time',
    ])
    const [first, second] = events.filter(({ event }) => event === 'chapter_read')
    assert.equal(first!.timestamp, '2025-02-11T19:42:58.123Z')
    assert.equal(first!.distinct_id, 'ada@example.test')
    const { chapter, is_attribution_event, $ip, $geoip_country_name, $set } = first!.properties
    assert.deepEqual([chapter, is_attribution_event, $ip, $geoip_country_name], [1, false, '192.0.2.7', 'Austria'])
    assert.deepEqual($set, { Cohort: 'Test A', $geoip_country_name: 'Austria' })
    assert.equal(second!.timestamp, '2025-02-11T19:42:58.123400Z')
    const { $groups } = events.find(({ event }) => event === 'chapter_closed')!.properties
    assert.deepEqual($groups, { school: 'north' })
  })

  it('Amplitude tables without events are refused row by row', async t => {
    const { tally, rejects } = await rehearsed(t, 'amplitude-event-types.csv', 'amplitude')
    assert.deepEqual(tally, { read: 2, 'rejected event_missing': 2 })
    assert.deepEqual(rejects, ['2 event_missing event_type', '3 event_missing event_type'])
  })

  for (const [name, file, source] of [
    ['Mixpanel', 'mixpanel-events.csv', 'mixpanel'],
    ['GA4', 'ga4-events.csv', 'ga4'],
    ['Segment', 'segment-pages.csv', 'segment'],
  ] as const)
    it(`the ${name} reader refuses each row that a connector has flattened`, async t => {
      const { tally } = await rehearsed(t, file, source)
      assert.equal(tally['rejected event_missing'], tally.read)
    })

  it('flattened Mixpanel rows are imported with a mapping', async t => {
    const { tally, rejects, events } = await rehearsed(t, 'mixpanel-events.csv', 'Mixpanel, by Fivetran')
    assert.deepEqual(tally, { read: 5, 'giving events': 4, 'rejected event_missing': 1 })
    assert.deepEqual(rejects, ['6 event_missing name'])
    const [first, , third] = events
    assert.equal(first!.timestamp, '2024-08-01T10:16:46.000Z')
    assert.deepEqual(first!.properties, {
      'Operating System': 'Roku',
      title: "it's a title",
      user_id: '114521',
      video_id: 5271,
      $os: 'Roku',
      wifi: true,
      screen_width: 1080,
      $geoip_city_name: 'Graz',
      mp_country_code: 'AT',
    })
    assert.equal(third!.uuid, events[2]!.uuid)
    assert.equal(new Set(events.map(({ uuid }) => uuid)).size, 3, 'two rows have one insert_id')
  })

  it('flattened GA4 rows are imported with a mapping, even when the header repeats a column', async t => {
    const { tally, rejects, events } = await rehearsed(t, 'ga4-events.csv', 'GA4, by Fivetran')
    assert.deepEqual(tally, {
      read: 7,
      'giving events': 5,
      'skipped session_marker': 1,
      'rejected timestamp_invalid': 1,
    })
    assert.deepEqual(rejects, ['8 timestamp_invalid timestamp'])
    const purchase = events.find(({ event }) => event === 'purchase')!
    assert.equal(purchase.distinct_id, 'user_123')
    const { value_in_usd, param_session_engaged, param_session_engaged_2, $geoip_city_name } = purchase.properties
    assert.deepEqual(
      [value_in_usd, param_session_engaged, param_session_engaged_2, $geoip_city_name],
      [29.99, 'true', '0', 'Wien'],
    )
    assert.equal(events.find(({ event }) => event === 'scroll')!.distinct_id, 'pseudo_789')
    const checkout = events.find(({ event }) => event === 'checkout')!
    assert.ok(!('$geoip_city_name' in checkout.properties), '"(not set)" is no city')
  })

  it('Segment pages are imported with a mapping', async t => {
    const { tally, rejects, events } = await rehearsed(t, 'segment-pages.csv', "Segment's `pages`, in a warehouse")
    assert.deepEqual(tally, { read: 3, 'giving events': 2, 'rejected distinct_id_missing': 1 })
    assert.deepEqual(rejects, ['4 distinct_id_missing user_id'])
    assert.deepEqual(
      events.map(({ distinct_id }) => distinct_id),
      ['97980cfea0068', '507f191e810c19729de860eb'],
    )
    const { title, utm_source, $current_url } = events[0]!.properties
    assert.deepEqual(
      [title, utm_source, $current_url],
      ['Product, "new"', 'news', 'https://www.example.test/product?name=ferret'],
    )
  })

  it('Snowplow rows are imported with a mapping that treats the text NULL as missing', async t => {
    const { tally, rejects, events } = await rehearsed(t, 'snowplow-events.csv', 'Snowplow')
    assert.deepEqual(tally, { read: 6, 'giving events': 5, 'rejected distinct_id_missing': 1 })
    assert.deepEqual(rejects, ['7 distinct_id_missing user_id'])
    assert.deepEqual(events.map(({ event, distinct_id }) => `${event} ${distinct_id}`).toSorted(), [
      '$pageview device_2',
      '$pageview user_1',
      '$pageview user_2',
      'page_ping device_2',
      'page_ping user_1',
    ])
    assert.ok(!JSON.stringify(events).includes('NULL'))
    assert.equal(events.find(({ distinct_id }) => distinct_id === 'device_2')!.properties.utm_source, 'facebook')
  })

  it('each Matomo action of nine types gives an event, or the reason why it gives no event', async t => {
    const { tally, rejects, events } = await rehearsed(t, 'matomo-visits.jsonl', 'matomo')
    assert.deepEqual(tally, {
      read: 8,
      'giving events': 2,
      'skipped goal_conversion_duplicate': 1,
      'skipped visit_without_actions': 1,
      'rejected timestamp_missing': 1,
      'rejected distinct_id_missing': 1,
      'rejected timestamp_zone_unknown': 1,
      'rejected event_missing': 1,
    })
    assert.deepEqual(rejects, [
      '4 timestamp_missing actionDetails[0].timestamp',
      '5 distinct_id_missing distinct_id',
      '6 timestamp_zone_unknown firstActionTimestamp',
      '7 event_missing actionDetails',
    ])
    assert.deepEqual(
      events.map(({ event }) => event),
      [
        '$pageview',
        'Purchase',
        'order_completed',
        'site_search',
        'cart_abandoned',
        'file_download',
        'outlink',
        'content_impression',
        'content_interaction',
        '$pageview',
        'matomo_newkind',
      ],
    )
    assert.equal(events[0]!.timestamp, '2024-05-01T10:00:00.000Z')
    const { $geoip_latitude, $geoip_longitude } = events.at(-1)!.properties
    assert.deepEqual([$geoip_latitude, $geoip_longitude], [48.2, 16.4])
  })
})

/** @param reader a source, or the heading of a mapping in the guide. */
async function rehearsed(t: TestContext, file: string, reader: string): Promise<Rehearsed> {
  const source = findSource(reader)
  const job = jobOf(t, { [file]: readFileSync(join(samples, file)) }, source ?? generic, {
    config: source === null ? { mapping: mappingBelow(reader) } : {},
  })
  const { balance, skips, rejects } = await job.report()
  assert.ok(balance.isBalanced)
  const counts: [string, number][] = [
    ['read', balance.read],
    ['giving events', balance.givingEvents],
    ['collapsed', balance.collapsed],
    ...skips.map(({ reason, count }): [string, number] => [`skipped ${reason}`, count]),
    ...rejects.map(({ reason, count }): [string, number] => [`rejected ${reason}`, count]),
  ]
  return {
    tally: Object.fromEntries(counts.filter(([, count]) => count > 0)),
    rejects: rejectsOf(job).map(({ line, reason, field, fix, source: text }) => {
      assert.ok(fix !== '' && text !== '')
      return `${line} ${reason} ${field}`
    }),
    events: readSamples(job.folder)
      .toSorted((a, b) => a.line - b.line)
      .flatMap(({ events = [] }) => events as ShownEvent[]),
  }
}

function mappingBelow(heading: string): JsonObject {
  const at = guide.indexOf(`\n## ${heading}\n`)
  const [, mapping] = /```json\n(.*?)```/s.exec(guide.slice(at)) ?? []
  assert.ok(at > 0 && mapping !== undefined, heading)
  return parseJson(mapping) as JsonObject
}
