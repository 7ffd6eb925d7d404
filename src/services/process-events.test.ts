import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { memoryChunkStore } from '#adapters/memory/memory-chunk-store.ts'
import { createMemoryEventLog } from '#adapters/memory/memory-event-log.ts'
import { keyOf, memoryState } from '#adapters/memory/memory-state.ts'
import type { CapturedEvent, LogLane, LogRecord } from '#core/events/captured-event.ts'
import type { ChunkStore } from '#ports/chunk-store.ts'
import type { EventLogReader } from '#ports/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import { silentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { aCapturedEvent, encodedEvents } from '../../tests/support/captured-events.ts'
import { eventually } from '../../tests/support/eventually.ts'
import { fixedClock } from '../../tests/support/fixed-clock.ts'
import { MemoryEventStore } from '../../tests/support/memory-event-store.ts'
import { aProject } from '../../tests/support/state-builders.ts'
import { createProcessor, type ProcessorOptions } from './process-events.ts'
import type { FaultPoint } from './process-one-chunk.ts'

let workerCount = 0

/** A log, a state and an event store that outlive any number of workers. */
function aWorld() {
  const clock = fixedClock('2026-11-01T00:00:00Z')
  const log = createMemoryEventLog({ nowMs: clock.nowMs })
  const state = memoryState([aProject({ geoipEnabled: false })])
  const events = new MemoryEventStore()
  const metrics = createMetrics()
  return {
    log,
    state,
    events,
    metrics,
    append: (captured: readonly CapturedEvent[], lane: LogLane = 'main') => log.append(lane, encodedEvents(captured)),
    person: (distinctId: string) =>
      state.persons.get(keyOf(1, state.mappings.get(keyOf(1, distinctId))?.personUuid ?? '')),
    /** Starts a worker; it ends with the test, or is left hanging by a fault point like a killed process. */
    start(t: TestContext, over: Partial<ProcessorOptions> = {}) {
      workerCount++
      const stopping = new AbortController()
      const processor = createProcessor({
        log,
        state: memoryChunkStore(state),
        events,
        geoip: null,
        clock,
        metrics,
        logger: silentLogger(),
        ownerId: `worker-${workerCount}`,
        random: () => 0.5,
        ...over,
        limits: { restMs: 0, pollMs: 20, ...over.limits },
      })
      const ended = processor.run(stopping.signal)
      t.after(() => stopping.abort())
      return { processor, ended, stop: () => stopping.abort() }
    },
    async isProcessed(lane: LogLane = 'main') {
      const { endOffset } = await log.status(lane, 0)
      return (state.positions.get(lane)?.offset ?? 0) === endOffset
    },
    /** Accepted = stored + dropped + rejected. */
    outcomeTotals() {
      const totals = { stored: 0, dropped: 0, rejected: 0 }
      for (const { outcome, count } of state.outcomes) totals[outcome] += count
      return totals
    },
  }
}

function setEvent(n: number, distinctId: string, set: object, over: Partial<CapturedEvent> = {}): CapturedEvent {
  return aCapturedEvent(n, { distinctId, propertiesJson: JSON.stringify({ n, $set: set }), ...over })
}

describe('processing the log', () => {
  const steps: FaultPoint[] = ['read', 'load', 'apply', 'insert', 'commit']
  for (const crashAfter of steps)
    it(`stores every event once and keeps persons right when the worker dies after ${crashAfter}`, async t => {
      const world = aWorld()
      await world.append([
        setEvent(1, 'ada', { visits: 1 }),
        setEvent(2, 'ada', { visits: 2, plan: 'free' }),
        aCapturedEvent(3, {
          name: '$identify',
          distinctId: 'ada@example.com',
          propertiesJson: '{"$anon_distinct_id":"ada"}',
        }),
      ])
      let crashed = false
      const first = world.start(t, {
        faultPoint: name => {
          if (name !== crashAfter) return
          crashed = true
          return new Promise<void>(() => {}) // a killed process goes no further
        },
      })
      await eventually(() => crashed)
      const rowsBefore = world.events.inserted.map(row => JSON.stringify({ ...row, flags: [...row.flags] }))
      world.start(t)
      await eventually(() => world.isProcessed())
      await world.append([setEvent(4, 'ada@example.com', { visits: 4 })])
      await eventually(() => world.isProcessed())
      assert.deepEqual([...world.events.rows.values()].map(({ uuid }) => uuid.slice(-1)).sort(), ['1', '2', '3', '4'])
      const person = world.person('ada')
      assert.equal(person?.uuid, world.person('ada@example.com')?.uuid)
      assert.deepEqual(person?.properties, { visits: 4, plan: 'free', $creator_event_uuid: aCapturedEvent(1).uuid })
      assert.equal(person?.isIdentified, true)
      assert.equal(person?.version, 3)
      assert.deepEqual(world.outcomeTotals(), { stored: 4, dropped: 0, rejected: 0 })
      const again = world.events.inserted.map(row => JSON.stringify({ ...row, flags: [...row.flags] }))
      if (crashAfter === 'insert') assert.deepEqual(again.slice(3, 6), rowsBefore, 'byte for byte')
      first.stop()
    })

  it('keeps the order of events of one distinct id, across chunks', async t => {
    const world = aWorld()
    await world.append(Array.from({ length: 25 }, (_, n) => setEvent(n + 1, 'ada', { last: n })))
    world.start(t, { limits: { recordCountMax: 4 } })
    await eventually(() => world.isProcessed())
    const seen = world.events.inserted.map(row => (JSON.parse(row.personPropertiesJson) as { last: number }).last)
    assert.deepEqual(
      seen,
      Array.from({ length: 25 }, (_, n) => n),
    )
    assert.equal(world.person('ada')?.properties.last, 24)
  })

  it('reloads and redoes a chunk whose persons changed meanwhile', async t => {
    const world = aWorld()
    await world.append([setEvent(1, 'ada', { plan: 'free' })])
    world.start(t)
    await eventually(() => world.isProcessed())
    const key = keyOf(1, world.person('ada')!.uuid)
    let interfered = false
    await world.append([setEvent(2, 'ada', { plan: 'pro' })])
    world.start(t, {
      faultPoint: name => {
        if (name !== 'apply' || interfered) return
        interfered = true
        const person = world.state.persons.get(key)!
        world.state.persons.set(key, { ...person, properties: { ...person.properties, tag: 'x' }, version: 7 })
      },
    })
    await eventually(() => world.isProcessed())
    assert.deepEqual([world.person('ada')?.properties.plan, world.person('ada')?.version], ['pro', 8])
    assert.equal(world.person('ada')?.properties.tag, 'x')
    assert.deepEqual(world.outcomeTotals(), { stored: 2, dropped: 0, rejected: 0 })
  })

  it('ends when another worker claims the lane, without writing', async t => {
    const world = aWorld()
    const first = world.start(t)
    await eventually(() => first.processor.state() === 'ok')
    const second = world.start(t)
    await eventually(() => second.processor.state() === 'ok')
    await world.append([aCapturedEvent(1)])
    assert.equal(await first.ended, 'not_owner')
    await eventually(() => world.isProcessed())
    assert.deepEqual(world.outcomeTotals(), { stored: 1, dropped: 0, rejected: 0 })
  })

  it('waits while the event store is down, goes on measuring the lag, and loses nothing', async t => {
    const world = aWorld()
    world.events.isDown = true
    const { processor } = world.start(t)
    await world.append([aCapturedEvent(1), aCapturedEvent(2)])
    await eventually(() => processor.state() === 'waiting_for_event_store' && world.events.insertCount >= 2)
    await eventually(async () => (await world.metrics.logLagRecords.get()).values[0]?.value === 2)
    assert.equal(world.state.positions.get('main')?.offset, 0)
    world.events.isDown = false
    await eventually(() => world.isProcessed())
    assert.equal(world.events.rows.size, 2)
    assert.equal(processor.state(), 'ok')
  })

  it('tells of an event store that takes rows and does not answer', async t => {
    const world = aWorld()
    const answers = Promise.withResolvers<void>()
    const events: ProcessorOptions['events'] = {
      insert: async rows => {
        await answers.promise
        return world.events.insert(rows)
      },
    }
    const { processor } = world.start(t, { events, limits: { slowStoreMs: 20 } })
    await world.append([aCapturedEvent(1)])
    await eventually(() => processor.state() === 'waiting_for_event_store')
    answers.resolve()
    await eventually(() => world.isProcessed())
    await eventually(() => processor.state() === 'ok')
  })

  it('stops at once while it waits for a store', async t => {
    const world = aWorld()
    world.events.isDown = true
    const { stop, ended } = world.start(t)
    await world.append([aCapturedEvent(1)])
    await eventually(() => world.events.insertCount >= 1)
    stop()
    assert.equal(await ended, 'stopped')
    assert.equal(world.state.positions.get('main')?.offset, 0)
  })

  it('waits for the state, and takes a commit whose answer was lost as made', async t => {
    const world = aWorld()
    await world.append([setEvent(1, 'ada', { plan: 'free' })])
    const store = memoryChunkStore(world.state)
    let loadFailures = 3
    let answersLost = 1
    const flaky: ChunkStore = {
      ...store,
      loadChunk: subjects => {
        if (loadFailures-- > 0) throw new PortError('chunk-store', 'unavailable')
        return store.loadChunk(subjects)
      },
      commitChunk: async (changes, position) => {
        const result = await store.commitChunk(changes, position)
        if (answersLost-- > 0) throw new PortError('chunk-store', 'timeout')
        return result
      },
    }
    world.start(t, { state: flaky })
    await eventually(() => world.isProcessed())
    await world.append([setEvent(2, 'ada', { plan: 'pro' })])
    await eventually(() => world.isProcessed())
    assert.equal(world.person('ada')?.version, 1)
    assert.deepEqual(world.outcomeTotals(), { stored: 2, dropped: 0, rejected: 0 })
  })

  it('puts a damaged record into the reject store and reads on', async t => {
    const world = aWorld()
    await world.append([aCapturedEvent(1), aCapturedEvent(2), aCapturedEvent(3)])
    const damaging: Pick<EventLogReader, 'read' | 'status'> = {
      status: world.log.status,
      read: async (lane, fromOffset, limits) => {
        const chunk = await world.log.read(lane, fromOffset, limits)
        const records = chunk.records.map(
          (record, index): LogRecord =>
            chunk.firstOffset + index === 1 && lane === 'main'
              ? { kind: 'damaged', body: Buffer.from('broken') }
              : record,
        )
        return { ...chunk, records }
      },
    }
    world.start(t, { log: damaging })
    await eventually(() => world.isProcessed())
    assert.deepEqual(
      [...world.events.rejected.values()].map(({ reason, body }) => [reason, body]),
      [['log_record_damaged', 'broken']],
    )
    assert.deepEqual(world.outcomeTotals(), { stored: 2, dropped: 0, rejected: 1 })
  })

  it('rejects an event whose properties cannot be read', async t => {
    const world = aWorld()
    await world.append([aCapturedEvent(1, { propertiesJson: '{"a":' }), aCapturedEvent(2, { propertiesJson: '[1]' })])
    await world.append([aCapturedEvent(3)])
    world.start(t)
    await eventually(() => world.isProcessed())
    const rejected = [...world.events.rejected.values()]
    assert.deepEqual(
      rejected.map(({ reason, uuid, body }) => [reason, uuid, body]),
      [
        ['processing_failed', aCapturedEvent(1).uuid, '{"a":'],
        ['processing_failed', aCapturedEvent(2).uuid, '[1]'],
      ],
    )
    assert.deepEqual(world.outcomeTotals(), { stored: 1, dropped: 0, rejected: 2 })
  })

  it('finds the one record that makes the state fail, sets it aside, and processes the others', async t => {
    const world = aWorld()
    const captured = Array.from({ length: 20 }, (_, n) => aCapturedEvent(n + 1))
    await world.append(captured)
    const store = memoryChunkStore(world.state)
    const poisoned: ChunkStore = {
      ...store,
      loadChunk: subjects => {
        if (subjects.distinctIds.some(({ distinctId }) => distinctId === 'person-13')) throw new TypeError('poison')
        return store.loadChunk(subjects)
      },
    }
    world.start(t, { state: poisoned })
    await eventually(() => world.isProcessed())
    const [reject, ...others] = [...world.events.rejected.values()]
    assert.deepEqual([reject?.reason, reject?.uuid, others.length], ['processing_failed', aCapturedEvent(13).uuid, 0])
    assert.equal(world.events.rows.size, 19)
    assert.deepEqual(world.outcomeTotals(), { stored: 19, dropped: 0, rejected: 1 })
  })

  it('rejects rows that the event store refuses, findable and counted', async t => {
    const world = aWorld()
    world.events.refuses = row => row.distinctId === 'person-2'
    await world.append([aCapturedEvent(1), aCapturedEvent(2), aCapturedEvent(3)])
    world.start(t)
    await eventually(() => world.isProcessed())
    const [reject] = [...world.events.rejected.values()]
    assert.deepEqual([reject?.reason, reject?.uuid], ['row_refused', aCapturedEvent(2).uuid])
    assert.deepEqual(world.outcomeTotals(), { stored: 2, dropped: 0, rejected: 1 })
  })

  it('takes live events before imported ones, and processes both', async t => {
    const world = aWorld()
    const imported = { lane: 'historical', historicalMigration: true, importJobId: 1 } as const
    await world.append(
      Array.from({ length: 30 }, (_, n) => aCapturedEvent(100 + n, imported)),
      'historical',
    )
    await world.append(Array.from({ length: 30 }, (_, n) => aCapturedEvent(n + 1)))
    world.start(t, { limits: { recordCountMax: 10 } })
    await eventually(async () => (await world.isProcessed()) && (await world.isProcessed('historical')))
    assert.deepEqual(
      world.events.inserted.map(({ lane }) => lane),
      [...Array<string>(30).fill('main'), ...Array<string>(30).fill('historical')],
    )
  })

  it('writes many new persons in several transactions', async t => {
    const world = aWorld()
    await world.append(Array.from({ length: 40 }, (_, n) => aCapturedEvent(n + 1)))
    const store = memoryChunkStore(world.state)
    const rowCounts: number[] = []
    const counting: ChunkStore = {
      ...store,
      commitChunk: (changes, position) => {
        rowCounts.push(changes.persons.length + changes.mappings.length)
        return store.commitChunk(changes, position)
      },
    }
    world.start(t, { state: counting, limits: { rowCountMax: 20 } })
    await eventually(() => world.isProcessed())
    assert.deepEqual(rowCounts, Array(4).fill(20))
    assert.deepEqual([world.events.inserted.length, world.state.persons.size], [40, 40])
  })

  it('wakes up for a nudge long before the next poll', async t => {
    const world = aWorld()
    const { processor } = world.start(t, { limits: { pollMs: 600_000 } })
    await eventually(() => processor.state() === 'ok')
    await world.append([aCapturedEvent(1)])
    processor.nudge('main')
    await eventually(() => world.isProcessed(), { timeoutMs: 5_000 })
  })
})
