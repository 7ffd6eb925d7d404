// Runs the contracts of the event store's ports: all on the engine except the one for exports, which takes longer
// (`event-exports.nightly.ts`), and on the memory stores those that they implement.

import { after, before, describe, it } from 'node:test'
import { createClickHouseEventStore } from '#adapters/clickhouse/clickhouse-event-store.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import { startEngine, type TestEngine } from '../support/engine.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { MemoryEventStore } from '../support/memory/memory-event-store.ts'
import { MemoryRejectStore } from '../support/memory/memory-reject-store.ts'
import { chargedUsageContract } from './charged-usage.contract.ts'
import { eventHistoryContract } from './event-history.contract.ts'
import { eventQueriesContract } from './event-queries.contract.ts'
import { eventStoreSubject, eventWriterSubject } from './event-store-subject.ts'
import { eventWriterContract } from './event-writer.contract.ts'
import { recordingStoreContract } from './recording-store.contract.ts'
import { rejectStoreContract } from './reject-store.contract.ts'

const clock = fixedClock('2026-12-03T00:00:00Z')

/** Every test uses its own project, so that one store serves all. */
describe('the event store on the embedded ClickHouse', () => {
  let engine: TestEngine
  let store: EventStore
  const subject = eventStoreSubject(() => store, clock)

  before(async () => {
    engine = await startEngine()
    store = createClickHouseEventStore({ endpoint: engine.endpoint, clock })
    await store.migrate()
  })
  after(async () => {
    await store.close()
    await engine.stop()
  })

  eventWriterContract(subject)
  chargedUsageContract(subject)
  eventQueriesContract(subject)
  eventHistoryContract(subject)
  recordingStoreContract(subject)
  rejectStoreContract(() => store, subject.newProject)

  it('can be migrated again while it is in use', async () => {
    await Promise.all([store.migrate(), store.migrate(), subject.list(subject.newProject())])
  })
})

describe('the event store in memory', () => {
  const store = new MemoryEventStore()
  store.nowMs = clock.nowMs
  const subject = eventWriterSubject({
    store: () => store,
    clock,
    list: async projectId =>
      [...store.rows.values()]
        .filter(row => row.projectId === projectId)
        .sort((a, b) => b.timestampMs - a.timestampMs || (a.uuid < b.uuid ? 1 : -1)),
  })
  eventWriterContract(subject)
  chargedUsageContract(subject)
  eventHistoryContract(subject)
})

describe('rejects in memory', () => {
  const store = new MemoryRejectStore()
  let projectCount = 0
  rejectStoreContract(
    () => store,
    () => ++projectCount,
  )
})
