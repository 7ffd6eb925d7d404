// The durable log between a client's 200 and the worker. It consists of streams, each an ordered sequence of records; a
// record's offset is its place in its stream. Offsets ascend. Some may never be used: only the log knows whether an offset
// without a record has lost its record or never had one.

import type { LogStream, RecordAt, StreamInfo, Traffic } from '#core/events/log-stream.ts'
import type { EncodedRecords } from '#core/log/record-codec.ts'

export type { EncodedRecords }

export interface EventLogWriter {
  /**
   * Appends encoded records (`core/log/record-codec.ts`); the writer adds their checksums. Resolves only when all of
   * them are durable. Records of one project and distinct id go to one stream, in the order of arrival. Calls may
   * overlap; the writer commits queued records together. The call takes ownership of the bytes.
   * @throws PortError `full` when the log or this kind of traffic is at its limit; `unavailable` when the log cannot be
   *   written or its queue is full; `timeout` when the outcome is unknown. After an error, some of the records may be
   *   stored; appending them again does no harm, since a repeat counts once.
   */
  append(traffic: Traffic, records: EncodedRecords): Promise<void>
  /**
   * The condition that an append would most likely meet now. Use it to report readiness, not to decide whether to append.
   */
  getCondition(): LogCondition
  /** How many records wait for their append to resolve, by stream; leaves out records without a stream so far. */
  countWaitingRecords(): ReadonlyMap<LogStream, number>
  close(): Promise<void>
}

/** The part of a log that accepting events needs. */
export type EventLogAppender = Pick<EventLogWriter, 'append'>

/**
 * `full`: a limit is reached, and the reason names its setting; or the disk has no space left. `imports_full`: imports
 * have used up their share; live events are still accepted. `files_gone`: files with accepted records were removed or
 * replaced; nothing is accepted until a restart. `unavailable`: the last commit failed, or the log does not answer.
 * `reason` is a sentence for operators, without the full stop.
 */
export type LogCondition =
  | { readonly state: 'ok' }
  | { readonly state: 'full' | 'imports_full' | 'files_gone' | 'unavailable'; readonly reason: string }

/** Accepted records that the log no longer has. */
export interface MissingRecords {
  readonly recordCount: number
  /** The first offset of the missing records. */
  readonly fromOffset: number
  /** The first offset after the missing records. */
  readonly toOffset: number
  /** The damaged file that held them, if it still exists; null if it does not, or if the log has no files. */
  readonly file: string | null
}

/** Accepted records that can no longer be read: offsets from `fromOffset` up to, but not including, `toOffset`. */
export interface LogLoss {
  readonly stream: LogStream
  readonly fromOffset: number
  readonly toOffset: number
  /** The damaged file that held them, if it still exists. */
  readonly file: string | null
  readonly noticedAtMs: number
  /**
   * The bytes of a record that exists but fails its checksum, in base64, truncated to a limit. The record is also kept as a
   * reject.
   */
  readonly body?: string
  /** How many records are missing within the span, if the span has more offsets than that. */
  readonly recordCount?: number
}

export interface LogChunk extends StreamInfo {
  /** The records that were read; their offsets ascend, starting at or after the requested offset. */
  readonly records: readonly RecordAt[]
  /**
   * Where to continue reading; commit this offset. It may be far beyond the last record, and advance even without records.
   */
  readonly nextOffset: number
  /** Lost records, all of them before the first of `records`; null if none were lost. */
  readonly missing: MissingRecords | null
}

/** Records that were appended together, still encoded: iterate with `RecordCursor` of `core/log/record-decoder.ts`. */
export interface LogRun {
  /**
   * The offset of each record in `bytes`, ascending. The first run of an answer may begin before the requested offset.
   */
  readonly offsets: readonly number[]
  readonly bytes: Uint8Array
  readonly appendedAtMs: number
}

export interface LogRuns {
  readonly runs: readonly LogRun[]
  /** Where to continue reading. */
  readonly nextOffset: number
  /** As in `LogChunk`. */
  readonly missing: MissingRecords | null
}

export interface LogReadOptions {
  readonly recordCountMax: number
  readonly bytesMax: number
  /** How long to wait for the first record if there is none yet; no waiting when absent. */
  readonly maxWaitMs?: number
  /** Ends the wait early, with the records that have arrived until then. */
  readonly signal?: AbortSignal
}

export interface EventLogReader {
  /** All streams, the streams of live traffic first. @throws PortError */
  listStreams(): Promise<readonly StreamInfo[]>
  /**
   * Reads records from `fromOffset` on, in order: up to `recordCountMax`, and up to `bytesMax` but at least one record. If
   * there are no records, none is missing and `nextOffset` is unchanged, there is nothing to read yet. A record whose
   * checksum fails comes back as `damaged`. If `fromOffset` has no record, reading starts at the next record; records lost
   * in between are reported as `missing`, while offsets that never had a record are not. Reads of several streams may wait
   * at the same time. A stream that was never written to counts as empty at any offset, since it begins at the state's
   * position.
   * @throws PortError `corrupt` when stored records cannot be read at all (the cause names the file); `conflict` when
   * `fromOffset` is beyond the end of the log, since it then belongs to another log; `unavailable`: try again.
   */
  read(stream: LogStream, fromOffset: number, options: LogReadOptions): Promise<LogChunk>
  /**
   * Like `read`, for callers that skip most records: nothing is decoded or checked. Returns whole runs, at least one if
   * there is any, until they reach `bytesMax` together. A run has up to 1 MiB, or is a single record.
   */
  readRuns(stream: LogStream, fromOffset: number, bytesMax: number): Promise<LogRuns>
  /**
   * `endOffset`: the offset after the last record (`offset` itself if the stream was never written to).
   * `appendedAtMs`: when the first record from `offset` on was appended; null if there is none.
   */
  readStreamStatus(stream: LogStream, offset: number): Promise<{ endOffset: number; appendedAtMs: number | null }>
  /**
   * Adds losses to a list next to the log, for operators. A loss that is on the list is not added again.
   * @throws PortError
   */
  recordLosses(...losses: readonly LogLoss[]): Promise<void>
  /**
   * The kept losses, until an operator removes them. If there are too many, one sum per stream replaces the older losses.
   * @throws PortError
   */
  listLosses(): Promise<readonly LogLoss[]>
  /** The total number of missing records, at a cost that does not grow with the list. @throws PortError */
  countLostRecords(): Promise<number>
  close(): Promise<void>
}

// Keeps a log on our own disk small. Optional: a log that cleans up by itself has no such port.

/** How much space the log takes, and how far it may grow. */
export interface LogSpace {
  /** Size of all streams on the disk. */
  readonly bytes: number
  /** `Infinity` when there is no limit. */
  readonly bytesMax: number
  /** Free space on the log's disk. */
  readonly freeBytes: number
  /** How much must stay free. */
  readonly freeBytesMin: number
  /** Whether either limit is near, so that processed records should be deleted. */
  readonly isShort: boolean
  /** The imports' share of `bytes`, and its limit: the rest is reserved for live events. */
  readonly importBytes: number
  readonly importBytesMax: number
  /** Whether `importBytesMax` is near, so that processed imports should be deleted. */
  readonly areImportsShort: boolean
}

export interface EventLogRetention {
  /**
   * Deletes whole segments whose records are all before `offset` and were all appended before `olderThanMs` (epoch ms).
   * Never deletes anything else, and never the newest segment.
   */
  deleteBefore(stream: LogStream, offset: number, olderThanMs: number): Promise<{ deletedSegmentCount: number }>
  /** @throws PortError */
  measureSpace(): Promise<LogSpace>
  /**
   * While space is short, deletes segments like `deleteBefore` but regardless of their age, the oldest of all streams
   * first. While only imports are short of space, deletes only segments of imports.
   * @param processed for each stream, the offset before which all records have been processed.
   */
  reclaimSpace(processed: Readonly<Record<LogStream, number>>): Promise<{ deletedSegmentCount: number }>
  /**
   * Compresses complete segments, if the log can do so. Records and offsets stay; the reported time of an append may become
   * up to a second too early. Takes seconds of CPU time in another thread; `signal` ends it early, and the next call
   * continues.
   */
  compressSegments(signal: AbortSignal): Promise<{ compressedSegmentCount: number }>
}
