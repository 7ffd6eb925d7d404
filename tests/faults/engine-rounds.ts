// Rounds of kill -9 on the engine while rows are inserted: every acknowledged row must be stored afterwards.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { PortError } from '#ports/port-error.ts'
import { createClickHouseEventStore } from '../../src/adapters/clickhouse/clickhouse-event-store.ts'
import { startEngine } from '../support/engine.ts'
import { eventually } from '../support/eventually.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { aStoredEvent } from '../support/values.ts'

/** Rows per insert; two inserts run at once. */
const batchRows = 200

/** @returns the number of acknowledged rows. @throws when one of them is missing or stored twice. */
export async function killEngineRounds(roundCount: number, seed: number): Promise<number> {
  const random = seededRandom(seed)
  const engine = await startEngine()
  const store = createClickHouseEventStore({ endpoint: engine.endpoint, clock: { nowMs: Date.now } })
  const acknowledged: string[] = []
  try {
    await store.migrate()
    for (let round = 0; round < roundCount; round++) {
      let isKilled = false
      const insertUntilKilled = async () => {
        while (!isKilled) {
          const events = Array.from({ length: batchRows }, () =>
            aStoredEvent({
              uuid: randomUUID(),
              capturedAtMs: Date.parse(`2026-1${acknowledged.length & 1}-02T00:00:00Z`),
            }),
          )
          try {
            await store.insert({ events, pendingEvents: [], overrides: [], recordings: [], rejected: [] })
          } catch (error) {
            assert(error instanceof PortError && error.retryable, `unexpected failure: ${error}`)
            if (isKilled) return
            continue
          }
          for (const event of events) acknowledged.push(event.uuid)
        }
      }
      const before = acknowledged.length
      const inserting = Promise.all([insertUntilKilled(), insertUntilKilled()])
      await eventually(() => acknowledged.length > before, { what: 'the first rows of a round' })
      await new Promise(resolve => setTimeout(resolve, random() * 250))
      const killed = engine.kill()
      isKilled = true
      await Promise.all([killed, inserting])
      await engine.restart()
      await assertStoredOnce(store, acknowledged)
    }
    return acknowledged.length
  } finally {
    await store.close()
    await engine.stop()
  }
}

async function assertStoredOnce(
  store: ReturnType<typeof createClickHouseEventStore>,
  acknowledged: readonly string[],
): Promise<void> {
  const stored = new Set<string>()
  let after: Awaited<ReturnType<typeof store.listEvents>>['next'] = null
  do {
    const page: Awaited<ReturnType<typeof store.listEvents>> = await store.listEvents({
      projectId: 1,
      descending: false,
      limit: 1000,
      ...(after && { after }),
    })
    for (const { uuid } of page.events) {
      assert(!stored.has(uuid), `${uuid} is there twice`)
      stored.add(uuid)
    }
    after = page.next
  } while (after !== null)
  const missing = acknowledged.filter(uuid => !stored.has(uuid))
  assert.deepEqual(missing, [], `${missing.length} of ${acknowledged.length} acknowledged rows are missing`)
}
