// The worker process: what it reads, writes and repeats.

import { randomUUID } from 'node:crypto'
import { readLogIdentity } from '#adapters/sqlite-log/log-identity.ts'
import type { LogLane } from '#core/events/captured-event.ts'
import type { Clock } from '#ports/clock.ts'
import type { Geoip } from '#ports/geoip.ts'
import { claimingOnlyFor } from '#services/processing/bind-log.ts'
import { createCountRetention } from '#services/processing/count-retention.ts'
import { createEventStoreKeeper } from '#services/processing/keep-event-store.ts'
import { createLogRetention } from '#services/processing/log-retention.ts'
import { createProcessor, type ProcessingState } from '#services/processing/process-events.ts'
import { createUsageSchedule } from '#services/processing/usage-schedule.ts'
import { createWorker, type Worker } from '#services/processing/worker.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { Config } from '../config.ts'
import { openWorkerState } from './state.ts'
import { logFolder, openEventStore, openLogReader } from './stores.ts'

export interface WorkerOptions {
  readonly config: Config
  readonly clock: Clock
  /** Null when there is no database of locations, so that events get none. */
  readonly geoip: Geoip | null
  readonly logger: Logger
  readonly metrics: Metrics
  readonly onStateChange: (state: ProcessingState) => void
  readonly onProcessedUntil: (lane: LogLane, appendedBeforeMs: number) => void
}

/** On a state that `serve` has migrated. */
export async function composeWorker(options: WorkerOptions): Promise<Worker & { close(): Promise<void> }> {
  const { config, clock, geoip, logger, metrics, onStateChange, onProcessedUntil } = options
  const { chunks, management } = await openWorkerState(config, logger)
  const logId = readLogIdentity(logFolder(config))
  const log = openLogReader(config, logger)
  const events = openEventStore(config, clock)
  const usage = createUsageSchedule({
    ...{ events, usage: management, log, positions: management, clock, logger },
    findLostSpans: () => keeper.findLostSpans(),
  })
  const processor = createProcessor({
    log,
    state: claimingOnlyFor(logId, chunks, management),
    events,
    geoip,
    clock,
    metrics,
    logger,
    ownerId: randomUUID(),
    onCommitted: (_lane, outcomes) => usage.noteProcessed(outcomes),
    onStateChange,
    onProcessedUntil,
  })
  const keeper = createEventStoreKeeper({
    ...{ log, state: chunks, events, geoip, clock, metrics, logger, marks: management },
    instance: logId ?? '',
    rejectRetentionDays: config.rejectRetentionDays,
    newUuid: randomUUID,
    random: Math.random,
    onRestoring: () => onStateChange(worker.state()),
  })
  const retentionMs = config.logRetentionHours * 3_600_000
  const worker: Worker = createWorker({
    processor,
    events,
    keeper,
    housekeeping: [
      createLogRetention({
        ...{ log, positions: management, clock, logger, retentionMs },
        isHeld: () => !keeper.isChecked(),
      }),
    ],
    schedules: [usage, createCountRetention({ store: management, clock, logger })],
    logger,
    onStateChange,
    random: Math.random,
  })
  return {
    ...worker,
    close: async () => {
      await Promise.all([log.close(), events.close(), chunks.close(), management.close()])
    },
  }
}
