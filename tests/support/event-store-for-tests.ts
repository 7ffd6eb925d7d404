// One engine with an empty event store for the tests of a file.

import {
  type ClickHouseEventStoreOptions,
  createClickHouseEventStore,
} from '#adapters/clickhouse/clickhouse-event-store.ts'
import { type ClickHouseEndpoint, parseEndpointUrl } from '#adapters/clickhouse/connection/clickhouse-clients.ts'
import type { EngineLimits } from '#adapters/clickhouse-embedded/engine-config.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import { type EventRows, type EventWriter, noEventRows } from '#ports/events/event-writer.ts'
import type { TestEngine } from './engine.ts'
import { type EngineForTests, engineForTests } from './engine-for-tests.ts'

export interface TestEventStore extends EngineForTests {
  readonly store: EventStore
  insert(rows: Partial<EventRows>): ReturnType<EventWriter['insert']>
  /** Runs a statement on the store's database. */
  command(query: (database: string) => string): Promise<void>
  /** Merges the parts of a table. */
  optimize(...tables: string[]): Promise<void>
}

export interface TestEventStoreOptions extends Pick<Partial<ClickHouseEventStoreOptions>, 'clock' | 'exports'> {
  readonly limits?: Partial<EngineLimits>
  /** The engine's own by default. */
  readonly endpoint?: (engine: TestEngine) => ClickHouseEndpoint
  /** Before the first test, with the store. */
  readonly begin?: () => Promise<unknown>
  /** After the last test, before the store closes. */
  readonly end?: () => Promise<void>
}

/** Call at the top of a file or `describe`; the fields can be used in its tests. */
export function eventStoreForTests({
  clock = { nowMs: Date.now },
  exports = {},
  limits = {},
  endpoint = engine => engine.endpoint(),
  begin,
  end,
}: TestEventStoreOptions = {}): TestEventStore {
  let store: EventStore
  const server = engineForTests({
    limits,
    begin: async ({ engine }) => {
      const { queryTimeoutSeconds = 8 } = limits
      store = createClickHouseEventStore({ endpoint: () => endpoint(engine), clock, exports, queryTimeoutSeconds })
      await store.migrate()
      await begin?.()
    },
    end: async () => {
      await end?.()
      await store.close()
    },
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
    insert: rows => store.insert({ ...noEventRows, ...rows }),
    command,
    async optimize(...tables) {
      for (const table of tables) await command(database => `OPTIMIZE TABLE ${database}.${table} FINAL`)
    },
  }
}

/** The engine as an operator's server: `CLICKHOUSE_URL`. */
export function endpointByUrl(engine: TestEngine): ClickHouseEndpoint {
  const { url, writer, database } = engine.endpoint()
  return parseEndpointUrl(`${url.replace('://', `://${writer.username}:${writer.password}@`)}/${database}`)
}
