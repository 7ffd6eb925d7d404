// Appends to one stream: group commit into the newest segment, and the change to the next segment. Synchronous, because it
// runs in a separate thread (`log-writer-thread.ts`). Several processes append to the same stream at once, so it reads the
// next offset, and whether the segment is still open, only inside `BEGIN IMMEDIATE`.

import { existsSync } from 'node:fs'
import { addRecordChecksums } from '#core/log/record-codec.ts'
import { moveDamagedSegmentAside } from './move-damaged-segment.ts'
import { SalvagedSegment } from './salvage-segment.ts'
import {
  createSegment,
  createTruncatedSegmentError,
  ensureFolder,
  frameBytesMax,
  frameRecordsMax,
  isSegmentDamage,
  listSegments,
  removeAbandonedDrafts,
  type SegmentName,
} from './segment-file.ts'
import { readStreamMark, StreamMark } from './stream-mark.ts'
import { type Frame, WritableSegment } from './writable-segment.ts'

export interface StreamAppenderOptions {
  readonly streamFolder: string
  /**
   * The state's position in the stream. Nothing is appended below it, where the worker would never read it. A stream
   * without segments begins here; a stream that ends earlier (restored from an older copy) continues here.
   */
  readonly firstOffset: number
  /** A segment of this size or more takes no further commit. */
  readonly segmentBytesMax: number
  /**
   * Likewise, a segment whose first records are this old takes no further commit: the newest segment is never deleted, so
   * with little traffic it would keep its records for too long.
   */
  readonly segmentAgeMs: number
  /** How long to wait for other processes' commits. */
  readonly busyTimeoutMs: number
  /**
   * Called when this appender continued the stream beyond its end and no file can contain the records in between: the
   * records from `endOffset` on are lost. `isLost`: this log had accepted these records, as the stream's mark shows, and
   * they were not processed, so `endOffset` is at least the state's position. Otherwise an older copy of the log was
   * restored.
   */
  readonly onGap?: (gap: StreamGap) => void
  /**
   * Called when a segment was set aside because it is unreadable or lacks its end. The stream continues in another segment.
   */
  readonly onDamage?: (damage: { path: string; error: unknown }) => void
}

export interface StreamGap {
  readonly endOffset: number
  readonly firstOffset: number
  readonly isLost: boolean
}

/** The stream's files were removed or replaced: records appended to them would be lost when the process ends. */
export class FilesGoneError extends Error {
  constructor(path: string) {
    super(`${path} was removed or replaced while in use; put it back if you can, and restart Pennon`)
    this.name = 'FilesGoneError'
  }
}

const setAsideCountMax = 3

export class StreamAppender {
  readonly #options: StreamAppenderOptions
  readonly #mark: StreamMark
  #segment: WritableSegment | null = null
  /** Nothing is appended below this: the larger of the state's position and the stream's marked end. */
  #firstOffset: number
  /** The end of the stream according to its mark. */
  #markedOffset = 0
  /** Segments set aside in a row, which is limited: the appender must not continue on a disk that returns random bytes. */
  #setAsideCount = 0

  /** Opens the newest segment. Creates a segment if the stream has none, or if it ends before the position of the state. */
  constructor(options: StreamAppenderOptions) {
    this.#options = options
    this.#firstOffset = options.firstOffset
    ensureFolder(options.streamFolder)
    removeAbandonedDrafts(options.streamFolder, Date.now())
    this.#mark = new StreamMark(options.streamFolder)
    try {
      this.#append([], null)
    } catch (error) {
      this.#mark.close()
      throw error
    }
  }

  /**
   * Commits runs of encoded records in one transaction and returns when they are on the disk. @returns the offset of the
   * first record.
   * @throws CommitUnknownError, FilesGoneError; any other error (SqliteError, a system error) means that nothing was stored.
   */
  append(runs: readonly Uint8Array<ArrayBuffer>[], nowMs: number): number {
    return this.#append(runs.flatMap(divideIntoFrames), nowMs)
  }

  /** Finds out whether commits work, by a commit without records. @throws like `append`. */
  probe(): void {
    this.#append([], null, true)
  }

  /** Checks that appended records could be read later, and syncs the mark. @throws FilesGoneError, system errors. */
  check(): void {
    const segment = this.#segment
    const whereabouts = segment?.whereabouts()
    if (whereabouts === 'gone') throw new FilesGoneError(segment!.name.path)
    if (whereabouts === 'set_aside' || whereabouts === 'completed') this.#closeSegment()
    if (this.#segment === null) this.#append([], null)
    this.#mark.sync()
  }

  /** Ends the newest segment if it is old, without an append. @throws like `append`. */
  endOldSegment(nowMs: number): void {
    if (this.#segment !== null && this.#isOld(this.#segment, nowMs)) this.#append([], nowMs)
  }

  /** A segment with a future timestamp, from a clock that has since been set back, counts as old. */
  #isOld(segment: WritableSegment, nowMs: number): boolean {
    const beganAtMs = segment.beganAtMs()
    return beganAtMs !== undefined && Math.abs(nowMs - beganAtMs) >= this.#options.segmentAgeMs
  }

  /** @param nowMs null when there are no frames: then the segment's age does not matter. */
  #append(frames: readonly Frame[], nowMs: number | null, isProbe = false): number {
    try {
      for (;;) {
        const segment = this.#segment ?? this.#openNewest()
        this.#segment = segment
        segment.begin()
        // A process that was suspended may still have a file open that was deleted long ago; a commit to it would be lost.
        const whereabouts = segment.whereaboutsAtCommit()
        if (whereabouts === 'gone') throw new FilesGoneError(segment.name.path)
        if (whereabouts === 'set_aside' && this.#setAsideCount < setAsideCountMax) {
          this.#setAsideCount++
          this.#closeSegment()
          continue
        }
        const state = segment.state()
        if (state.nextOffset !== null) {
          segment.rollback()
          this.#moveOn(state.nextOffset)
        } else if (state.endOffset < this.#markedOffset && !segment.isEmpty(state)) {
          // Commits are missing: SQLite stops reading the side file at a bad checksum, and a write would overwrite all
          // pages after it.
          throw createTruncatedSegmentError(state.endOffset, this.#markedOffset)
        } else if (state.endOffset < this.#firstOffset) {
          segment.closeForGood(this.#firstOffset)
          // Records before the state's position were processed, so only later records are lost with the file.
          const lostFrom = Math.max(state.endOffset, this.#options.firstOffset)
          const isLost = this.#markedOffset > lostFrom
          const endOffset = isLost ? lostFrom : state.endOffset
          this.#options.onGap?.({ endOffset, firstOffset: this.#firstOffset, isLost })
          this.#moveOn(this.#firstOffset)
        } else if (
          state.endOffset > segment.name.firstOffset &&
          (state.bytes >= this.#options.segmentBytesMax || (nowMs !== null && this.#isOld(segment, nowMs)))
        ) {
          segment.closeForGood(state.endOffset)
          this.#moveOn(state.endOffset)
        } else {
          const endOffset = segment.insert(frames, state.endOffset, nowMs ?? 0)
          if (isProbe) segment.touch()
          segment.commit()
          this.#acknowledge(segment, endOffset)
          this.#setAsideCount = 0
          return state.endOffset
        }
      }
    } catch (error) {
      const name = this.#segment?.name
      const isToSetAside = name !== undefined && isSegmentDamage(error) && this.#setAsideCount < setAsideCountMax
      try {
        // This comes before the close, since the last connection to close a segment removes its side file, unless the
        // segment has been renamed.
        if (isToSetAside) this.#setAside(name, error)
      } finally {
        // A connection that failed once is not reused; closing it rolls back its transaction.
        this.#closeSegment()
      }
      if (!isToSetAside) throw error
      return this.#append(frames, nowMs, isProbe)
    }
  }

  /** Syncs a file to learn the system's error, which SQLite does not report. @returns null if there is no error. */
  diskError(): string | null {
    try {
      this.#mark.sync()
      return null
    } catch (error) {
      return (error as Error).message
    }
  }

  close(): void {
    this.#closeSegment()
    this.#mark.close()
  }

  /** Writes the mark before it checks the files' names; `move-damaged-segment.ts` relies on that order. */
  #acknowledge(segment: WritableSegment, endOffset: number): void {
    this.#mark.write(endOffset)
    switch (segment.whereaboutsAtCommit()) {
      case 'here':
      case 'completed':
        return
      case 'gone':
        throw new FilesGoneError(segment.name.path)
      case 'set_aside':
        throw new Error(
          `${segment.name.path} was damaged during a commit and has been set aside; the next commit uses another segment`,
        )
    }
  }

  #closeSegment(): void {
    const segment = this.#segment
    this.#segment = null
    segment?.close()
  }

  /**
   * Continues after a completed segment. The next segment may also be complete, and already packed or deleted: creating it
   * again would store records at used offsets.
   */
  #moveOn(nextOffset: number): void {
    this.#closeSegment()
    const { streamFolder, busyTimeoutMs } = this.#options
    const newest = listSegments(streamFolder).at(-1)
    const isBehind = newest !== undefined && newest.firstOffset >= nextOffset
    this.#segment = isBehind
      ? this.#openNewest()
      : new WritableSegment(createSegment(streamFolder, nextOffset), busyTimeoutMs)
  }

  #openNewest(): WritableSegment {
    const { streamFolder, firstOffset, busyTimeoutMs } = this.#options
    // The mark is read before the segment, so that a segment that ends before the mark has lost records.
    this.#markedOffset = readStreamMark(streamFolder)
    this.#firstOffset = Math.max(firstOffset, this.#markedOffset)
    const newest = listSegments(streamFolder).at(-1)
    const name = newest?.form === 'plain' ? newest : this.#createBehind(newest)
    try {
      return new WritableSegment(name, busyTimeoutMs)
    } catch (error) {
      // Another process may have set the segment aside since it was listed.
      const isGoneOrDamaged = isSegmentDamage(error) || !existsSync(name.path)
      if (!isGoneOrDamaged || this.#setAsideCount >= setAsideCountMax) {
        const message = `cannot open log segment ${name.path}: ${(error as Error).message}`
        throw Object.assign(new Error(message, { cause: error }), { code: (error as { code?: unknown }).code })
      }
      this.#setAside(name, error)
      return this.#openNewest()
    }
  }

  /** @param newest the newest segment, which takes no further records; undefined without segments. */
  #createBehind(newest: SegmentName | undefined): SegmentName {
    const { streamFolder } = this.#options
    if (newest?.form === 'damaged') this.#firstOffset = Math.max(this.#firstOffset, findSalvagedEnd(newest))
    return createSegment(streamFolder, this.#firstOffset)
  }

  #setAside(name: SegmentName, error: unknown): void {
    this.#setAsideCount++
    const path = moveDamagedSegmentAside(name)
    if (path !== null) this.#options.onDamage?.({ path, error })
  }
}

function findSalvagedEnd(segment: SegmentName): number {
  const salvaged = new SalvagedSegment(segment)
  try {
    return salvaged.endOffset()
  } finally {
    salvaged.close()
  }
}

/** Adds checksums to a run's records and divides the run into frames, without copying. */
function divideIntoFrames(run: Uint8Array<ArrayBuffer>): Frame[] {
  const places = addRecordChecksums(run)
  const frames: Frame[] = []
  let first = 0
  for (let next = 1; next < places.length; next++) {
    const isLast = next === places.length - 1
    const withFollowing = isLast ? 0 : places[next + 1]! - places[first]!
    if (!isLast && next - first < frameRecordsMax && withFollowing <= frameBytesMax) continue
    frames.push({ body: run.subarray(places[first], places[next]), recordCount: next - first })
    first = next
  }
  return frames
}
