import { after, before } from 'node:test'
import { type ClickHouseClients, createClickHouseClients } from '#adapters/clickhouse/connection/clickhouse-clients.ts'
import type { EngineLimits } from '#adapters/clickhouse-embedded/engine-config.ts'
import { startEngine, type TestEngine } from './engine.ts'

export interface EngineForTests {
  readonly engine: TestEngine
  readonly clients: ClickHouseClients
}

/**
 * An engine and its clients for the tests of the file or `describe` that calls this. Hooks start it before the first
 * test and end it after the last; until then the fields are undefined. Hooks of a file start concurrently, so work that
 * needs the engine is passed in `hooks`.
 */
export function engineForTests(
  hooks: {
    readonly limits?: Partial<EngineLimits>
    readonly begin?: (server: EngineForTests) => Promise<void>
    readonly end?: () => Promise<void>
  } = {},
): EngineForTests {
  let engine: TestEngine
  let clients: ClickHouseClients
  const server: EngineForTests = {
    get engine() {
      return engine
    },
    get clients() {
      return clients
    },
  }
  before(async () => {
    engine = await startEngine(hooks.limits)
    const { queryTimeoutSeconds = 8 } = hooks.limits ?? {}
    clients = createClickHouseClients({ endpoint: engine.endpoint, queryTimeoutSeconds })
    await hooks.begin?.(server)
  })
  after(async () => {
    await hooks.end?.()
    await clients.close()
    await engine.stop()
  })
  return server
}
