// What is known of persons is added to pending rows by mutations of the engine: in pieces, past crashes between any two
// steps, and not more than a row may get.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { createClickHouseEventStore } from '#adapters/clickhouse/clickhouse-event-store.ts'
import { type ClickHouseClients, createClickHouseClients } from '#adapters/clickhouse/connection/clickhouse-clients.ts'
import { createRowInserter } from '#adapters/clickhouse/writing/insert-rows.ts'
import { addKnownProperties } from '#adapters/clickhouse/writing/known-properties.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import { knownBytesMax, noEventRows } from '#ports/events/event-writer.ts'
import { anEvent, imported } from '../support/an-event.ts'
import { startEngine, type TestEngine } from '../support/engine.ts'
import { fixedClock } from '../support/fixed-clock.ts'

const ids = Array.from({ length: 2_500 }, (_, index) => `id-${index}`)
const knownOf = async (some: readonly string[]) => new Map(some.map(id => [id, `{"id":"${id}","plan":"pro"}`]))
const never = new AbortController().signal

describe('what is known of persons', () => {
  let engine: TestEngine
  let clients: ClickHouseClients
  let store: EventStore
  let jobCount = 1
  before(async () => {
    engine = await startEngine()
    clients = createClickHouseClients({ endpoint: engine.endpoint, queryTimeoutSeconds: 8 })
    store = createClickHouseEventStore({ endpoint: engine.endpoint, clock: fixedClock('2026-12-03T00:00:00Z') })
    await store.migrate()
  })
  after(async () => {
    await Promise.all([store.close(), clients.close()])
    await engine.stop()
  })

  const query = <Row>(text: string): Promise<Row[]> =>
    clients.write(async (client, database) =>
      (await client.query({ query: text.replaceAll('DB', database), format: 'JSONCompactEachRow' })).json<Row>(),
    )
  const pend = async (over: Parameters<typeof imported>[2] = {}) => {
    const job = ++jobCount
    const pendingEvents = ids.map(distinctId => imported(anEvent({ distinctId, ...over }), job))
    await store.insert({ ...noEventRows, pendingEvents })
    return job
  }
  const add = (job: number, on: typeof clients, known = knownOf) =>
    addKnownProperties(
      { clients: on, inserter: createRowInserter(on) },
      job,
      { index: 0, count: 1 },
      known,
      never,
      40_000, // two mutations
    )
  const assertAdded = async (job: number) => {
    assert.deepEqual(
      await query(`SELECT count(), countIf(person_properties = concat('{"id":"', distinct_id, '","plan":"pro"}'))
        FROM DB.events_pending FINAL WHERE import_partition = ${job}`),
      [[ids.length, ids.length]],
    )
    assert.deepEqual(await query('SELECT count() FROM DB.known_properties'), [[0]])
  }

  it('is added after a crash before or behind any statement', async () => {
    const job = await pend()
    let isOver = false
    for (let crash = 0; !isOver; crash++) {
      let left = crash
      const dying: typeof clients = {
        ...clients,
        write: async call => {
          if (left-- === 0) throw new Error('killed')
          const answer = await clients.write(call)
          if (left-- === 0) throw new Error('killed')
          return answer
        },
      }
      isOver = await add(job, dying).then(
        () => true,
        (cause: Error) => {
          assert.equal(cause.message, 'killed')
          return false
        },
      )
    }
    await assertAdded(job)
  })

  it('is bounded for each row, and leaves out the longest', async () => {
    const job = await pend()
    const long = 'x'.repeat(knownBytesMax)
    await add(
      job,
      clients,
      async some =>
        new Map(some.map(id => [id, JSON.stringify({ long, id, half: 'é'.repeat(knownBytesMax / 4), plan: 'pro' })])),
    )
    assert.deepEqual(
      await query(`SELECT JSONExtractKeys(person_properties) AS keys, count() FROM DB.events_pending
        WHERE import_partition = ${job} GROUP BY keys`),
      [[['id', 'half', 'plan'], ids.length]],
    )
  })

  it('does not bring back a row that is erased meanwhile', async () => {
    const job = await pend()
    await add(job, clients, async some => {
      await clients.write((client, database) =>
        client.command({
          query: `ALTER TABLE ${database}.events_pending DELETE WHERE import_partition = ${job} AND distinct_id = 'id-7'`,
        }),
      )
      return knownOf(some)
    })
    assert.deepEqual(
      await query(
        `SELECT count(), countIf(distinct_id = 'id-7') FROM DB.events_pending WHERE import_partition = ${job}`,
      ),
      [[ids.length - 1, 0]],
    )
  })
})
