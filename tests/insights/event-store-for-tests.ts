// One engine with an empty event store for the tests of a file.

import type { Clock } from '#ports/clock.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import { createClickHouseEventStore } from '../../src/adapters/clickhouse/clickhouse-event-store.ts'
import type { ClickHouseClients } from '../../src/adapters/clickhouse/connection/clickhouse-clients.ts'
import type { TestEngine } from '../support/engine.ts'
import { engineForTests } from '../support/engine-for-tests.ts'

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
  let store: EventStore
  const server = engineForTests({
    begin: async ({ engine }) => {
      store = createClickHouseEventStore({ endpoint: engine.endpoint, clock })
      await store.migrate()
    },
    end: () => store.close(),
  })
  const command = (query: (database: string) => string) =>
    server.clients.write(async (client, database) => {
      await client.command({ query: query(database) })
    })
  return {
    get engine() {
      return server.engine
    },
    get store() {
      return store
    },
    get clients() {
      return server.clients
    },
    command,
    async optimize(...tables) {
      for (const table of tables) await command(database => `OPTIMIZE TABLE ${database}.${table} FINAL`)
    },
  }
}
