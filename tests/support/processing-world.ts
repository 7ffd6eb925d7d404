// What the worker's loop works on, in memory, and workers over it: for tests of what becomes of the log's records.

import type { TestContext } from 'node:test'
import { memoryChunkStore } from '#adapters/memory/memory-chunk-store.ts'
import { createMemoryEventLog } from '#adapters/memory/memory-event-log.ts'
import { keyOf, memoryState } from '#adapters/memory/memory-state.ts'
import type { CapturedEvent, LogLane } from '#core/events/captured-event.ts'
import { createProcessor, type ProcessorOptions } from '#services/processing/process-events.ts'
import { silentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { aCapturedEvent, encodedEvents } from './captured-events.ts'
import { fixedClock } from './fixed-clock.ts'
import { MemoryEventStore } from './memory-event-store.ts'
import { aProject } from './state-builders.ts'

let workerCount = 0

/** A log, a state and an event store that outlive any number of workers. */
export function aWorld() {
  const clock = fixedClock('2026-11-01T00:00:00Z')
  const log = createMemoryEventLog({ nowMs: clock.nowMs })
  const state = memoryState([aProject({ geoipEnabled: false })])
  const events = new MemoryEventStore()
  const metrics = createMetrics()
  return {
    clock,
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

export function setEvent(n: number, distinctId: string, set: object, over: Partial<CapturedEvent> = {}): CapturedEvent {
  return aCapturedEvent(n, { distinctId, propertiesJson: JSON.stringify({ n, $set: set }), ...over })
}
