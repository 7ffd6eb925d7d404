// Runs the contracts of the event store's ports: all on the engine except the one for exports, which takes longer
// (`event-exports.nightly.ts`), and on the memory stores those that they implement.

import { describe, it } from 'node:test'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
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
  const held = eventStoreForTests({ clock })
  const subject = eventStoreSubject(() => held.store, clock)

  eventWriterContract(subject)
  chargedUsageContract(subject)
  eventQueriesContract(subject)
  eventHistoryContract(subject)
  recordingStoreContract(subject)
  rejectStoreContract(() => held.store, subject.newProject)

  it('can be migrated again while it is in use', async () => {
    await Promise.all([held.store.migrate(), held.store.migrate(), subject.list(subject.newProject())])
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
