// The same figures whatever happens to the store: parts are merged, events come twice, the engine restarts or is killed
// while it counts. Through the embedded engine's connection, and through one as `CLICKHOUSE_URL` makes it, by which the
// settings that keep figures right come from us instead of the engine's profile.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { StoredEvent } from '#core/events/stored-event.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import { noEventRows } from '#ports/events/event-writer.ts'
import { createClickHouseEventStore } from '../../src/adapters/clickhouse/clickhouse-event-store.ts'
import { createClickHouseClients } from '../../src/adapters/clickhouse/connection/clickhouse-clients.ts'
import { startEngine, type TestEngine } from '../support/engine.ts'
import { endpointByUrl } from '../support/event-store-for-tests.ts'
import { startManagement } from '../support/management-api.ts'
import { seededRandom, testSeed } from '../support/seeded-random.ts'
import { aStoredEvent, imported } from '../support/values.ts'

const uuidOf = (kind: number, index: number) => `0000000${kind}-0000-4000-8000-${String(index).padStart(12, '0')}`

describe('trends', () => {
  let engine: TestEngine
  const ways: Record<string, { store: EventStore; projectId: number }> = {}
  before(async () => {
    engine = await startEngine()
    let storeMs = Date.parse('2026-05-01T12:00:00Z')
    const clock = { nowMs: () => ++storeMs }
    for (const [index, [name, endpoint]] of Object.entries({
      'the embedded engine': () => engine.endpoint(),
      CLICKHOUSE_URL: () => endpointByUrl(engine),
    }).entries()) {
      ways[name] = { store: createClickHouseEventStore({ endpoint, clock }), projectId: index + 1 }
    }
    await ways['the embedded engine']!.store.migrate()
  })
  after(async () => {
    for (const { store } of Object.values(ways)) await store.close()
    await engine.stop()
  })

  for (const name of ['the embedded engine', 'CLICKHOUSE_URL']) {
    it(`are the same after repeats, merges of parts, restarts and kill -9, for ${name}`, async t => {
      const { store, projectId } = ways[name]!
      const seed = testSeed()
      t.diagnostic(`SEED=${seed}`)
      const next = seededRandom(seed)
      const below = (count: number) => Math.floor(next() * count)
      const api = await startManagement(t, { events: store })
      for (let id = 0; id < projectId; id = (await api.call('POST', '/api/projects/', { body: { name } })).body.id);
      const events = Array.from({ length: 600 }, (_, index): StoredEvent => {
        const id = below(40)
        const event = aStoredEvent({
          ...{ projectId, uuid: uuidOf(1, index), event: ['seen', 'paid'][below(2)]!, distinctId: `id-${id}` },
          ...{ timestampMs: Date.parse('2026-04-25T00:00:00Z') + below(6 * 86_400_000), personId: uuidOf(2, id) },
          propertiesJson: JSON.stringify({ price: below(100) }),
          flags: new Map([['$feature/nav', ['on', 'off'][below(2)]!]]),
        })
        return below(4) === 0 ? imported(event, 1) : event
      })
      // Imported and live copies of an identity lie in different partitions.
      const twice = events.map(event => (below(3) === 0 ? imported(event, 2) : event))
      const overrides = [{ projectId, distinctId: 'id-1', personId: uuidOf(2, 2), version: 1 }]
      const send = async (some: readonly StoredEvent[]) => {
        for (let start = 0; start < some.length; start += 200)
          await store.insert({ ...noEventRows, events: some.slice(start, start + 200), overrides })
      }
      await send(events)

      const flag = { breakdown: '$feature/nav', breakdown_type: 'event' }
      const series = (more: object) => [{ kind: 'EventsNode', event: null, ...more }]
      const queries = [
        { series: series({}), breakdownFilter: flag },
        { series: series({ math: 'dau' }), breakdownFilter: flag },
        { series: series({ event: 'paid', math: 'p90', math_property: 'price' }), interval: 'hour' },
        { series: series({}), properties: [{ key: 'price', type: 'event', operator: 'gt', value: 50 }] },
      ]
      const ask = (query: object) =>
        api.call('POST', `/api/projects/${projectId}/query/`, {
          body: {
            query: { kind: 'TrendsQuery', dateRange: { date_from: '2026-04-24', date_to: '2026-05-01' }, ...query },
          },
        })
      const answers = () =>
        Promise.all(
          queries.map(async query => {
            const { status, text } = await ask(query)
            assert.equal(status, 200, text)
            return text
          }),
        )
      const first = await answers()
      // biome-ignore lint/suspicious/noExplicitAny: an answer of many shapes
      const total = JSON.parse(first[0]!).results.reduce((sum: number, line: any) => sum + line.count, 0)
      assert.equal(total, 600)

      await send(twice)
      assert.deepEqual(await answers(), first, 'sent twice')
      const clients = createClickHouseClients({ endpoint: () => engine.endpoint(), queryTimeoutSeconds: 20 })
      t.after(() => clients.close())
      await clients.write((client, database) => client.command({ query: `OPTIMIZE TABLE ${database}.events FINAL` }))
      assert.deepEqual(await answers(), first, 'merged')
      for (let round = 0; round < 3; round++) {
        // A seeded moment within the queries.
        const asked = queries.map((query, index) =>
          ask(query).then(({ status, text, body }) => ({ index, status, text, body })),
        )
        const settled = Promise.all(asked)
        for (let step = below(200); step > 0; step--) await new Promise(done => setImmediate(done))
        await engine.kill()
        for (const { index, status, text, body } of await settled) {
          if (status === 200) assert.equal(text, first[index], 'killed')
          else assert.deepEqual([status, body.type, body.code], [503, 'server_error', 'event_store_unavailable'], text)
        }
        await engine.restart()
        assert.deepEqual(await answers(), first, 'started again')
      }
    })
  }
})
