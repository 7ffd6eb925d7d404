// Composes the worker process: the stores it reads and writes, and the tasks it repeats.

import { randomBytes, randomUUID } from 'node:crypto'
import { systemTimers } from '#adapters/system/timers.ts'
import type { Config } from '#config.ts'
import type { LogStream, Traffic } from '#core/events/log-stream.ts'
import type { ProcessedUntil } from '#core/events/processed-until.ts'
import type { Clock } from '#ports/clock.ts'
import type { Geoip } from '#ports/geoip.ts'
import { createImplicitJobFinder } from '#services/imports/implicit-jobs.ts'
import { createImportWorker } from '#services/imports/run-import-work.ts'
import { createEventProcessor, type WorkerProcessingState } from '#services/processing/process-events.ts'
import { restrictClaimsToLog } from '#services/progress/bind-log.ts'
import { createDailySaltCache } from '#services/shared/daily-salts.ts'
import { runPeriodically, type Schedule } from '#services/shared/run-periodically.ts'
import { RunningCalls } from '#services/shared/running-calls.ts'
import { createSerialQueue } from '#services/shared/serial-queue.ts'
import { createFlagUsageRefresher } from '#services/worker/cache-flag-usage.ts'
import { createOldCountsCleanup } from '#services/worker/count-retention.ts'
import { createErasureWorker } from '#services/worker/erase-persons.ts'
import { createLogCleanup } from '#services/worker/log-retention.ts'
import { createSubjectMirrorUpdater } from '#services/worker/mirror-subjects.ts'
import { createEventStoreRestorer } from '#services/worker/restore-event-store.ts'
import { createRetentionClock } from '#services/worker/retention-clock.ts'
import { createScheduleLease } from '#services/worker/schedule-lease.ts'
import { createUsageSchedule } from '#services/worker/usage-schedule.ts'
import { createVisitorDataCleanup } from '#services/worker/visitor-retention.ts'
import { createWorker, type Worker } from '#services/worker/worker.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import { openLogReader, readLogId } from '../log/log.ts'
import { openWorkerState } from '../stores/state.ts'
import { openEventStore, openSalts } from '../stores/stores.ts'

export interface ComposeWorkerOptions {
  readonly config: Config
  readonly clock: Clock
  /** Null without a GeoIP database; events then get no location. */
  readonly geoip: Geoip | null
  readonly logger: Logger
  readonly metrics: Metrics
  readonly onStateChange: (state: WorkerProcessingState) => void
  readonly onProcessedUntil: (traffic: Traffic, until: ProcessedUntil) => void
}

export interface ComposedWorker extends Worker {
  /** To be called when something was appended to the log stream. Cheap; may be called at any time. */
  wakeUp(stream: LogStream): void
  close(): Promise<void>
}

/** Requires a state that `serve` has migrated. */
export async function composeWorker(options: ComposeWorkerOptions): Promise<ComposedWorker> {
  const { config, clock, geoip, logger, metrics, onStateChange, onProcessedUntil } = options
  const { chunks, management } = await openWorkerState(config, logger)
  const followedLogId = readLogId(config)
  const logId = followedLogId ?? ''
  const salts = await openSalts(config, logger)
  const dailySalts = createDailySaltCache({
    ...{ store: salts, clock, timers: systemTimers, randomBytes },
    monotonicNowMs: () => performance.now(),
  })
  const { saltOf } = dailySalts
  const log = openLogReader(config, { damageLogger: logger })
  const events = openEventStore(config, clock)
  // The owner's id is the id of the log: it survives a restart, and no other worker has it, since one worker processes the
  // log of a data folder.
  const lease = createScheduleLease({ owners: management, ownerId: logId, clock })
  const mayRun = lease.isOurs
  const toLeasedTask = ({ round, everyMs, what }: Schedule) => ({
    run: (signal: AbortSignal) => runPeriodically(round, { everyMs, what, logger, signal, mayRun }),
  })
  const retentionClock = createRetentionClock({ clock, store: management, logger, mayRun })
  const usage = createUsageSchedule({
    ...{ events, usage: management, log, positions: management, clock },
    findLostSpans: () => keeper.findLostSpans(),
  })
  const flagUsage = createFlagUsageRefresher({ events, projects: management, clock, logger, mayRun })
  const mirror = createSubjectMirrorUpdater({ state: management, events, logger, newUuid: randomUUID, mayRun })
  const ownerId = randomUUID()
  const underWay = new RunningCalls()
  const serialize = createSerialQueue()
  const implicitJobs = createImplicitJobFinder({ jobs: management, clock })
  let hasOtherProjects = false
  const processor = createEventProcessor({
    log,
    logId,
    state: restrictClaimsToLog(followedLogId, chunks, management),
    events,
    implicitJobs,
    underWay,
    deferring: {
      projects: management,
      hasOtherProjects: async () => {
        hasOtherProjects ||= (await management.listProjectIds()).length > 1
        return hasOtherProjects
      },
    },
    geoip,
    saltOf,
    clock,
    metrics,
    logger,
    ownerId,
    onStateChange,
    onProcessedUntil,
    onChunkCommitted: mirror.wakeUp,
  })
  const keeper = createEventStoreRestorer({
    ...{ log, state: chunks, events, geoip, clock, metrics, logger, marks: management },
    logId,
    implicitJobs,
    saltOf,
    underWay,
    serialize,
    mayRun,
    rejectRetentionDays: config.rejectRetentionDays,
    // A ClickHouse server deletes expired rows by its own clock; the retention clock is for the embedded engine.
    expiryClock: config.clickhouseUrl === null ? retentionClock : clock,
    newUuid: randomUUID,
    random: Math.random,
    onRestoring: () => onStateChange(worker.state()),
  })
  const importWork = createImportWorker({
    ...{ state: chunks, jobs: management, events, log, clock, logger, ownerId },
    random: Math.random,
    retentionClock,
    underWay,
  })
  const erasures = createErasureWorker({
    ...{ state: management, events, log, logId, underWay, serialize, clock, logger, mayRun },
  })
  const retentionMs = config.logRetentionHours * 3_600_000
  const worker = createWorker({
    processor,
    events,
    keeper,
    housekeeping: [
      retentionClock,
      createLogCleanup({
        ...{ log, positions: management, clock: retentionClock, logger, retentionMs, mayRun },
        isHeld: () => !keeper.isChecked(),
      }),
      toLeasedTask(createVisitorDataCleanup({ salts, visitors: management, clock })),
    ],
    lease,
    schedules: [
      toLeasedTask(usage),
      mirror,
      flagUsage,
      importWork,
      toLeasedTask({
        everyMs: 3_600_000,
        what: 'deleting expired rows',
        round: () => events.deleteExpired({ nowMs: retentionClock.nowMs(), isTrusted: retentionClock.isTrusted() }),
      }),
      toLeasedTask(createOldCountsCleanup({ store: management, clock: retentionClock })),
      erasures,
    ],
    logger,
    onStateChange,
    random: Math.random,
  })
  return {
    ...worker,
    wakeUp: stream => log.wakeUp(stream),
    close: async () => {
      dailySalts.close()
      await Promise.all([log.close(), events.close(), chunks.close(), management.close(), salts.close()])
    },
  }
}
