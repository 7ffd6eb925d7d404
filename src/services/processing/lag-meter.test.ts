import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ProcessedUntil } from '#core/events/processed-until.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { memoryChunkStore } from '../../../tests/support/memory/memory-chunk-store.ts'
import { memoryDeferredProjects } from '../../../tests/support/memory/memory-deferred-projects.ts'
import { createMemoryEventLog } from '../../../tests/support/memory/memory-event-log.ts'
import { memoryState } from '../../../tests/support/memory/memory-state.ts'
import { aCapturedEvent, encodedEvents } from '../../../tests/support/values.ts'
import { createLagMeter } from './lag-meter.ts'
import { type StreamCursor, StreamCursors } from './stream-cursors.ts'

describe('the lag of a stream while a project is deferred', () => {
  it('is measured from that project’s own position, and fronts learn the progress of both positions', async () => {
    const startedMs = Date.parse('2026-11-01T00:00:00Z')
    const clock = fixedClock(startedMs)
    const log = createMemoryEventLog({ nowMs: clock.nowMs })
    for (const projectId of [2, 1, 2, 2]) {
      await log.append('live', encodedEvents([aCapturedEvent(1, { projectId })]))
      clock.advance(10_000)
    }
    // The first cursor has one record left, the second has three.
    const state = memoryState()
    state.positions.set('main', { ownerId: '', offset: 3, committedAtMs: null })
    state.positions.set('main.deferred', { ownerId: '', offset: 1, committedAtMs: null })
    state.deferred.set('main', [{ projectId: 1, fromOffset: 1 }])
    const store = memoryChunkStore(state)
    const cursors = new StreamCursors({ log, state: store, deferred: memoryDeferredProjects(state), ownerId: 'w' })
    await cursors.list()
    for (const cursor of cursors.all) await cursors.claim(cursor)
    await cursors.loadDeferral('main')

    const metrics = createMetrics()
    const reported: ProcessedUntil[] = []
    const onProcessedUntil = (traffic: string, until: ProcessedUntil) =>
      void (traffic === 'live' && reported.push(until))
    const lag = createLagMeter({ log, cursors, clock, metrics, onProcessedUntil })
    const gauges = async () => {
      const all = await Promise.all([metrics.logLagRecords.get(), metrics.logLagSeconds.get()])
      return all.map(({ values }) => values.find(({ labels }) => labels.stream === 'main')?.value)
    }
    await lag.measure()
    assert.deepEqual(await gauges(), [3, 30])
    assert.deepEqual(reported, [
      {
        appendedBeforeMs: startedMs + 30_000,
        deferred: { projectIds: [1], appendedBeforeMs: startedMs + 10_000 },
      },
    ])

    const [first, second] = cursors.all as [StreamCursor, StreamCursor]
    for (const cursor of [first, second]) {
      state.positions.set(cursor.name, { ownerId: 'w', offset: 4, committedAtMs: null })
      cursors.move(cursor, 4)
    }
    assert.ok(await cursors.releaseIfCaughtUp('main'))
    await lag.measure()
    assert.deepEqual(await gauges(), [0, 0])
    assert.deepEqual(reported.at(-1), { appendedBeforeMs: clock.nowMs(), deferred: null })
  })
})
