import { createClickHouseEventStore } from '../../src/adapters/clickhouse/clickhouse-event-store.ts'
import { startEngine } from '../support/engine.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { eventStoreContract } from './event-store.contract.ts'

eventStoreContract('the embedded ClickHouse', async () => {
  const engine = await startEngine()
  const clock = fixedClock('2026-12-03T00:00:00Z')
  const store = createClickHouseEventStore({ endpoint: engine.endpoint, clock })
  await store.migrate()
  return {
    store,
    clock,
    close: async () => {
      await store.close()
      await engine.stop()
    },
  }
})
