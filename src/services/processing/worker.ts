// A worker process from start to stop: waits until the event store can be written, sees that it has what it should have,
// processes, and keeps the schedules beside it running for as long.

import type { LogLane } from '#core/events/captured-event.ts'
import type { EventStore } from '#ports/event-store.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import { backOffMs, waitOrStop } from '../shared/back-off.ts'
import type { EventStoreKeeper } from './keep-event-store.ts'
import type { ProcessingState, Processor } from './process-events.ts'

export interface Worker {
  state(): ProcessingState
  nudge(lane: LogLane): void
  /** Until the signal, or until another worker owns the log. */
  run(signal: AbortSignal): Promise<'stopped' | 'not_owner'>
}

export interface WorkerOptions {
  readonly processor: Processor
  readonly events: Pick<EventStore, 'migrate'>
  readonly keeper: EventStoreKeeper
  /** As `schedules`, and from the start on: what does not need the event store. */
  readonly housekeeping?: readonly { run(signal: AbortSignal): Promise<void> }[]
  /** Each runs until its signal. */
  readonly schedules: readonly { run(signal: AbortSignal): Promise<void> }[]
  readonly logger: Logger
  readonly onStateChange: (state: ProcessingState) => void
  /** 0 ≤ x < 1, for jitter. */
  readonly random: () => number
}

export function createWorker(options: WorkerOptions): Worker {
  const { processor, events, keeper, housekeeping = [], schedules, logger, onStateChange, random } = options
  let isWaitingForStore = true
  return {
    state: () => {
      if (keeper.isRestoring()) return 'restoring_events'
      return isWaitingForStore ? 'waiting_for_event_store' : processor.state()
    },
    nudge: lane => processor.nudge(lane),
    run: async signal => {
      onStateChange('waiting_for_event_store')
      const ended = new AbortController()
      const both = AbortSignal.any([signal, ended.signal])
      const running = housekeeping.map(schedule => schedule.run(both))
      try {
        await patiently(async () => {
          await events.migrate()
          await keeper.checkAtStart(signal)
        }, signal)
        isWaitingForStore = false
        if (signal.aborted) return 'stopped'
        running.push(...[keeper, ...schedules].map(schedule => schedule.run(both)))
        const end = await processor.run(signal)
        ended.abort()
        await Promise.all(running)
        if (end === 'stopped') await keeper.leave()
        return end
      } finally {
        ended.abort()
        await Promise.all(running)
      }
    },
  }

  async function patiently(task: () => Promise<void>, signal: AbortSignal): Promise<void> {
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        return await task()
      } catch (cause) {
        if (!(cause instanceof PortError)) throw cause
        // The engine starts beside this process and takes half a second: worth a line only when it takes much longer.
        if (attempt % 20 === 19) logger.warn({ err: cause, attempt }, 'processing waits for the event store')
        await waitOrStop(Math.min(backOffMs(attempt, random()), 1_000), signal)
      }
    }
  }
}
