// What a worker records about the event store while a project is deferred, and what a start restores from that record,
// with a real state, a real engine and the log in memory.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { createClickHouseEventStore } from '#adapters/clickhouse/clickhouse-event-store.ts'
import { migrateSqlite } from '#adapters/sqlite/kysely-on-sqlite.ts'
import { openSqliteChunkStore } from '#adapters/sqlite/sqlite-chunk-store.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { createEventProcessor } from '#services/processing/process-events.ts'
import { createEventStoreRestorer } from '#services/worker/restore-event-store.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { engineForTests } from '../support/engine-for-tests.ts'
import { eventually } from '../support/eventually.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { createMemoryEventLog } from '../support/memory/memory-event-log.ts'
import { tempDir } from '../support/temp-dir.ts'
import { aCapturedEvent, aChange, aNewProject, encodedEvents, noSalts } from '../support/values.ts'

describe('the event store while a project is deferred', () => {
  const server = engineForTests()
  const command = (query: string) => server.clients.write(client => client.command({ query }))

  /**
   * One event of each project has been stored. After that, project 1 is deferred: its `waits` precedes `goes on` of
   * project 2 in the log, and the first cursor has stored only the latter.
   */
  async function aDeferral(t: TestContext) {
    await command('DROP DATABASE IF EXISTS pennon SYNC')
    const dataFolder = tempDir(t)
    await migrateSqlite(dataFolder)
    const management = openSqliteManagementStore({ dataFolder, access: 'write' })
    const state = openSqliteChunkStore({ dataFolder })
    const clock = fixedClock('2026-11-01T00:00:00Z')
    const events = createClickHouseEventStore({ endpoint: server.engine.endpoint, clock })
    t.after(() => Promise.all([management, state, events].map(store => store.close())))
    await events.migrate()
    for (let n = 0; n < 2; n++)
      assert.ok((await management.createProject(aNewProject({ geoipEnabled: false }), aChange())).ok)
    const log = createMemoryEventLog({ nowMs: clock.nowMs })
    const shared = {
      log,
      logId: 'log',
      state,
      events,
      geoip: null,
      saltOf: noSalts,
      clock,
      logger: createSilentLogger(),
    }
    let [eventCount, workerCount] = [0, 0]

    const append = async (projectId: number, name: string) => {
      const event = aCapturedEvent(eventCount++, { projectId, name, distinctId: `of ${projectId}` })
      await log.append('live', encodedEvents([event]))
    }
    /** A worker that ends when all is processed, or is killed before the first chunk of the second cursor. */
    const work = async (until: 'all is processed' | 'the second cursor') => {
      const ownerId = `worker-${++workerCount}`
      const stopping = new AbortController()
      let readCount = 0
      const processor = createEventProcessor({
        ...{ ...shared, ownerId, metrics: createMetrics(), limits: { restMs: 0, pollMs: 20 } },
        deferring: { projects: management, hasOtherProjects: async () => true },
        faultPoint: name => {
          // The first chunk of a new worker belongs to the first cursor.
          if (until === 'the second cursor' && name === 'read' && ++readCount === 2) return new Promise<void>(() => {})
          return undefined
        },
      })
      const ended = processor.run(stopping.signal)
      if (until === 'the second cursor') await eventually(() => readCount === 2, { what: 'the second cursor' })
      else {
        await eventually(async () => {
          const { offset } = await management.findLogPosition('main')
          return offset === eventCount && (await management.findDeferral('main')) === null
        })
        stopping.abort()
        await ended
      }
      return ownerId
    }
    /** The check that a worker makes at its start. */
    const check = async () => {
      await events.migrate()
      const keeper = createEventStoreRestorer({
        ...{ ...shared, metrics: createMetrics(), marks: management, rejectRetentionDays: 30 },
        ...{
          newUuid: () => crypto.randomUUID(),
          random: Math.random,
          onRestoring: () => undefined,
          expiryClock: shared.clock,
        },
      })
      await keeper.checkAtStart(new AbortController().signal)
    }

    await append(1, 'first')
    await append(2, 'first')
    const ownerId = await work('all is processed')
    assert.ok(await management.deferProject('main', ownerId, 1, 2))
    await append(1, 'waits')
    await append(2, 'goes on')
    await work('the second cursor')
    return {
      ...{ append, work, check },
      positions: async () => (await management.findEventStoreMark())?.positions,
      /** Keeps the parts of the store, so that the loss of rows is not noticed. */
      lose: (name: string) =>
        command(`ALTER TABLE pennon.events DELETE WHERE event = '${name}' SETTINGS mutations_sync = 2`),
      stored: async () => {
        const query = "SELECT concat(project_id, ' ', event) AS name FROM pennon.events FINAL ORDER BY name"
        const answer = await server.clients.write(client => client.query({ query, format: 'JSONEachRow' }))
        return (await answer.json<{ name: string }>()).map(({ name }) => name)
      },
    }
  }

  it('is recorded as complete only up to the second cursor, until that cursor has caught up', async t => {
    const { check, positions, stored, work } = await aDeferral(t)
    assert.deepEqual(await stored(), ['1 first', '2 first', '2 goes on'])
    await check()
    assert.deepEqual(await positions(), { main: 2, historical: 0 })
    await work('all is processed')
    await check()
    assert.deepEqual(await positions(), { main: 4, historical: 0 })
  })

  it('gets back rows that the second cursor stored after the completeness was last recorded', async t => {
    const { check, lose, stored, work } = await aDeferral(t)
    await check()
    await work('all is processed')
    await lose('waits')
    assert.deepEqual(await stored(), ['1 first', '2 first', '2 goes on'])
    await check()
    assert.deepEqual(await stored(), ['1 first', '1 waits', '2 first', '2 goes on'])
  })

  it('gets back rows that the first cursor stored after the completeness was last recorded, but no waiting events', async t => {
    const { append, check, lose, stored, work } = await aDeferral(t)
    await check()
    await append(1, 'waits too')
    await append(2, 'is lost')
    await work('the second cursor')
    await lose('is lost')
    assert.deepEqual(await stored(), ['1 first', '2 first', '2 goes on'])
    await check()
    assert.deepEqual(await stored(), ['1 first', '2 first', '2 goes on', '2 is lost'])
    await work('all is processed')
    assert.deepEqual(await stored(), ['1 first', '1 waits', '1 waits too', '2 first', '2 goes on', '2 is lost'])
  })

  it('gets back all processed events after it was emptied, but no waiting events', async t => {
    const { check, positions, stored, work } = await aDeferral(t)
    await command('DROP DATABASE pennon SYNC')
    await check()
    assert.deepEqual(await stored(), ['1 first', '2 first', '2 goes on'])
    assert.deepEqual(await positions(), { main: 2, historical: 0 })
    await work('all is processed')
    assert.deepEqual(await stored(), ['1 first', '1 waits', '2 first', '2 goes on'])
  })
})
