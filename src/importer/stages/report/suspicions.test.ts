import assert from 'node:assert/strict'
import { it } from 'node:test'
import { mixpanel } from '#importer/sources/mixpanel/mixpanel.ts'
import type { ImportedEvent } from '../../records/imported-event.ts'
import { Suspicions } from './suspicions.ts'

it('many events of one time are suspicious, unless the import gave it to them itself', () => {
  const context = { nowMs: Date.parse('2026-01-15T00:00:00Z'), holdLiveWindow: false, findFact: () => null }
  const converter = mixpanel.prepare({ profile_timestamp: '2024-06-01T00:00:00Z' }, context)
  const profiles = Array.from({ length: 200 }, (_, ordinal) => {
    const record = { $distinct_id: `u-${ordinal}`, $properties: { plan: 'pro' } }
    const converted = converter.convert({ value: record, table: null, ordinal })
    assert.ok('events' in converted)
    return converted.events[0]!
  })
  const codesOf = (events: readonly ImportedEvent[]) => {
    const suspicions = new Suspicions()
    for (const event of events) suspicions.add('file', event)
    return suspicions.warnings(5).map(({ code }) => code)
  }
  assert.deepEqual(codesOf(profiles), [])
  assert.deepEqual(codesOf(profiles.map(({ isTimeFilledIn: _, ...event }) => event)), ['frequent_timestamp'])
})
