// Runs the contract of exports on the engine.

import { describe } from 'node:test'
import { createClickHouseEventStore } from '#adapters/clickhouse/clickhouse-event-store.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { eventExportsContract } from './event-exports.contract.ts'
import { eventStoreSubject } from './event-store-subject.ts'

const clock = fixedClock('2026-12-03T00:00:00Z')

describe('exports from the embedded ClickHouse', () => {
  /** Reads in pieces of a few rows. */
  let small: EventStore
  /** Takes every day for a busy one. */
  let byKey: EventStore
  const held = eventStoreForTests({
    clock,
    begin: async () => {
      const { endpoint } = held.engine
      const exports = { windowRowsMin: 60, rangeRowsMax: 70, sliceRowsMax: 30, sliceBytesMax: 20_000 }
      small = createClickHouseEventStore({ endpoint, clock, exports })
      const busy = { dayRowsMax: 0, sliceRowsMax: 40, sliceBytesMax: 20_000 }
      byKey = createClickHouseEventStore({ endpoint, clock, exports: busy })
    },
    end: async () => {
      await small.close()
      await byKey.close()
    },
  })

  eventExportsContract(
    eventStoreSubject(() => held.store, clock),
    () => small,
    () => byKey,
  )
})
