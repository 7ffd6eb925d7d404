import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import type { ImportSource } from '#importer/records/import-source.ts'
import { mixpanel } from '#importer/sources/mixpanel/mixpanel.ts'
import { plausible } from '#importer/sources/plausible/plausible.ts'
import type { ImportedEvent } from '../../records/imported-event.ts'
import { Suspicions } from './suspicions.ts'

const context = { nowMs: Date.parse('2026-01-15T00:00:00Z'), holdLiveWindow: false, findFact: () => null }

function eventsOf(source: ImportSource, config: JsonObject, records: readonly JsonObject[]): readonly ImportedEvent[] {
  const converter = source.prepare(config, context)
  return records.flatMap((value, ordinal) => {
    const converted = converter.convert({ value, table: null, ordinal })
    assert.ok('events' in converted, JSON.stringify(converted))
    return converted.events
  })
}

it('many events with one time or id are suspicious, unless the import filled in that time or id', () => {
  const pages = Array.from({ length: 1_000 }, (_, index) => ({
    ...{ date: '2024-05-01', hostname: 'shop.test', page: `/${index}`, visitors: '1', pageviews: '1' },
  }))
  const site = { site: 'shop.test', source_timezone: 'UTC' }
  const codesOf = (events: readonly ImportedEvent[]) => {
    const suspicions = new Suspicions()
    for (const event of events) suspicions.add('file', event)
    return suspicions.warnings(5).map(({ code }) => code)
  }
  const profiles = Array.from({ length: 200 }, (_, n) => ({ $distinct_id: `u-${n}`, $properties: { plan: 'pro' } }))
  for (const [events, ...codes] of [
    [eventsOf(mixpanel, { profile_timestamp: '2024-06-01T00:00:00Z' }, profiles), 'frequent_timestamp'],
    [eventsOf(plausible, site, pages), 'frequent_distinct_id', 'frequent_timestamp'],
    [eventsOf(plausible, { ...site, mode: 'synthesize' }, pages), 'frequent_distinct_id', 'frequent_timestamp'],
  ] as const) {
    assert.deepEqual(codesOf(events), [])
    assert.deepEqual(codesOf(events.map(({ isIdFilledIn: _, isTimeFilledIn: __, ...event }) => event)), codes)
  }
})
