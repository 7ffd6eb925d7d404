// The embedded log's writer: the `EventLogWriter` port with one log-writer thread per stream. Most instances never import,
// so the import stream gets its thread, which takes 10 MiB, only with its first append.

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { LogStream, StreamInfo, Traffic } from '#core/events/log-stream.ts'
import type { EncodedRecords, EventLogWriter } from '#ports/log/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import { embeddedStreams, findStreamForTraffic } from './embedded-streams.ts'
import type { LogThreadOptions } from './log-writer-thread.ts'
import { damagedSegmentLine, listSegments } from './segment-file.ts'
import { StreamWriter, type SyncReport } from './stream-writer.ts'

export type { SyncReport as Synced }

export interface SqliteLogWriterOptions {
  /** `<PENNON_DATA>/log`; each stream has a folder in it. */
  readonly folder: string
  readonly nowMs: () => number
  /** Limit for all streams together: the value of `PENNON_LOG_MAX_BYTES`. */
  readonly logBytesMax: number
  /** `PENNON_MIN_FREE_BYTES`. */
  readonly minFreeBytes?: number
  /**
   * The state's position in each stream, 0 when absent. An empty stream begins at this position, since earlier records were
   * in another folder. A stream that ends earlier continues at this position, since the records in between are lost.
   */
  readonly firstOffsets?: Readonly<Record<LogStream, number>>
  readonly segmentBytesMax?: number
  /** Age at which a segment takes no more appends. Default: no limit. */
  readonly segmentAgeMs?: number
  /** Per stream: bytes that may wait for the disk before appends are refused. */
  readonly queueBytesMax?: number
  /** Per stream: appends that may wait before further ones are refused. */
  readonly queueCountMax?: number
  readonly commitTimeoutMs?: number
  /** How long a commit waits for commits of other processes. */
  readonly busyTimeoutMs?: number
  readonly logger?: Pick<Logger, 'error' | 'warn'>
  /** Called after each sync, before the appends that it covers resolve. */
  readonly onSynced?: (synced: SyncReport) => void
}

const MiB = 1024 * 1024
const worstFirst = ['files_gone', 'unavailable', 'full', 'imports_full'] as const
/** While appends fail, each stream logs one line per this interval. */
const complaintPauseMs = 60_000

/**
 * Opens the main stream and every stream that has segments, each in its thread.
 * @throws PortError `unavailable` when a stream cannot be opened; the message names the file or folder.
 */
export async function openSqliteLogWriter(options: SqliteLogWriterOptions): Promise<EventLogWriter> {
  try {
    mkdirSync(options.folder, { recursive: true, mode: 0o700 })
  } catch (cause) {
    throw new PortError('event-log', 'unavailable', cause)
  }
  const streams = new Map<LogStream, StreamWriter>(
    embeddedStreams.map(info => [info.stream, openStream(info, options)] as const),
  )
  const all = [...streams.values()]
  const close = async () => {
    await Promise.all(all.map(writer => writer.close()))
  }
  const opened = await Promise.allSettled(all.map(writer => writer.ready))
  const failed = opened.find(result => result.status === 'rejected')
  if (failed !== undefined) {
    await close()
    throw failed.reason
  }
  return {
    append: (traffic: Traffic, records: EncodedRecords) => streams.get(findStreamForTraffic(traffic))!.append(records),
    countWaitingRecords: () => new Map([...streams].map(([stream, writer]) => [stream, writer.waitingRecords])),
    getCondition: () => {
      const conditions = all.map(writer => writer.condition)
      const worst = worstFirst.find(state => conditions.some(condition => condition.state === state))
      return conditions.find(({ state }) => state === worst) ?? { state: 'ok' }
    },
    close,
  }
}

/** Whole segments are deleted, but never the newest, so a segment may take only a small part of the limit. */
function computeSegmentBytes(logBytesMax: number): number {
  return Math.min(256 * MiB, Math.max(1 * MiB, Math.floor(logBytesMax / 16)))
}

function openStream({ stream, traffic }: StreamInfo, options: SqliteLogWriterOptions): StreamWriter {
  const { folder, logger, onSynced } = options
  const workerData: LogThreadOptions = {
    folder,
    stream,
    traffic,
    firstOffset: options.firstOffsets?.[stream] ?? 0,
    segmentBytesMax: options.segmentBytesMax ?? computeSegmentBytes(options.logBytesMax),
    segmentAgeMs: options.segmentAgeMs ?? Number.POSITIVE_INFINITY,
    logBytesMax: options.logBytesMax,
    minFreeBytes: options.minFreeBytes ?? 0,
    busyTimeoutMs: options.busyTimeoutMs ?? 5_000,
  }
  return new StreamWriter({
    stream,
    startThread: () =>
      new Worker(new URL('./log-writer-thread.ts', import.meta.url), { workerData, name: `log-${stream}` }),
    // Existing segments may need the thread: to complete one, or to report a file that cannot be opened.
    isDormant: traffic === 'import' && listSegments(join(folder, stream)).length === 0,
    nowMs: options.nowMs,
    queueBytesMax: options.queueBytesMax ?? 64 * MiB,
    queueCountMax: options.queueCountMax ?? 20_000,
    commitTimeoutMs: options.commitTimeoutMs ?? 10_000,
    ...(onSynced && { onSynced }),
    ...(logger && {
      onTrouble: limitComplaints(line => logger.error({ stream }, `log: ${line}`)),
      onGap: ({ isLost, endOffset, firstOffset }) => {
        const gap = { stream, endOffset, firstOffset }
        if (isLost) logger.error(gap, 'accepted but unprocessed log records are missing: a log file was removed')
        else
          logger.warn(
            gap,
            'the log ends before the position of the state, as after restoring a backup: continuing from that position; records in between exist only in the stores',
          )
      },
      onDamage: ({ path, message }) => logger.error({ stream, path, message }, damagedSegmentLine),
    }),
  })
}

/** Logs a new reason at once and a repeated reason once a minute, since every commit may fail for the same reason. */
function limitComplaints(complain: (line: string) => void): (line: string) => void {
  let [told, fromMs] = ['', Number.NEGATIVE_INFINITY]
  return line => {
    if (line === told && performance.now() < fromMs) return
    told = line
    fromMs = performance.now() + complaintPauseMs
    complain(line)
  }
}
