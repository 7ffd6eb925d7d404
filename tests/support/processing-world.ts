// A log, a state and an event store in memory, and workers that process them: for tests of what becomes of log records.

import type { TestContext } from 'node:test'
import { memoryChunkStore } from '#adapters/memory/memory-chunk-store.ts'
import {
  createMemoryEventLog,
  type MemoryEventLogOptions,
  type MemoryLogStorage,
  memoryLogStorage,
} from '#adapters/memory/memory-event-log.ts'
import { keyOf, memoryState } from '#adapters/memory/memory-state.ts'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { LogStream, Traffic } from '#core/events/log-stream.ts'
import { createProcessor, type ProcessorOptions } from '#services/processing/process-events.ts'
import { silentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { fixedClock } from './fixed-clock.ts'
import { aProject, encodedEvents, noSalts } from './values.ts'
import { WatchedEventStore } from './watched-event-store.ts'

let workerCount = 0

export interface WorldOptions extends Pick<MemoryEventLogOptions, 'gapAfter'> {
  readonly logStorage?: MemoryLogStorage
}

/** A log, a state and an event store that outlive any number of workers. */
export function aWorld({ logStorage = memoryLogStorage(), gapAfter }: WorldOptions = {}) {
  const clock = fixedClock('2026-11-01T00:00:00Z')
  const log = createMemoryEventLog({ storage: logStorage, nowMs: clock.nowMs, ...(gapAfter && { gapAfter }) })
  const state = memoryState([aProject({ geoipEnabled: false })])
  const events = new WatchedEventStore()
  const metrics = createMetrics()
  return {
    clock,
    log,
    state,
    events,
    metrics,
    append: (captured: readonly CapturedEvent[], traffic: Traffic = 'live') =>
      log.append(traffic, encodedEvents(captured)),
    person: (distinctId: string) =>
      state.persons.get(keyOf(1, state.mappings.get(keyOf(1, distinctId))?.personUuid ?? '')),
    /** Starts a worker. It ends with the test, or hangs at a fault point, as if its process were killed. */
    start(t: TestContext, over: Partial<ProcessorOptions> = {}) {
      workerCount++
      const stopping = new AbortController()
      const processor = createProcessor({
        log,
        logId: 'log',
        state: memoryChunkStore(state),
        events,
        geoip: null,
        saltOf: noSalts,
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
    async isProcessed(stream: LogStream = 'main') {
      const { endOffset } = await log.status(stream, 0)
      return (state.positions.get(stream)?.offset ?? 0) === endOffset
    },
    /** Accepted = stored + dropped + rejected. */
    outcomeTotals() {
      const totals = { stored: 0, dropped: 0, rejected: 0 }
      for (const { outcome, count } of state.outcomes) totals[outcome] += count
      return totals
    },
  }
}
