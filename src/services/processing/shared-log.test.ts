// Tests processing on a log that resembles a shared one: several streams per kind of traffic, and offsets without records, as
// commit markers and compaction leave them. Such offsets must not count as a loss.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { StreamInfo } from '#core/events/log-stream.ts'
import { PortError } from '#ports/port-error.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { memoryChunkStore } from '../../../tests/support/memory/memory-chunk-store.ts'
import { memoryLogStorage } from '../../../tests/support/memory/memory-event-log.ts'
import { aCapturedEvent, noSalts, setEvent } from '../../../tests/support/values.ts'
import { aWorld } from '../../../tests/support/world/world.ts'
import type { FaultPoint } from './chunk-deps.ts'
import { restoreEvents } from './restore-events.ts'

const partitions: readonly StreamInfo[] = [
  { stream: 'main/0', traffic: 'live' },
  { stream: 'main/1', traffic: 'live' },
  { stream: 'main/2', traffic: 'live' },
  { stream: 'historical/0', traffic: 'import' },
]

function aSharedWorld() {
  const world = aWorld({ logStorage: memoryLogStorage(partitions), gapAfter: offset => (offset * 7) % 5 })
  return {
    ...world,
    areAllProcessed: async () => {
      for (const { stream } of partitions) if (!(await world.isProcessed(stream))) return false
      return true
    },
    missingCount: async () => {
      const { values } = await world.metrics.eventsProcessed.get()
      return values.find(({ labels }) => labels.reason === 'log_record_missing')?.value ?? 0
    },
  }
}

const events = Array.from({ length: 60 }, (_, n) => setEvent(n, `person-${n % 9}`, { last: n, [`n${n}`]: true }))

describe('processing a shared log', () => {
  const steps: (FaultPoint | null)[] = [null, 'read', 'load', 'apply', 'insert', 'commit']
  for (const crashAfter of steps)
    it(`stores every event once, in order for each person, if killed after ${crashAfter}`, async t => {
      const world = aSharedWorld()
      await world.append(events)
      const imported = { lane: 'historical', historicalMigration: true, importJobId: 1 } as const
      await world.append([aCapturedEvent(100, imported), aCapturedEvent(101, imported)], 'import')
      let [isCrashed, passings] = [false, 0]
      // Few enough rows that chunks are halved, and few enough records that a stream takes several chunks.
      const limits = { rowCountMax: 3, recordCountMax: 8 }
      if (crashAfter !== null) {
        world.start(t, {
          limits,
          faultPoint: name => {
            if (name !== crashAfter || ++passings !== 3) return
            isCrashed = true
            return new Promise<void>(() => {})
          },
        })
        await eventually(() => isCrashed)
      }
      world.start(t, { limits })
      await eventually(world.areAllProcessed)
      assert.deepEqual(world.outcomeTotals(), { stored: 62, dropped: 0, rejected: 0 })
      assert.equal(world.events.rows.size, 62)
      for (let person = 0; person < 9; person++) {
        const theirs = events.map((_, n) => n).filter(n => n % 9 === person)
        const { last, ...seen } = world.person(`person-${person}`)!.properties
        assert.equal(last, theirs.at(-1))
        for (const n of theirs) assert.equal(seen[`n${n}`], true)
      }
      assert.deepEqual([await world.log.listLosses(), await world.missingCount()], [[], 0])
      assert.deepEqual([...world.state.positions.keys()].sort(), partitions.map(({ stream }) => stream).sort())
    })

  it('finds and rejects records that make the state fail, in every stream', async t => {
    const world = aSharedWorld()
    await world.append(Array.from({ length: 40 }, (_, n) => aCapturedEvent(n)))
    const store = memoryChunkStore(world.state)
    const poisoned: ChunkStore = {
      ...store,
      loadChunk: (subjects, textBytesMax) => {
        if (subjects.distinctIds.some(({ distinctId }) => /^person-(7|8|9)$/.test(distinctId)))
          throw new TypeError('poison')
        return store.loadChunk(subjects, textBytesMax)
      },
    }
    world.start(t, { state: poisoned })
    await eventually(world.areAllProcessed)
    assert.deepEqual(world.outcomeTotals(), { stored: 37, dropped: 0, rejected: 3 })
    assert.deepEqual([...world.events.rejected.values()].map(({ distinctId }) => distinctId).sort(), [
      'person-7',
      'person-8',
      'person-9',
    ])
  })

  it('does not repeat a commit whose answer was lost after the position passed offsets without records', async t => {
    const world = aSharedWorld()
    await world.append(events)
    const store = memoryChunkStore(world.state)
    let answersLost = 3
    const flaky: ChunkStore = {
      ...store,
      commitChunk: async (changes, position) => {
        const result = await store.commitChunk(changes, position)
        if (answersLost-- > 0) throw new PortError('chunk-store', 'timeout')
        return result
      },
    }
    world.start(t, { state: flaky, limits: { recordCountMax: 5 } })
    await eventually(world.areAllProcessed)
    assert.deepEqual(world.outcomeTotals(), { stored: 60, dropped: 0, rejected: 0 })
  })

  it('restores exactly the records before a given offset of each stream', async t => {
    const world = aSharedWorld()
    await world.append(events)
    world.start(t)
    await eventually(world.areAllProcessed)
    world.events.rows.clear()
    const restore = (stream: string, toOffset: number) =>
      restoreEvents(
        stream,
        { fromOffset: 0, toOffset },
        {
          ...{
            log: world.log,
            logId: 'log',
            state: memoryChunkStore(world.state),
            events: world.events,
            geoip: null,
            saltOf: noSalts,
          },
          jobs: { findImportJob: async () => null },
          ...{ clock: world.clock, metrics: world.metrics, logger: createSilentLogger(), random: () => 0.5 },
        },
        new AbortController().signal,
      )
    let restoredCount = 0
    for (const { stream } of partitions)
      restoredCount += await restore(stream, world.state.positions.get(stream)!.offset)
    assert.deepEqual([restoredCount, world.events.rows.size], [60, 60])
    const { records } = await world.log.read('main/0', 0, { recordCountMax: 1_000, bytesMax: 1e9 })
    const middle = records[Math.floor(records.length / 2)]!.offset
    const count = await restore('main/0', middle)
    assert.equal(count, records.filter(({ offset }) => offset < middle).length)
  })
})
