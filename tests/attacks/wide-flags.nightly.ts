// One project sends megabytes of `$feature/…` properties, with a different set for each event. Rows of all projects
// share the parts of the event store, and the dictionary of a column is read as a whole.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createBuckets } from '#core/insights/buckets.ts'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { aStoredEvent } from '../support/values.ts'

const timestampMs = Date.parse('2026-11-05T10:00:00Z')
const megabyte = 1024 * 1024
const uuid = (n: number) => `0192a4b0-0000-7000-8000-${String(n).padStart(12, '0')}`

describe('megabytes of flag properties in events', () => {
  const held = eventStoreForTests({
    limits: { queryMemoryBytes: 48 * megabyte },
    begin: async () => {
      const event = { timestampMs, event: 'seen' }
      for (let insert = 0; insert < 10; insert++) {
        const wide = Array.from({ length: 10 }, (_, index) => {
          const n = insert * 10 + index
          const flags = new Map([['$feature/checkout', `${n % 2} ${n} ${'"'.repeat(megabyte / 2)}`]])
          return aStoredEvent({ ...event, projectId: 1, uuid: uuid(n), flags })
        })
        const others = [0, 1].map(n =>
          aStoredEvent({
            ...event,
            projectId: 2,
            uuid: uuid(insert * 2 + n),
            flags: new Map([['$feature/checkout', n === 0 ? 'control' : 'test']]),
          }),
        )
        await held.insert({ events: [...wide, ...others] })
      }
      await held.optimize('events')
    },
  })

  const countByCheckout = async (projectId: number) => {
    const lines = await held.store.countTrend({
      projectId,
      buckets: createBuckets(
        { fromMs: timestampMs, endMs: timestampMs + 1 },
        'day',
        { timezone: 'UTC', weekStartDay: 0 },
        1,
      )!,
      event: 'seen',
      math: { kind: 'events' },
      condition: {
        kind: 'property',
        source: { kind: 'flag' },
        key: '$feature/checkout',
        operator: 'is_set',
        value: null,
        matchingVersion: 2,
      },
      breakdown: { by: [{ source: { kind: 'flag' }, key: '$feature/checkout' }], limit: 25 },
      settings: { timezone: 'UTC', nowMs: timestampMs },
    })
    return lines.map(({ value, data }) => [value, data])
  }

  it('do not change another project’s trends by flag', async () => {
    assert.deepEqual(await countByCheckout(2), [
      [['control'], [10]],
      [['test'], [10]],
    ])
  })

  it('are counted in the same way as fewer flag properties', async () => {
    const shared = { projectId: 3, timestampMs, event: 'seen' }
    const flagsOf = (value: string, otherLength: number) =>
      new Map([
        ['$feature/checkout', value],
        ['$feature/other', 'é'.repeat(otherLength)],
      ])
    const events = [0, 10, 2_000, 3_000, 100_000].flatMap((length, index) => [
      aStoredEvent({ ...shared, uuid: uuid(index), flags: flagsOf('control', length) }),
      aStoredEvent({ ...shared, uuid: uuid(10 + index), flags: new Map([['$feature/other', 'é'.repeat(length)]]) }),
    ])
    await held.insert({ events })
    assert.deepEqual(await countByCheckout(3), [[['control'], [5]]])
  })
})
