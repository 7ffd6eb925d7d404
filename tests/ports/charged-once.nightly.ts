// A live event is charged once, whenever its copies arrive. Tested from the log through the worker and a real engine to
// `usage_daily`, with copies that arrive days later, and with or without the earlier copy merged away.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { createClickHouseEventStore } from '#adapters/clickhouse/clickhouse-event-store.ts'
import { createClickHouseClients } from '#adapters/clickhouse/connection/clickhouse-clients.ts'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import { findTrafficOfLane } from '#core/events/log-stream.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import { createEventProcessor } from '#services/processing/process-events.ts'
import { createUsageSchedule } from '#services/worker/usage-schedule.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { startEngine, type TestEngine } from '../support/engine.ts'
import { eventually } from '../support/eventually.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { memoryChunkStore } from '../support/memory/memory-chunk-store.ts'
import { createMemoryEventLog } from '../support/memory/memory-event-log.ts'
import { memoryState } from '../support/memory/memory-state.ts'
import { sumChargedRecords } from '../support/state.ts'
import { aCapturedEvent, aProject, encodedEvents, noSalts } from '../support/values.ts'

const dayMs = 86_400_000
const noon = (day: string) => Date.parse(`${day}T12:00:00Z`)

describe('an event that is sent again after days', () => {
  let engine: TestEngine
  let clients: ReturnType<typeof createClickHouseClients>
  const stores: EventStore[] = []

  before(async () => {
    engine = await startEngine()
    clients = createClickHouseClients({ endpoint: engine.endpoint, queryTimeoutSeconds: 8 })
    await aStore(fixedClock(0)).migrate()
  })
  after(async () => {
    await Promise.all([...stores, clients].map(each => each.close()))
    await engine.stop()
  })

  const aStore = (clock: Clock) => {
    const store = createClickHouseEventStore({ endpoint: engine.endpoint, clock })
    stores.push(store)
    return store
  }
  const mergeAll = () =>
    clients.write((client, database) => client.command({ query: `OPTIMIZE TABLE ${database}.events FINAL` }))

  /** A project with a worker, and its usage as billed: a frozen day keeps its figures. */
  function aProjectOverDays(options: { merges: boolean }) {
    const clock = fixedClock(noon('2026-11-01'))
    const store = aStore(clock)
    const projectId = stores.length
    const log = createMemoryEventLog({ nowMs: clock.nowMs })
    const state = memoryState([aProject({ id: projectId, geoipEnabled: false })])
    const billed = new Map<string, { eventsCharged: number; eventsImported: number; frozen: boolean }>()
    const schedule = createUsageSchedule({
      events: store,
      clock,
      log,
      findLostSpans: async () => [],
      positions: {
        findDeferral: async () => null,
        findLogPosition: async lane => ({ offset: 0, committedAtMs: null, ...state.positions.get(lane) }),
      },
      usage: {
        listProjectIds: async () => [projectId],
        sumChargedRecords: () => sumChargedRecords(state),
        saveEventCounts: async (_projectId, days, frozenBeforeDay) => {
          for (const { day, eventsCharged, eventsImported } of days)
            if (billed.get(day)?.frozen !== true)
              billed.set(day, { eventsCharged, eventsImported, frozen: day < frozenBeforeDay })
        },
      },
    })
    const work = async (crashes: boolean) => {
      const stopping = new AbortController()
      let crashed = false
      const processor = createEventProcessor({
        log,
        logId: 'log',
        state: memoryChunkStore(state),
        events: store,
        geoip: null,
        saltOf: noSalts,
        clock,
        metrics: createMetrics(),
        logger: createSilentLogger(),
        ownerId: crypto.randomUUID(),
        limits: { restMs: 0, pollMs: 20 },
        faultPoint: name => {
          if (!crashes || name !== 'insert') return
          crashed = true
          return new Promise<void>(() => {}) // a killed process goes no further
        },
      })
      const ended = processor.run(stopping.signal)
      await eventually(async () => {
        if (crashed) return true
        const { endOffset } = await log.readStreamStatus('main', 0)
        const { endOffset: importEnd } = await log.readStreamStatus('historical', 0)
        const at = (lane: string) => state.positions.get(lane as 'main')?.offset ?? 0
        return at('main') === endOffset && at('historical') === importEnd
      })
      stopping.abort()
      if (!crashed) await ended
    }
    const from = { projectId, timestampMs: noon('2026-11-02') }
    return {
      /** Accepts copies of one event on `day` (or what `over` makes of it), processes them and computes usage. */
      async send(
        day: string,
        over: Partial<CapturedEvent> = {},
        { crashes = false, copies = 1, processedOn = day, computesFirst = false } = {},
      ) {
        clock.set(noon(day))
        const capturedAtMs = noon(day)
        const event = aCapturedEvent(1, { ...from, receivedAtMs: capturedAtMs, capturedAtMs, ...over })
        for (let copy = 0; copy < copies; copy++)
          await log.append(findTrafficOfLane(event.lane), encodedEvents([event]))
        clock.set(noon(processedOn))
        if (computesFirst) await schedule.round()
        if (crashes) await work(true)
        if (options.merges) await mergeAll()
        await work(false)
        if (options.merges) await mergeAll()
        await schedule.round()
      },
      /** The figures once every day is frozen. */
      async bill() {
        for (let days = 1; days <= 5; days++) {
          clock.advance(dayMs)
          await schedule.round()
        }
        const charged = [...billed].filter(([, { eventsCharged }]) => eventsCharged > 0)
        return Object.fromEntries(charged.map(([day, { eventsCharged }]) => [day, eventsCharged]))
      },
    }
  }

  const asImport = { lane: 'historical', historicalMigration: true, importJobId: 1 } as const

  for (const merges of [false, true]) {
    describe(merges ? 'and is merged with its first copy' : 'and is stored in another part than its first copy', () => {
      it('is charged on the day of its first arrival', async () => {
        const project = aProjectOverDays({ merges })
        await project.send('2026-11-02')
        await project.send('2026-11-06')
        await project.send('2026-11-20')
        assert.deepEqual(await project.bill(), { '2026-11-02': 1 })
      })

      it('is charged on the day of its first arrival even a month later', async () => {
        const project = aProjectOverDays({ merges })
        const timestampMs = noon('2026-11-30')
        await project.send('2026-11-30', { timestampMs })
        await project.send('2026-12-01', { timestampMs })
        await project.send('2026-12-05', { timestampMs })
        await project.send('2027-01-05', { timestampMs })
        assert.deepEqual(await project.bill(), { '2026-11-30': 1 })
      })

      it('is charged once when the client’s clock was a day ahead', async () => {
        const project = aProjectOverDays({ merges })
        for (const day of ['2026-11-01', '2026-11-02', '2026-11-03', '2026-11-04', '2026-11-05', '2026-11-06'])
          await project.send(day)
        assert.deepEqual(await project.bill(), { '2026-11-02': 1 })
      })

      it('is charged once when the worker was stopped for days', async () => {
        const project = aProjectOverDays({ merges })
        await project.send('2026-11-02')
        await project.send('2026-11-03', {}, { processedOn: '2026-11-09' })
        assert.deepEqual(await project.bill(), { '2026-11-02': 1 })
      })

      it('is charged on the day of its arrival even if the worker restarts after that day would have been frozen', async () => {
        const project = aProjectOverDays({ merges })
        await project.send('2026-11-02')
        const another = { name: 'another', timestampMs: noon('2026-11-02') }
        await project.send('2026-11-02', another, { processedOn: '2026-11-09', computesFirst: true })
        assert.deepEqual(await project.bill(), { '2026-11-02': 2 })
      })

      it('is charged on the day of its first live arrival, with imports before and after', async () => {
        const project = aProjectOverDays({ merges })
        await project.send('2026-11-03', asImport)
        await project.send('2026-11-07')
        await project.send('2026-11-11', asImport)
        await project.send('2026-11-15')
        assert.deepEqual(await project.bill(), { '2026-11-07': 1 })
      })

      it('is charged once when the worker dies after writing the rows and before saving the log position', async () => {
        const project = aProjectOverDays({ merges })
        await project.send('2026-11-06', {}, { crashes: true, copies: 3 })
        await project.send('2026-11-10', {}, { crashes: true, copies: 2 })
        assert.deepEqual(await project.bill(), { '2026-11-06': 1 })
      })
    })
  }

  it('is charged twice if its name differs, since it is then another event', async () => {
    const project = aProjectOverDays({ merges: false })
    await project.send('2026-11-02')
    await project.send('2026-11-06', { name: 'another' })
    assert.deepEqual(await project.bill(), { '2026-11-02': 1, '2026-11-06': 1 })
  })
})
