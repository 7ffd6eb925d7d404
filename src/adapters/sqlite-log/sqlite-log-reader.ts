// The embedded log's reader: reads all streams while other processes write, and deletes processed segments.
// `stream-reader.ts` handles one stream.

import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LogStream } from '#core/events/log-stream.ts'
import { AppendWaits } from '#ports/log/append-waits.ts'
import type { EventLogReader, EventLogRetention } from '#ports/log/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import { measureLogSpace, type SpaceLimits } from './disk-space.ts'
import { embeddedStreamNames, embeddedStreams, findStreamForTraffic, findTrafficOfStream } from './embedded-streams.ts'
import { LostRecords } from './lost-records.ts'
import { StreamReader, type StreamReaderOptions } from './stream-reader.ts'

/** SQLite's busy_timeout would block the event loop, so a busy file is retried after a pause. */
const busyRetry = { count: 100, delayMs: 20 }

export interface SqliteLogReaderOptions extends StreamReaderOptions {
  /** `<PENNON_DATA>/log`; each stream has a folder in it. */
  readonly folder: string
  /** The value of `PENNON_LOG_MAX_BYTES`; no limit when absent. */
  readonly logBytesMax?: number
  /** The value of `PENNON_MIN_FREE_BYTES`; 0 when absent. */
  readonly minFreeBytes?: number
  /** The interval at which a waiting read polls when nothing wakes it up; a second when absent. */
  readonly pollMs?: number
}

export interface SqliteLogReader extends EventLogReader, EventLogRetention {
  /** Reports an append to the stream: waiting reads poll at once. */
  wakeUp(stream: LogStream): void
}

export function openSqliteLogReader(options: SqliteLogReaderOptions): SqliteLogReader {
  const { folder, logBytesMax = Number.POSITIVE_INFINITY, minFreeBytes = 0 } = options
  const limits: SpaceLimits = { folder, logBytesMax, minFreeBytes }
  const lost = new LostRecords(folder)
  const waits = new AppendWaits(options.pollMs ?? 1_000)
  const streams = new Map<LogStream, StreamReader>()
  const getStreamReader = (stream: LogStream): StreamReader => {
    const info = { stream, traffic: findTrafficOfStream(stream) }
    const known = streams.get(stream) ?? new StreamReader(info, join(folder, stream), options)
    streams.set(stream, known)
    return known
  }
  return {
    listStreams: async () => embeddedStreams,
    read: (stream, fromOffset, options) =>
      waits.read(stream, fromOffset, options, () =>
        retryPatiently(() => getStreamReader(stream).read(fromOffset, options)),
      ),
    wakeUp: stream => waits.wakeUp(stream),
    readRuns: (stream, fromOffset, bytesMax) =>
      retryPatiently(() => getStreamReader(stream).readRuns(fromOffset, bytesMax)),
    readStreamStatus: (stream, offset) => retryPatiently(() => getStreamReader(stream).status(offset)),
    deleteBefore: (stream, offset, olderThanMs) =>
      retryPatiently(() => getStreamReader(stream).deleteSegmentsBefore(offset, olderThanMs)),
    recordLosses: async (...losses) => rethrowAsPortErrors(() => lost.keep(losses)),
    listLosses: async () => rethrowAsPortErrors(() => lost.list()),
    countLostRecords: async () => rethrowAsPortErrors(() => lost.count()),
    measureSpace: async () => rethrowAsPortErrors(() => measureLogSpace(limits)),
    reclaimSpace: processed =>
      retryPatiently(() => {
        let deletedSegmentCount = 0
        for (let short = listStreamsWithoutSpace(limits); short.length > 0; short = listStreamsWithoutSpace(limits)) {
          const oldest = short
            .flatMap(stream => getStreamReader(stream).oldestProcessed(processed[stream] ?? 0) ?? [])
            .sort((one, other) => one.newestAppendMs - other.newestAppendMs)[0]
          if (oldest === undefined) break
          oldest.delete()
          deletedSegmentCount++
        }
        return { deletedSegmentCount }
      }),
    compressSegments: async signal => {
      let compressedSegmentCount = 0
      for (const stream of embeddedStreamNames) compressedSegmentCount += await getStreamReader(stream).pack(signal)
      return { compressedSegmentCount }
    },
    close: async () => {
      for (const stream of streams.values()) stream.close()
      streams.clear()
    },
  }
}

/** The streams whose processed segments must be deleted to free space. */
function listStreamsWithoutSpace(limits: SpaceLimits): readonly LogStream[] {
  const { isShort, areImportsShort } = measureLogSpace(limits)
  if (isShort) return embeddedStreamNames
  return areImportsShort ? [findStreamForTraffic('import')] : []
}

/** @throws PortError for system errors. */
function rethrowAsPortErrors<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if ((error as { syscall?: unknown }).syscall === undefined) throw error
    throw new PortError('event-log', 'unavailable', error)
  }
}

/**
 * Retries while a writer locks the file for recovery or clean-up, or when a segment was deleted after it was listed.
 */
async function retryPatiently<T>(attempt: () => T): Promise<T> {
  for (let attemptCount = 1; ; attemptCount++) {
    try {
      return attempt()
    } catch (error) {
      if (!(error instanceof PortError && error.retryable) || attemptCount >= busyRetry.count) throw error
      await sleep(busyRetry.delayMs)
    }
  }
}
