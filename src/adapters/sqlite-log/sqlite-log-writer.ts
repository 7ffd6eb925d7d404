// The embedded log's writing end: one log-writer thread per lane behind the `EventLogWriter` port. A lane that was never
// written to gets its thread, which is 10 MiB, with its first append: most instances never import.

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type LogLane, logLanes } from '#core/events/captured-event.ts'
import type { EncodedRecords, EventLogHealth, EventLogWriter } from '#ports/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import { LaneWriter, type Synced } from './lane-writer.ts'
import type { LogThreadOptions } from './log-writer-thread.ts'
import { damagedSegmentLine, listSegments } from './segment-file.ts'

export type { Synced }

export interface SqliteLogWriterOptions {
  /** `<PENNON_DATA>/log`; each lane has a folder in it. */
  readonly folder: string
  readonly nowMs: () => number
  /** All lanes together; what `PENNON_LOG_MAX_BYTES` says. */
  readonly logBytesMax: number
  /** What `PENNON_MIN_FREE_BYTES` says. */
  readonly minFreeBytes?: number
  readonly lanes?: readonly LogLane[]
  /**
   * Where the state stands in each lane: a lane that holds nothing yet begins there, since what came before lay in another
   * folder, and one that ends before it goes on there, since what it held from its end on is gone. 0 when absent.
   */
  readonly firstOffsets?: Readonly<Partial<Record<LogLane, number>>>
  readonly segmentBytesMax?: number
  /** Per lane: what may wait for the disk before appends are refused. */
  readonly queueBytesMax?: number
  /** Per lane, likewise. */
  readonly queueCountMax?: number
  readonly commitTimeoutMs?: number
  /** How long a commit waits for those of other processes. */
  readonly busyTimeoutMs?: number
  readonly logger?: Pick<Logger, 'error' | 'warn'>
  /** Called when a sync is known, before the appends that it covers resolve. */
  readonly onSynced?: (synced: Synced) => void
}

export interface SqliteLogWriter extends EventLogWriter, EventLogHealth {
  /** Records handed over and not answered yet. */
  waitingRecords(lane: LogLane): number
}

const MiB = 1024 * 1024
const worstFirst = ['files_gone', 'unavailable', 'full', 'imports_full'] as const
/** One line per lane and this long while appends fail. */
const complaintPauseMs = 60_000

/**
 * Starts the threads of the main lane and of every lane that holds something, and opens these.
 * @throws PortError `unavailable` when a lane cannot be opened; the message names the file or folder.
 */
export async function openSqliteLogWriter(options: SqliteLogWriterOptions): Promise<SqliteLogWriter> {
  try {
    mkdirSync(options.folder, { recursive: true, mode: 0o700 })
  } catch (cause) {
    throw new PortError('event-log', 'unavailable', cause)
  }
  const lanes = new Map((options.lanes ?? logLanes).map(lane => [lane, openLane(lane, options)]))
  const all = [...lanes.values()]
  const close = async () => {
    await Promise.all(all.map(lane => lane.close()))
  }
  const opened = await Promise.allSettled(all.map(lane => lane.ready))
  const failed = opened.find(result => result.status === 'rejected')
  if (failed !== undefined) {
    await close()
    throw failed.reason
  }
  return {
    append: (lane: LogLane, records: EncodedRecords) => lanes.get(lane)!.append(records),
    waitingRecords: lane => lanes.get(lane)!.waitingRecords,
    condition: () => {
      const conditions = all.map(lane => lane.condition)
      const worst = worstFirst.find(state => conditions.some(condition => condition.state === state))
      return conditions.find(({ state }) => state === worst) ?? { state: 'ok' }
    },
    close,
  }
}

/** What was processed goes by whole segments: the newest one, which never goes, may take only a little of the limit. */
function usualSegmentBytes(logBytesMax: number): number {
  return Math.min(256 * MiB, Math.max(1 * MiB, Math.floor(logBytesMax / 16)))
}

function openLane(lane: LogLane, options: SqliteLogWriterOptions): LaneWriter {
  const { folder, logger, onSynced } = options
  const workerData: LogThreadOptions = {
    folder,
    lane,
    firstOffset: options.firstOffsets?.[lane] ?? 0,
    segmentBytesMax: options.segmentBytesMax ?? usualSegmentBytes(options.logBytesMax),
    logBytesMax: options.logBytesMax,
    minFreeBytes: options.minFreeBytes ?? 0,
    busyTimeoutMs: options.busyTimeoutMs ?? 5_000,
  }
  return new LaneWriter({
    lane,
    startThread: () =>
      new Worker(new URL('./log-writer-thread.ts', import.meta.url), { workerData, name: `log-${lane}` }),
    // What is there may need the thread: a segment may have to be made whole, or a file that cannot be opened be reported.
    isDormant: lane !== 'main' && listSegments(join(folder, lane)).length === 0,
    nowMs: options.nowMs,
    queueBytesMax: options.queueBytesMax ?? 64 * MiB,
    queueCountMax: options.queueCountMax ?? 20_000,
    commitTimeoutMs: options.commitTimeoutMs ?? 10_000,
    ...(onSynced && { onSynced }),
    ...(logger && {
      onTrouble: complaining(line => logger.error({ lane }, `log: ${line}`)),
      onGap: ({ isLost, ...gap }) => {
        if (isLost)
          logger.error(gap, 'records of the log that were accepted are gone: a file of it was damaged or removed')
        else
          logger.warn(
            gap,
            'the log ends before the position of the state, as one that comes from a backup does: it goes on there, and what was in between is only in the stores',
          )
      },
      onDamage: ({ path, message }) => logger.error({ lane, path, message }, damagedSegmentLine),
    }),
  })
}

/** Logs at once, and then once a minute, since each commit may fail for the same reason. Another reason is logged at once. */
function complaining(complain: (line: string) => void): (trouble: { what: string }) => void {
  let [told, fromMs] = ['', Number.NEGATIVE_INFINITY]
  return ({ what }) => {
    if (what === told && performance.now() < fromMs) return
    told = what
    fromMs = performance.now() + complaintPauseMs
    complain(what)
  }
}
