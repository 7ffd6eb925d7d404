// Keeps a log on our own disk small. Optional: a log that does its own housekeeping has no such port.

import type { LogStream } from '#core/events/log-stream.ts'

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
  /** Either limit is near: processed records should be deleted. */
  readonly isShort: boolean
  /** The imports' share of `bytes`, and its limit: the rest is reserved for live events. */
  readonly importBytes: number
  readonly importBytesMax: number
  /** `importBytesMax` is near: processed imports should be deleted. */
  readonly areImportsShort: boolean
}

export interface EventLogRetention {
  /**
   * Deletes whole segments whose records are all before `offset` and were all appended before `olderThanMs` (epoch ms).
   * Never deletes anything else, and never the newest segment.
   */
  deleteBehind(stream: LogStream, offset: number, olderThanMs: number): Promise<{ deletedSegmentCount: number }>
  /** @throws PortError */
  measureSpace(): Promise<LogSpace>
  /**
   * While space is short, deletes segments like `deleteBehind` but whatever their age, the oldest of all streams first.
   * While only imports are short of space, deletes only theirs.
   * @param processed for each stream, the offset before which all records have been processed.
   */
  reclaimSpace(processed: Readonly<Record<LogStream, number>>): Promise<{ deletedSegmentCount: number }>
  /**
   * Makes complete segments smaller, where the log can. Records and offsets stay; the reported time of an append may
   * become up to a second too early. Takes seconds of another thread; `signal` ends it early, the next call continues.
   */
  pack(signal: AbortSignal): Promise<{ packedSegmentCount: number }>
}
