// Tests when the worker defers a project, and what happens if it dies around that moment.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { memoryChunkStore } from '../../../tests/support/memory/memory-chunk-store.ts'
import { memoryDeferredProjects } from '../../../tests/support/memory/memory-deferred-projects.ts'
import { aCapturedEvent, aProject, noSalts, setEvent } from '../../../tests/support/values.ts'
import { aWorld } from '../../../tests/support/world/world.ts'
import type { ProcessorOptions } from './process-events.ts'
import { restoreEvents } from './restore-events.ts'

const heavyCount = 40
const largeText = 'x'.repeat(500_000)

/** The first event creates a person of 500 KB, and all others belong to that person. */
function eventOfLargePerson(n: number): CapturedEvent {
  return n === 0 ? setEvent(0, 'large', { text: largeText }) : aCapturedEvent(n, { distinctId: 'large' })
}

/** The first event creates a group of 500 KB, and all others change it. */
function eventOfLargeGroup(n: number): CapturedEvent {
  const $group_set = n === 0 ? { text: largeText } : { n }
  const properties = { $group_type: 'company', $group_key: 'large', $group_set }
  return aCapturedEvent(n, { name: '$groupidentify', propertiesJson: JSON.stringify(properties) })
}

/** Each event is large by itself. */
function largeEvent(n: number): CapturedEvent {
  return aCapturedEvent(n, { propertiesJson: JSON.stringify({ text: largeText }) })
}

/** Project 1 has had 40 events waiting for two seconds, and project 2 five events after them. */
async function aBacklog(over: { readonly waitingMs?: number; readonly eventOf?: (n: number) => CapturedEvent } = {}) {
  const { eventOf = eventOfLargePerson } = over
  const world = aWorld()
  world.state.projects.set(2, aProject({ id: 2, geoipEnabled: false }))
  for (let n = 0; n < heavyCount; n++) await world.append([eventOf(n)])
  for (let n = 0; n < 5; n++) await world.append([aCapturedEvent(100 + n, { projectId: 2, distinctId: 'small' })])
  world.clock.advance(over.waitingMs ?? 2_000)
  const deferring = { projects: memoryDeferredProjects(world.state), hasOtherProjects: async () => true }
  return {
    ...world,
    deferring,
    startWorker: (t: TestContext, more: Partial<ProcessorOptions> = {}) =>
      world.start(t, { deferring, ...more, limits: { recordCountMax: 10, ...more.limits } }),
    storedOf: (projectId: number) =>
      world.state.outcomes.reduce((sum, each) => sum + (each.projectId === projectId ? each.count : 0), 0),
  }
}

describe('a project that causes most of the events in a stream', () => {
  it('is deferred while other projects are processed, and released once it has caught up', async t => {
    const { startWorker, storedOf, state } = await aBacklog()
    let heavyBefore: number | null = null
    const ends: (string | number)[] = []
    startWorker(t, {
      faultPoint: name => {
        if (name === 'defer' && state.deferred.has('main')) ends.push('deferred')
        if (name === 'release') ends.push('released')
        if (heavyBefore === null && storedOf(2) === 5) heavyBefore = storedOf(1)
      },
    })
    await eventually(() => ends.includes('released'), { what: 'the release' })
    assert.deepEqual([storedOf(1), storedOf(2)], [heavyCount, 5])
    assert.ok(
      heavyBefore !== null && heavyBefore <= 20,
      `${heavyBefore} events of the heavy project came before the other project`,
    )
    assert.deepEqual(state.deferred, new Map())
  })

  it('takes turns with imports while it is deferred', async t => {
    const { startWorker, storedOf, state, append } = await aBacklog()
    const ofImport = { projectId: 2, lane: 'historical', historicalMigration: true } as const
    for (let n = 0; n < 20; n++) await append([aCapturedEvent(200 + n, ofImport)], 'import')
    const turns: string[] = []
    const offsets = new Map<string, number>()
    startWorker(t, {
      faultPoint: name => {
        for (const [cursor, { offset }] of state.positions) {
          if (name === 'commit' && cursor !== 'main' && offset > offsets.get(cursor)!) turns.push(cursor)
          offsets.set(cursor, offset)
        }
      },
    })
    await eventually(() => storedOf(1) === heavyCount && storedOf(2) === 25, { what: 'the end' })
    assert.deepEqual(turns, ['main.deferred', 'historical', 'main.deferred', 'historical', 'main.deferred'])
  })

  it('is also deferred because of the cost of its groups', async t => {
    const { startWorker, storedOf, state } = await aBacklog({ eventOf: eventOfLargeGroup })
    const deferredAt: number[] = []
    startWorker(t, {
      faultPoint: name => {
        if (name === 'defer' && state.deferred.has('main')) deferredAt.push(storedOf(1))
      },
    })
    await eventually(() => storedOf(1) === heavyCount && storedOf(2) === 5, { what: 'the end' })
    assert.deepEqual(deferredAt.slice(0, 1), [10])
  })

  it('is deferred later if its events cost little to process, so that a short burst is not deferred', async t => {
    for (const [waitingMs, isDeferred] of [
      [2_000, false],
      [11_000, true],
    ] as const) {
      const { startWorker, storedOf, state } = await aBacklog({ waitingMs, eventOf: largeEvent })
      let wasDeferred = false
      startWorker(t, {
        faultPoint: () => {
          wasDeferred ||= state.deferred.size > 0
        },
      })
      await eventually(() => storedOf(1) === heavyCount && storedOf(2) === 5, { what: 'the end' })
      assert.equal(wasDeferred, isDeferred)
    }
  })

  it('is not deferred while no event waits for long, or if there is no other project', async t => {
    for (const over of [{ waitingMs: 500 }, { hasOthers: false }]) {
      const { startWorker, storedOf, state, deferring } = await aBacklog(over)
      let wasDeferred = false
      startWorker(t, {
        deferring: { ...deferring, hasOtherProjects: async () => !('hasOthers' in over) },
        faultPoint: () => {
          wasDeferred ||= state.deferred.size > 0
        },
      })
      await eventually(() => storedOf(2) === 5, { what: 'the end' })
      assert.equal(storedOf(1), heavyCount)
      assert.equal(wasDeferred, false)
    }
  })

  for (const gap of ['defer', 'release', 'commit', 'insert'] as const)
    it(`has each event stored once if workers die after “${gap}”`, async t => {
      const { startWorker, storedOf, state, deferring } = await aBacklog()
      for (const dieAt of [1, 2, 3]) {
        let seen = 0
        let hasDied = false
        const worker = startWorker(t, {
          faultPoint: name => {
            if (name !== gap || ++seen < dieAt) return
            hasDied = true
            return new Promise<void>(() => undefined)
          },
        })
        const isOver = () => storedOf(1) === heavyCount && storedOf(2) === 5
        await eventually(() => hasDied || isOver(), { what: 'the death of a worker' })
        if (!hasDied) worker.stop()
      }
      startWorker(t)
      await eventually(() => storedOf(1) === heavyCount && storedOf(2) === 5, { what: 'the end' })
      await eventually(async () => (await deferring.projects.findDeferral('main')) === null, { what: 'the release' })
      assert.equal(
        state.outcomes.reduce((sum, { count }) => sum + count, 0),
        heavyCount + 5,
      )
    })

  it('is reported as waiting separately from the other projects', async t => {
    const { startWorker, storedOf, clock } = await aBacklog()
    const reported: string[] = []
    const nowMs = clock.nowMs()
    startWorker(t, {
      limits: { reportEveryMs: 0 },
      onProcessedUntil: (traffic, { appendedBeforeMs, deferred }) => {
        if (traffic === 'live' && deferred !== null) reported.push(JSON.stringify([appendedBeforeMs, deferred]))
      },
    })
    await eventually(() => storedOf(1) === heavyCount, { what: 'the end' })
    const whileItWaits = JSON.stringify([nowMs, { projectIds: [1], appendedBeforeMs: nowMs - 2_000 }])
    assert.ok(reported.includes(whileItWaits), reported.join('\n'))
  })

  it('is not deferred when records are restored to the event store', async () => {
    const { log, state, events, clock, metrics } = await aBacklog()
    const deps = {
      ...{
        log,
        events,
        clock,
        metrics,
        state: memoryChunkStore(state),
        geoip: null,
        saltOf: noSalts,
        logger: createSilentLogger(),
      },
      ...{ random: () => 0.5, logId: 'log', jobs: { findImportJob: async () => null } },
    }
    const { endOffset } = await log.readStreamStatus('main', 0)
    const isLeftOut = (projectId: number, offset: number) => projectId === 1 && offset >= 10
    const range = { fromOffset: 0, toOffset: endOffset, isLeftOut }
    assert.equal(await restoreEvents('main', range, deps, new AbortController().signal), 15)
  })
})
