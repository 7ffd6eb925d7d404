import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { EventCounts } from './event-counts.ts'

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

  it('are counted name by name', () => {
    const counts = counted()
    assert.deepEqual([counts.names().length, counts.others, counts.names()[0]!.count], [51, 0, 50])
    assert.deepEqual(
      counts.days().map(({ count, events }) => [count, Object.keys(events).length]),
      Array.from({ length: 5 }, () => [20, 11]),
    )
  })

  it('are counted together where their names are more than anybody reads, and none is left out of a sum', () => {
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
