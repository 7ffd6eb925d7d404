// Runs the contract of exports on the engine.

import { after, before, describe } from 'node:test'
import { createClickHouseEventStore } from '#adapters/clickhouse/clickhouse-event-store.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import { startEngine, type TestEngine } from '../support/engine.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { eventExportsContract } from './event-exports.contract.ts'
import { eventStoreSubject } from './event-store-subject.ts'

const clock = fixedClock('2026-12-03T00:00:00Z')

describe('exports from the embedded ClickHouse', () => {
  let engine: TestEngine
  let store: EventStore
  /** The same, reading in pieces of a few rows. */
  let small: EventStore
  /** The same, taking every day for a busy one. */
  let byKey: EventStore

  before(async () => {
    engine = await startEngine()
    store = createClickHouseEventStore({ endpoint: engine.endpoint, clock })
    const exports = { windowRowsMin: 60, rangeRowsMax: 70, sliceRowsMax: 30, sliceBytesMax: 20_000 }
    small = createClickHouseEventStore({ endpoint: engine.endpoint, clock, exports })
    const busy = { dayRowsMax: 0, sliceRowsMax: 40, sliceBytesMax: 20_000 }
    byKey = createClickHouseEventStore({ endpoint: engine.endpoint, clock, exports: busy })
    await store.migrate()
  })
  after(async () => {
    await small.close()
    await byKey.close()
    await store.close()
    await engine.stop()
  })

  eventExportsContract(
    eventStoreSubject(() => store, clock),
    () => small,
    () => byKey,
  )
})
