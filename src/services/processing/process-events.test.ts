import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { LogRecord } from '#core/events/captured-event.ts'
import { PortError } from '#ports/port-error.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { memoryChunkStore } from '../../../tests/support/memory/memory-chunk-store.ts'
import { keyOf } from '../../../tests/support/memory/memory-state.ts'
import { aCapturedEvent, setEvent } from '../../../tests/support/values.ts'
import { aWorld } from '../../../tests/support/world/world.ts'
import type { FaultPoint } from './chunk-deps.ts'
import type { ProcessorOptions } from './process-events.ts'

describe('processing the log', () => {
  const steps: FaultPoint[] = ['read', 'load', 'apply', 'insert', 'commit']
  for (const crashAfter of steps)
    it(`stores every event once with correct persons if the worker dies after ${crashAfter}`, async t => {
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
      const first = await world.startAndKill(t, crashAfter)
      const rowsBefore = world.events.inserted.map(row => JSON.stringify({ ...row, flags: [...row.flags] }))
      world.start(t)
      await eventually(() => world.isProcessed())
      await world.send([setEvent(4, 'ada@example.com', { visits: 4 })])
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

  it('keeps the order of events of one distinct id across chunks', async t => {
    const world = aWorld()
    await world.process(
      t,
      Array.from({ length: 25 }, (_, n) => setEvent(n + 1, 'ada', { last: n })),
      { limits: { recordCountMax: 4 } },
    )
    const seen = world.events.inserted.map(row => (JSON.parse(row.personPropertiesJson) as { last: number }).last)
    assert.deepEqual(
      seen,
      Array.from({ length: 25 }, (_, n) => n),
    )
    assert.equal(world.person('ada')?.properties.last, 24)
  })

  it('reloads and recomputes a chunk whose persons were changed by another writer', async t => {
    const world = aWorld()
    await world.process(t, [setEvent(1, 'ada', { plan: 'free' })])
    const key = keyOf(1, world.person('ada')!.uuid)
    let interfered = false
    await world.process(t, [setEvent(2, 'ada', { plan: 'pro' })], {
      faultPoint: name => {
        if (name !== 'apply' || interfered) return
        interfered = true
        const person = world.state.persons.get(key)!
        world.state.persons.set(key, { ...person, properties: { ...person.properties, tag: 'x' }, version: 7 })
      },
    })
    assert.deepEqual([world.person('ada')?.properties.plan, world.person('ada')?.version], ['pro', 8])
    assert.equal(world.person('ada')?.properties.tag, 'x')
    assert.deepEqual(world.outcomeTotals(), { stored: 2, dropped: 0, rejected: 0 })
  })

  it('stops without writing if another worker claims the stream', async t => {
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

  it('continues from the position in a state that was restored from an older copy, without duplicates', async t => {
    const world = aWorld()
    const { processor } = await world.process(t, [setEvent(1, 'ada', { visits: 1 })])
    const copy = structuredClone(world.state)
    await world.send([setEvent(2, 'ada', { visits: 2 }), setEvent(3, 'bob', { visits: 1 })])
    Object.assign(world.state, structuredClone(copy))
    await eventually(() => world.isProcessed())
    assert.equal(world.person('bob')?.properties.visits, 1, 'without a new event')

    Object.assign(world.state, copy)
    await world.send([setEvent(4, 'ada', { last: true })])
    const { visits, last } = world.person('ada')!.properties
    assert.deepEqual([visits, last, world.person('bob')?.properties.visits], [2, true, 1])
    assert.deepEqual([...world.events.rows.values()].map(({ uuid }) => uuid.slice(-1)).sort(), ['1', '2', '3', '4'])
    assert.deepEqual(world.outcomeTotals(), { stored: 4, dropped: 0, rejected: 0 })
    assert.equal(processor.state(), 'ok')
  })

  it('repeats a chunk if the state was replaced by an older copy while the chunk was processed', async t => {
    const world = aWorld()
    await world.append([setEvent(1, 'ada', { visits: 1 })])
    let copy: typeof world.state | undefined
    world.start(t, {
      faultPoint: name => {
        if (name !== 'insert' || copy === undefined) return
        Object.assign(world.state, copy)
        copy = undefined
      },
    })
    await eventually(() => world.isProcessed())
    const older = structuredClone(world.state)
    await world.send([setEvent(2, 'ada', { visits: 2 })])
    copy = older
    await world.append([setEvent(3, 'bob', { visits: 1 })])
    await eventually(() => copy === undefined && world.isProcessed())
    assert.equal(world.person('ada')?.properties.visits, 2)
    assert.deepEqual(world.outcomeTotals(), { stored: 3, dropped: 0, rejected: 0 })
  })

  it('commits a gap in the log together with the records that follow it', async t => {
    const world = aWorld()
    await world.append(Array.from({ length: 6 }, (_, n) => setEvent(n + 1, 'ada', { last: n })))
    const log: ProcessorOptions['log'] = {
      ...world.log,
      read: (stream, fromOffset, limits) =>
        world.log.read(stream, Math.max(fromOffset, stream === 'main' ? 2 : 0), limits),
    }
    world.start(t, { log, limits: { rowCountMax: 0 } })
    await eventually(() => world.isProcessed())
    assert.deepEqual(world.outcomeTotals(), { stored: 4, dropped: 0, rejected: 0 })
  })

  it('stops even while idle if another worker owns the stream', async t => {
    const world = aWorld()
    const first = world.start(t)
    await eventually(() => first.processor.state() === 'ok')
    world.start(t)
    assert.equal(await first.ended, 'not_owner')
  })

  it('waits while the event store is down, still measures the lag, and loses nothing', async t => {
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

  it('looks up the charge times of late events once per chunk, and only if the chunk contains any', async t => {
    const world = aWorld()
    const dayMs = 86_400_000
    const late = aCapturedEvent(1, { capturedAtMs: aCapturedEvent(1).capturedAtMs + 2 * dayMs })
    await world.process(t, [aCapturedEvent(1), aCapturedEvent(2)])
    assert.equal(world.events.asked.length, 0)
    await world.send([late, aCapturedEvent(3), late])
    assert.deepEqual(
      world.events.asked.map(asked => asked.map(({ uuid }) => uuid)),
      [[late.uuid, late.uuid]],
    )
    const row = [...world.events.rows.values()].find(({ uuid }) => uuid === late.uuid)!
    assert.deepEqual([row.capturedAtMs, row.chargedAtMs], [late.capturedAtMs, aCapturedEvent(1).capturedAtMs])
  })

  it('waits while the event store cannot return the charge times of late events', async t => {
    const world = aWorld()
    world.events.isDown = true
    const { processor } = world.start(t)
    await world.append([aCapturedEvent(1, { capturedAtMs: aCapturedEvent(1).capturedAtMs + 86_400_000 })])
    await eventually(() => processor.state() === 'waiting_for_event_store' && world.events.asked.length >= 2)
    assert.equal(world.events.insertCount, 0)
    world.events.isDown = false
    await eventually(() => world.isProcessed())
    assert.equal(world.events.rows.size, 1)
  })

  it('reports an event store that receives rows but does not confirm them', async t => {
    const world = aWorld()
    const answers = Promise.withResolvers<void>()
    const events: ProcessorOptions['events'] = {
      findChargedTimes: identities => world.events.findChargedTimes(identities),
      findOverrides: ids => world.events.findOverrides(ids),
      findFlagCalls: calls => world.events.findFlagCalls(calls),
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

  it('stops immediately while it waits for a store', async t => {
    const world = aWorld()
    world.events.isDown = true
    const { stop, ended } = world.start(t)
    await world.append([aCapturedEvent(1)])
    await eventually(() => world.events.insertCount >= 1)
    stop()
    assert.equal(await ended, 'stopped')
    assert.equal(world.state.positions.get('main')?.offset, 0)
  })

  it('waits for the state, and does not repeat a commit whose answer was lost', async t => {
    const world = aWorld()
    await world.append([setEvent(1, 'ada', { plan: 'free' })])
    const store = memoryChunkStore(world.state)
    let loadFailures = 3
    let answersLost = 1
    const flaky: ChunkStore = {
      ...store,
      loadChunk: (subjects, textBytesMax) => {
        if (loadFailures-- > 0) throw new PortError('chunk-store', 'unavailable')
        return store.loadChunk(subjects, textBytesMax)
      },
      commitChunk: async (changes, position) => {
        const result = await store.commitChunk(changes, position)
        if (answersLost-- > 0) throw new PortError('chunk-store', 'timeout')
        return result
      },
    }
    world.start(t, { state: flaky })
    await eventually(() => world.isProcessed())
    await world.send([setEvent(2, 'ada', { plan: 'pro' })])
    assert.equal(world.person('ada')?.version, 1)
    assert.deepEqual(world.outcomeTotals(), { stored: 2, dropped: 0, rejected: 0 })
  })

  it('puts a damaged record into the reject store and continues', async t => {
    const world = aWorld()
    await world.append([aCapturedEvent(1), aCapturedEvent(2), aCapturedEvent(3)])
    const damaging: ProcessorOptions['log'] = {
      ...world.log,
      read: async (stream, fromOffset, limits) => {
        const chunk = await world.log.read(stream, fromOffset, limits)
        const damaged: LogRecord = { kind: 'damaged', body: Buffer.from('broken'), appendedAtMs: 1_790_000_000_123 }
        const records = chunk.records.map(at =>
          at.offset === 1 && stream === 'main' ? { offset: 1, record: damaged } : at,
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
    const body = Buffer.from('broken').toString('base64')
    assert.deepEqual(await world.log.listLosses(), [
      { stream: 'main', fromOffset: 1, toOffset: 2, file: null, noticedAtMs: world.clock.nowMs(), body },
    ])
    assert.deepEqual(world.outcomeTotals(), { stored: 2, dropped: 0, rejected: 1 })
  })

  it('counts records that are missing from the log, and continues after them', async t => {
    const world = aWorld()
    await world.append([aCapturedEvent(1), aCapturedEvent(2), aCapturedEvent(3), aCapturedEvent(4)])
    // Like a log whose file with the second and third record was removed.
    const withoutFile: ProcessorOptions['log'] = {
      ...world.log,
      read: async (stream, fromOffset, limits) => {
        if (fromOffset === 0) return world.log.read(stream, 0, { ...limits, recordCountMax: 1 })
        const chunk = await world.log.read(stream, Math.max(3, fromOffset), limits)
        const missing = { recordCount: 3 - fromOffset, fromOffset, toOffset: 3, file: null }
        return { ...chunk, missing: fromOffset < 3 ? missing : null }
      },
    }
    world.start(t, { log: withoutFile })
    await eventually(() => world.isProcessed())
    assert.deepEqual(world.outcomeTotals(), { stored: 2, dropped: 0, rejected: 0 })
    const { values } = await world.metrics.eventsProcessed.get()
    assert.equal(values.find(({ labels }) => labels.reason === 'log_record_missing')?.value, 2)
  })

  it('rejects an event whose properties cannot be read', async t => {
    const world = aWorld()
    await world.append([aCapturedEvent(1, { propertiesJson: '{"a":' }), aCapturedEvent(2, { propertiesJson: '[1]' })])
    await world.process(t, [aCapturedEvent(3)])
    const rejected = [...world.events.rejected.values()]
    assert.deepEqual(
      rejected.map(({ reason, uuid, body }) => [reason, uuid, body.slice(body.indexOf(',"properties":'))]),
      [
        ['processing_failed', aCapturedEvent(1).uuid, ',"properties":{"a":}'],
        ['processing_failed', aCapturedEvent(2).uuid, ',"properties":[1]}'],
      ],
    )
    assert.deepEqual(world.outcomeTotals(), { stored: 1, dropped: 0, rejected: 2 })
  })

  it('finds the one record that makes the state fail, sets it aside, and processes the remaining records', async t => {
    const world = aWorld()
    const captured = Array.from({ length: 20 }, (_, n) => aCapturedEvent(n + 1))
    await world.append(captured)
    const store = memoryChunkStore(world.state)
    const poisoned: ChunkStore = {
      ...store,
      loadChunk: (subjects, textBytesMax) => {
        if (subjects.distinctIds.some(({ distinctId }) => distinctId === 'person-13')) throw new TypeError('poison')
        return store.loadChunk(subjects, textBytesMax)
      },
    }
    world.start(t, { state: poisoned })
    await eventually(() => world.isProcessed())
    const [reject, ...others] = [...world.events.rejected.values()]
    assert.deepEqual([reject?.reason, reject?.uuid, others.length], ['processing_failed', aCapturedEvent(13).uuid, 0])
    assert.equal(world.events.rows.size, 19)
    assert.deepEqual(world.outcomeTotals(), { stored: 19, dropped: 0, rejected: 1 })
  })

  it('stores rows that the event store refuses as rejects, and counts them', async t => {
    const world = aWorld()
    world.events.refuses = row => row.distinctId === 'person-2'
    await world.process(t, [aCapturedEvent(1), aCapturedEvent(2), aCapturedEvent(3)])
    const [reject] = [...world.events.rejected.values()]
    assert.deepEqual([reject?.reason, reject?.uuid], ['row_refused', aCapturedEvent(2).uuid])
    assert.deepEqual(world.outcomeTotals(), { stored: 2, dropped: 0, rejected: 1 })
  })

  it('processes live events before imported ones', async t => {
    const world = aWorld()
    const imported = { lane: 'historical', historicalMigration: true, importJobId: 1 } as const
    await world.append(
      Array.from({ length: 30 }, (_, n) => aCapturedEvent(100 + n, imported)),
      'import',
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

  for (const traffic of ['live', 'import'] as const)
    it(`processes ${traffic} events immediately while it waits for live and imported events`, async t => {
      const world = aWorld()
      let waitingCount = 0
      const log: ProcessorOptions['log'] = {
        ...world.log,
        read: (stream, fromOffset, options) => {
          if (options.maxWaitMs !== undefined) waitingCount++
          return world.log.read(stream, fromOffset, options)
        },
      }
      world.start(t, { log, limits: { pollMs: 600_000 } })
      await eventually(() => waitingCount === 2)
      await world.append([aCapturedEvent(1)], traffic)
      await eventually(() => world.isProcessed(traffic === 'live' ? 'main' : 'historical'))
      assert.deepEqual(world.outcomeTotals(), { stored: 1, dropped: 0, rejected: 0 })
    })

  it('stops immediately while it waits for records', async t => {
    const { ended, stop, processor } = aWorld().start(t, { limits: { pollMs: 600_000 } })
    await eventually(() => processor.state() === 'ok')
    stop()
    assert.equal(await ended, 'stopped')
  })
})
