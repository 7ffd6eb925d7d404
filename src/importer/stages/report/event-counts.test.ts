import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ImportedEvent } from '#importer/records/imported-event.ts'
import { EventCounts } from './event-counts.ts'
import { createEventTable } from './report-sections.ts'

const dayUs = 86_400_000_000

describe('events by name and day', () => {
  const counted = (max?: { names: number; ofDays: number }) => {
    const counts = new EventCounts(max)
    for (let index = 0; index < 100; index++) {
      const event = index % 2 === 0 ? 'often' : `rare ${index}`
      counts.add({ uuid: '', event, distinctId: 'u', timeUs: (index % 5) * dayUs + index, properties: {} })
    }
    return counts
  }

  it('are counted separately for each name', () => {
    const counts = counted()
    assert.deepEqual([counts.names().length, counts.others, counts.names()[0]!.count], [51, 0, 50])
    assert.deepEqual(
      counts.days().map(({ count, events }) => [count, Object.keys(events).length]),
      Array.from({ length: 5 }, () => [20, 11]),
    )
  })

  it('are counted together for names beyond the limit, which are included in all sums', () => {
    const all = counted()
    const counts = counted({ names: 10, ofDays: 12 })
    assert.deepEqual([counts.names().length, counts.others, counts.names()[0]!.count], [10, 41, 50])
    const days = counts.days()
    assert.deepEqual(
      days.map(({ day, count }) => [day, count]),
      all.days().map(({ day, count }) => [day, count]),
    )
    assert.equal(
      days.reduce((sum, { events }) => sum + Object.keys(events).length, 0),
      12,
    )
    assert.deepEqual([counts.total, counts.range()], [100, all.range()])
  })
})

it('events are counted by name, together with their names in the source', () => {
  const at = Date.UTC(2024, 4, 1) * 1_000
  const made = (event: string, timeUs: number, sourceName?: string): ImportedEvent => ({
    ...{ uuid: 'u', event, distinctId: 'ada', timeUs, properties: {} },
    ...(sourceName !== undefined && { sourceName }),
  })
  const counts = new EventCounts()
  counts.add(made('$identify', at), true)
  counts.add(made('$pageview', at + 2_000, 'page'))
  counts.add(made('$pageview', at + 1_000, '[Amplitude] Page Viewed'))
  counts.add(made('Paid', at))
  assert.deepEqual(createEventTable(counts.names()).rows, [
    ['$pageview', '[Amplitude] Page Viewed, page', '2', '2024-05-01T00:00:00.001Z', '2024-05-01T00:00:00.002Z'],
    ['$identify', '', '1', '2024-05-01T00:00:00.000Z', '2024-05-01T00:00:00.000Z'],
    ['Paid', 'Paid', '1', '2024-05-01T00:00:00.000Z', '2024-05-01T00:00:00.000Z'],
  ])
})
