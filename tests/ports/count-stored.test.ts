// How many events of a batch are stored already, on a real engine.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import type { StoredEvent } from '#core/events/stored-event.ts'
import { importBatchEventsMax } from '#core/imports/import-job.ts'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { aStoredEvent, imported } from '../support/values.ts'
import { askedBatch } from './asked-batch.ts'

const dayMs = 86_400_000
/** More are not asked for at once. */
const batchSize = importBatchEventsMax

describe('counting which events of a batch are stored', () => {
  const server = eventStoreForTests()
  const at = Date.UTC(2024, 4, 1)
  let projectId = 0

  /** @returns events of a project that has none. */
  function someEvents(count: number, of: (index: number) => Partial<StoredEvent> = () => ({})): StoredEvent[] {
    projectId++
    return Array.from({ length: count }, (_, index) =>
      aStoredEvent({ projectId, uuid: randomUUID(), timestampMs: at + index, capturedAtMs: at, ...of(index) }),
    )
  }

  const stored = (asked: readonly StoredEvent[]) => server.store.countStoredEvents(projectId, askedBatch(asked))

  it('includes live, published and pending events, and counts an event once even if stored in several ways', async () => {
    const events = someEvents(5)
    assert.equal(await stored(events), 0)
    const [live, published, pending, both] = events
    await server.insert({
      events: [live!, both!, imported(published!, 7)],
      pendingEvents: [imported(pending!, 7), imported(both!, 8)],
    })
    assert.equal(await stored(events), 4)
    assert.equal(await stored(events.slice(4)), 0)
  })

  const batches: Record<string, (index: number) => Partial<StoredEvent>> = {
    'one person and day': () => ({}),
    'many persons': index => ({ distinctId: `user ${index}` }),
    'persons with long ids': index => ({ distinctId: `${index}'\\\t"`.padEnd(200, 'é') }),
    'many names': index => ({ event: `event ${index % 200}` }),
    'two days': index => ({ timestampMs: at + (index % 2) * dayMs }),
    'many days': index => ({ timestampMs: at + (index % 400) * dayMs }),
    'days before 1970': index => ({ timestampMs: -(index % 2) * dayMs - 1 }),
  }
  for (const [name, of] of Object.entries(batches))
    it(`finds the events in a full batch with ${name}`, async () => {
      const events = someEvents(batchSize, of)
      assert.equal(await stored(events), 0)
      const some = events.filter((_, index) => index % 1_250 === 1_234)
      await server.insert({ events: some })
      assert.equal(await stored(events), 4)
      assert.equal(await stored(events.filter(event => !some.includes(event))), 0)
    })

  it('does not include events of another project, day, name or person with the same uuid', async () => {
    const [event] = someEvents(1)
    const others = [
      { ...event!, projectId: 1_000 },
      { ...event!, timestampMs: at + dayMs },
      { ...event!, event: 'another' },
      { ...event!, distinctId: 'another' },
    ]
    await server.insert({ events: others })
    assert.equal(await stored([event!]), 0)
    assert.equal(await stored([event!, { ...event!, distinctId: 'another' }]), 1)
  })
})
