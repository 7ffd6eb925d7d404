import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import type { ImportSource } from '#importer/records/import-source.ts'
import { mixpanel } from '#importer/sources/mixpanel/mixpanel.ts'
import { plausible } from '#importer/sources/plausible/plausible.ts'
import type { ImportedEvent } from '../../records/imported-event.ts'
import { createNoteWarnings, WarningCollector } from './warnings.ts'

const context = { nowMs: Date.parse('2026-01-15T00:00:00Z'), holdLiveWindow: false, findFact: () => null }

function eventsOf(source: ImportSource, config: JsonObject, records: readonly JsonObject[]): readonly ImportedEvent[] {
  const converter = source.prepare(config, context)
  return records.flatMap((value, ordinal) => {
    const converted = converter.convert({ value, table: null, ordinal })
    assert.ok('events' in converted, JSON.stringify(converted))
    return converted.events
  })
}

it('many events with the same time or id are suspicious, unless the import filled in that time or id', () => {
  const pages = Array.from({ length: 1_000 }, (_, index) => ({
    ...{ date: '2024-05-01', hostname: 'shop.test', page: `/${index}`, visitors: '1', pageviews: '1' },
  }))
  const site = { site: 'shop.test', source_timezone: 'UTC' }
  const codesOf = (events: readonly ImportedEvent[]) => {
    const suspicions = new WarningCollector()
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

it('a warning counts records, or groups and actions if a record may have several of them', () => {
  const notes = new Map([
    ['amplitude_id_used', 1_500],
    ['csv_quotes:escaped', 2],
    ['group_values_dropped', 4],
    ['matomo_type_unknown:form:x', 1],
    ['type_mismatch:Amount', 1],
    ['zone_shift:7200', 9],
  ])
  const texts = createNoteWarnings(notes, 3_000).map(({ text }) => text)
  assert.deepEqual(texts.toSpliced(1, 1), [
    '1,500 records (50 %): neither a user nor a device id, so the amplitude_id is used.',
    '4 groups: left out of an event, which can have only one group of each type.',
    '1 action: of the unknown type form:x.',
    '1 record (0.03 %): a value in Amount without the type given in the mapping; it is kept unchanged.',
  ])
  assert.match(
    texts[1]!,
    /^2 records \(0\.1 %\): a row of CSV .* quotes in its cells were read as escaped \(by a backslash/,
  )
})
