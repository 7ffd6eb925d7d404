// The worker process: what it reads, writes and repeats.

import { randomUUID } from 'node:crypto'
import { openSqliteChunkStore } from '#adapters/sqlite/sqlite-chunk-store.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { openSqliteLogReader } from '#adapters/sqlite-log/sqlite-log-reader.ts'
import type { Clock } from '#ports/clock.ts'
import { createLogRetention } from '#services/log-retention.ts'
import { createProcessor, type ProcessingState } from '#services/process-events.ts'
import { createUsageSchedule } from '#services/usage-schedule.ts'
import { createWorker, type Worker } from '#services/worker.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { Config } from '../config.ts'
import { logFolder, openEventStore } from './stores.ts'

export interface WorkerOptions {
  readonly config: Config
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Metrics
  readonly onStateChange: (state: ProcessingState) => void
}

/** On a state that `serve` has migrated. */
export async function composeWorker(options: WorkerOptions): Promise<Worker & { close(): Promise<void> }> {
  const { config, clock, logger, metrics, onStateChange } = options
  const { dataFolder } = config
  const state = openSqliteChunkStore({ dataFolder })
  const management = openSqliteManagementStore({ dataFolder, access: 'write' })
  const log = openSqliteLogReader({ folder: logFolder(config) })
  const events = openEventStore(config, clock)
  const usage = createUsageSchedule({ events, usage: management, clock, logger })
  const processor = createProcessor({
    log,
    state,
    events,
    geoip: null,
    clock,
    metrics,
    logger,
    ownerId: randomUUID(),
    onCommitted: (_lane, outcomes) => usage.noteProcessed(outcomes),
    onStateChange,
  })
  const retentionMs = config.logRetentionHours * 3_600_000
  const worker = createWorker({
    processor,
    events,
    schedules: [usage, createLogRetention({ log, positions: management, clock, logger, retentionMs })],
    logger,
    onStateChange,
    random: Math.random,
  })
  return {
    ...worker,
    close: async () => {
      await Promise.all([log.close(), events.close(), state.close(), management.close()])
    },
  }
}
