// One engine with an empty event store for the tests of a file.

import { after, before } from 'node:test'
import type { Clock } from '#ports/clock.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import { createClickHouseEventStore } from '../../src/adapters/clickhouse/clickhouse-event-store.ts'
import {
  type ClickHouseClients,
  createClickHouseClients,
} from '../../src/adapters/clickhouse/connection/clickhouse-clients.ts'
import { startEngine, type TestEngine } from '../support/engine.ts'

export interface TestEventStore {
  readonly engine: TestEngine
  readonly store: EventStore
  /** Runs a statement on the store's database. */
  command(query: (database: string) => string): Promise<void>
  /** Merges the parts of a table. */
  optimize(...tables: string[]): Promise<void>
  readonly clients: ClickHouseClients
}

/** Call at the top of a file; the fields can be used in its tests. */
export function eventStoreForTests(clock: Clock = { nowMs: Date.now }): TestEventStore {
  let engine: TestEngine
  let store: EventStore
  let clients: ClickHouseClients
  before(async () => {
    engine = await startEngine()
    store = createClickHouseEventStore({ endpoint: engine.endpoint, clock })
    clients = createClickHouseClients({ endpoint: engine.endpoint, queryTimeoutSeconds: 8 })
    await store.migrate()
  })
  after(async () => {
    await clients.close()
    await store.close()
    await engine.stop()
  })
  const command = (query: (database: string) => string) =>
    clients.write(async (client, database) => {
      await client.command({ query: query(database) })
    })
  return {
    get engine() {
      return engine
    },
    get store() {
      return store
    },
    get clients() {
      return clients
    },
    command,
    async optimize(...tables) {
      for (const table of tables) await command(database => `OPTIMIZE TABLE ${database}.${table} FINAL`)
    },
  }
}
