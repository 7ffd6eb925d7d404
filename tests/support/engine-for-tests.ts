import { after, before } from 'node:test'
import { type ClickHouseClients, createClickHouseClients } from '#adapters/clickhouse/connection/clickhouse-clients.ts'
import { startEngine, type TestEngine } from './engine.ts'

export interface EngineForTests {
  readonly engine: TestEngine
  readonly clients: ClickHouseClients
}

/**
 * An engine and its clients for the tests of the file or `describe` in which it is called. Hooks start it before the
 * first test and end it after the last; until then the fields are undefined.
 */
export function engineForTests(): EngineForTests {
  let engine: TestEngine
  let clients: ClickHouseClients
  before(async () => {
    engine = await startEngine()
    clients = createClickHouseClients({ endpoint: engine.endpoint, queryTimeoutSeconds: 8 })
  })
  after(async () => {
    await clients.close()
    await engine.stop()
  })
  return {
    get engine() {
      return engine
    },
    get clients() {
      return clients
    },
  }
}
