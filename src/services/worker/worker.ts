// Runs a worker process from start to stop: waits until the event store can be written, checks that it has the expected rows,
// then processes the log and runs the schedules concurrently.

import type { EventStoreUpkeep } from '#ports/events/event-store-upkeep.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Processor, WorkerProcessingState } from '../processing/process-events.ts'
import { computeStoreBackOffMs, waitOrStop } from '../shared/wait-or-stop.ts'
import type { EventStoreRestorer } from './restore-event-store.ts'
import type { ScheduleLease } from './schedule-lease.ts'

export type Worker = ReturnType<typeof createWorker>

export interface WorkerOptions {
  readonly processor: Processor
  readonly events: Pick<EventStoreUpkeep, 'migrate'>
  readonly keeper: EventStoreRestorer
  /** Tasks like `schedules` that do not need the event store, so they run from the start. */
  readonly housekeeping?: readonly { run(signal: AbortSignal): Promise<void> }[]
  /** The lease on the schedules that one worker runs for all; released on stop. */
  readonly lease: Pick<ScheduleLease, 'leave'>
  /** Each schedule runs until its signal aborts. */
  readonly schedules: readonly { run(signal: AbortSignal): Promise<void> }[]
  readonly logger: Logger
  readonly onStateChange: (state: WorkerProcessingState) => void
  /** 0 ≤ x < 1, for jitter. */
  readonly random: () => number
}

/**
 * The database engine is started at the same time as this process and needs half a second, or several seconds on a slow
 * disk or a busy machine: log a line only if it needs more than about ten seconds.
 */
const quietAttempts = 15

export function createWorker(options: WorkerOptions) {
  const { processor, events, keeper, housekeeping = [], lease, schedules, logger, onStateChange, random } = options
  let isWaitingForStore = true
  return {
    state(): WorkerProcessingState {
      if (keeper.isRestoring()) return 'restoring_events'
      return isWaitingForStore ? 'waiting_for_event_store' : processor.state()
    },
    /** Runs until the signal aborts, or until another worker owns the log. */
    async run(signal: AbortSignal): Promise<'stopped' | 'not_owner'> {
      onStateChange('waiting_for_event_store')
      const ended = new AbortController()
      const both = AbortSignal.any([signal, ended.signal])
      const running = housekeeping.map(schedule => schedule.run(both))
      try {
        await retryPatiently(async () => {
          await migrateEvents()
          await keeper.checkAtStart(signal)
        }, signal)
        isWaitingForStore = false
        if (signal.aborted) return 'stopped'
        running.push(...[keeper, ...schedules].map(schedule => schedule.run(both)))
        const end = await processor.run(signal)
        ended.abort()
        await Promise.all(running)
        if (end === 'stopped') {
          await keeper.leave()
          await leaveSchedules()
        }
        return end
      } finally {
        ended.abort()
        await Promise.all(running)
      }
    },
  }

  async function migrateEvents(): Promise<void> {
    const beganAtMs = performance.now()
    const changes = await events.migrate()
    if (changes.length === 0) return
    logger.info(
      { changes, durationMs: Math.round(performance.now() - beganAtMs) },
      'event store tables migrated: processing the events that waited',
    )
  }

  async function leaveSchedules(): Promise<void> {
    try {
      await lease.leave()
    } catch (cause) {
      if (!(cause instanceof PortError)) throw cause
      logger.warn({ err: cause }, 'cannot release the schedules; another worker takes over when their lease expires')
    }
  }

  async function retryPatiently(task: () => Promise<void>, signal: AbortSignal): Promise<void> {
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        return await task()
      } catch (cause) {
        if (!(cause instanceof PortError)) throw cause
        if (attempt >= quietAttempts && (attempt - quietAttempts) % 20 === 0)
          logger.warn({ err: cause, attempt }, 'processing is waiting for the event store')
        await waitOrStop(Math.min(computeStoreBackOffMs(attempt, random()), 1_000), signal)
      }
    }
  }
}
