// A quota from the first event to the next month: what fronts accept, what a worker stores even if it dies, and what
// usage reports. Every event that arrived is counted once, as a record or as refused.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { migrateSqlite } from '#adapters/sqlite/kysely-on-sqlite.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { prepareEvents } from '#core/capture/prepare-events.ts'
import { noQuotas, type Quotas } from '#core/project.ts'
import { type CaptureService, createCaptureService } from '#services/capture/capture.ts'
import { startEventQuotaTracker } from '#services/capture/event-quotas.ts'
import { startRefusedItemCounter } from '#services/capture/refused-counter.ts'
import { createUsageSchedule } from '#services/worker/usage-schedule.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { eventually } from '../support/eventually.ts'
import { anIncomingEvent, anIncomingRequest } from '../support/incoming-requests.ts'
import { sumChargedRecords } from '../support/state.ts'
import { tempDir } from '../support/temp-dir.ts'
import { aProject } from '../support/values.ts'
import { aWorld } from '../support/world/world.ts'

interface Sent {
  readonly name?: string
  /** The uuid derives from it, so the same number sends the same event again. */
  readonly n: number
}

async function start(t: TestContext) {
  const dataFolder = tempDir(t)
  await migrateSqlite(dataFolder)
  const store = openSqliteManagementStore({ dataFolder, access: 'write' })
  t.after(() => store.close())
  const world = aWorld()
  const { clock } = world
  clock.set(Date.parse('2026-11-20T12:00:00Z'))
  let project = aProject({ apiToken: 'phc_x', geoipEnabled: false })
  const usage = createUsageSchedule({
    events: world.events,
    usage: {
      saveEventCounts: store.saveEventCounts,
      listProjectIds: async () => [project.id],
      sumChargedRecords: () => sumChargedRecords(world.state),
    },
    log: world.log,
    positions: {
      findDeferral: async () => null,
      findLogPosition: async stream => ({ offset: 0, committedAtMs: null, ...world.state.positions.get(stream) }),
    },
    findLostSpans: async () => [],
    clock,
  })
  const startFront = () => {
    const quotas = startEventQuotaTracker({ usage: store, clock, logger: createSilentLogger(), readMs: 5 })
    const refused = startRefusedItemCounter({ store, clock, logger: createSilentLogger(), flushMs: 5 })
    const capture = createCaptureService({
      findProject: () => project,
      unknownKeys: 'reject',
      importOnly: false,
      isOverQuota: quotas.isOverQuota,
      refused,
      visitors: { settlerOf: () => () => null, hide: async () => undefined },
      eventLog: { append: (lane, records) => world.log.append(lane, records).then(() => undefined) },
      clock,
      metrics: createMetrics(),
      logger: createSilentLogger(),
    })
    t.after(() => Promise.all([quotas.close(), refused.close()]))
    return { quotas, refused, capture }
  }
  const fronts = [startFront(), startFront()]
  let sentCount = 0
  return {
    world,
    store,
    clock,
    captures: fronts.map(({ capture }) => capture),
    setQuotas(quotas: Partial<Quotas>) {
      project = { ...project, quotas: { ...noQuotas, ...quotas } }
      for (const front of fronts) front.quotas.follow(project)
    },
    async send(capture: CaptureService, events: readonly Sent[], historicalMigration = false) {
      sentCount += events.length
      const items = events.map(({ n, name = 'e' }) =>
        anIncomingEvent({
          name,
          uuid: `0199a000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`,
          timestamp: '2026-11-20T11:00:00Z',
        }),
      )
      const received = { receivedAtMs: clock.nowMs(), ip: '', random: () => 0 }
      const table = prepareEvents(anIncomingRequest(items, { historicalMigration }), received)
      const request = { protocol: 'v0', token: 'phc_x', historicalMigration, table, body: '' } as const
      const outcome = await capture.capture(request, received.receivedAtMs, () => null)
      assert.equal(outcome.kind, 'stored')
    },
    async process({ dying = false } = {}) {
      if (dying) {
        let died = false
        const worker = world.start(t, {
          faultPoint: name => {
            if (name !== 'insert') return
            died = true
            return new Promise<void>(() => {}) // a killed process goes no further
          },
        })
        await eventually(async () => died)
        worker.stop()
      }
      const worker = world.start(t)
      await eventually(async () => (await world.isProcessed('main')) && (await world.isProcessed('historical')))
      worker.stop()
      await worker.ended
      await usage.round()
    },
    isOver: (front: 0 | 1) => fronts[front]!.quotas.isOverQuota(project, 'events'),
    sums: async () => (await store.sumUsage([project.id], '2026-11-01', '2026-11-30'))[0],
    /** Everything that was sent, by what became of it. */
    async balance() {
      await Promise.all(fronts.map(({ refused }) => refused.close()))
      const { stored, dropped, rejected } = world.outcomeTotals()
      const refused = await store.listRefused(project.id, '2026-11-01')
      const left = refused.reduce((sum, { count }) => sum + count, 0)
      return { sent: sentCount, found: stored + dropped + rejected + left, refused: left }
    },
  }
}

describe('an event quota', () => {
  it('is used up by each stored event once, despite retries and crashes, and not by imports', async t => {
    const { world, captures, setQuotas, send, process, isOver, sums, balance } = await start(t)
    const [first, second] = captures as [CaptureService, CaptureService]
    setQuotas({ events: 5 })
    await send(first, [{ n: 1 }, { n: 2 }, { n: 2 }])
    await send(second, [{ n: 1 }, { n: 3, name: '$exception' }, { n: 4, name: '$ai_span' }])
    await send(first, [{ n: 50 }, { n: 51 }, { n: 52 }], true)
    await process({ dying: true })
    const used = { eventsCharged: 4, exceptions: 1, llmEvents: 1, surveyResponses: 0, recordings: 0 }
    const { projectId: _, ...counted } = (await sums())!
    assert.deepEqual(counted, used)
    assert.equal(isOver(0), false)

    await send(second, [{ n: 5 }, { n: 5 }])
    await process()
    await eventually(async () => isOver(0) && isOver(1), { what: 'the quota' })

    for (const capture of captures) await send(capture, [{ n: 6 }, { n: 7, name: '$exception' }])
    await send(first, [{ n: 53 }], true)
    await process()
    assert.deepEqual(
      [...world.events.rows.values()].map(({ uuid }) => Number.parseInt(uuid.slice(-2), 16)).toSorted((a, b) => a - b),
      [1, 2, 3, 4, 5, 7, 50, 51, 52, 53],
    )
    const { sent, found, refused } = await balance()
    assert.deepEqual([found, refused], [sent, 2])
  })
})
