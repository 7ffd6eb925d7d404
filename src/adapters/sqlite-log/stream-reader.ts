// Reads one stream's segments by offset, and removes or packs complete segments. No transaction stays open after a call, so
// that writers can always checkpoint.

import { statSync } from 'node:fs'
import type { RecordAt, StreamInfo } from '#core/events/log-stream.ts'
import { RecordCursor } from '#core/log/record-decoder.ts'
import type { LogChunk, LogReadOptions, LogRun, LogRuns, MissingRecords } from '#ports/log/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import type { FrameRow } from './compressed-segment.ts'
import { compressSegment, removeUnpackedDuplicate } from './compressed-segment.ts'
import { type OnDamage, OpenSegments } from './open-segments.ts'
import { toSegmentReadError } from './readable-segment.ts'
import { listSegments, removeSegmentFiles, type SegmentName } from './segment-file.ts'
import { readStreamMark } from './stream-mark.ts'

type Limits = Pick<LogReadOptions, 'recordCountMax' | 'bytesMax'>

/** The offset at which reading began, and the offset at which it continues. */
interface Walked {
  readonly firstOffset: number
  readonly nextOffset: number
}

export interface StreamReaderOptions {
  /**
   * Set only by the process that processes the log: a segment that SQLite cannot read is set aside, reported here, and read
   * page by page. In other processes, reading such a segment fails as `corrupt`.
   */
  readonly onDamage?: OnDamage
  /** Whether to leave all files unchanged, even files that a start would first repair. */
  readonly isAsFound?: boolean
  /** For tests: lists the segments in a stream's folder. */
  readonly list?: typeof listSegments
}

export class StreamReader {
  readonly #info: StreamInfo
  readonly #folder: string
  readonly #list: typeof listSegments
  readonly #open: OpenSegments
  /** The segments of the last listing, oldest first. */
  #segments: SegmentName[] = []
  /** Paths of plain segments that cannot be packed, since they are damaged. */
  readonly #unpackable = new Set<string>()

  /** @param folder the stream's folder. */
  constructor(info: StreamInfo, folder: string, options: StreamReaderOptions) {
    this.#info = info
    this.#folder = folder
    this.#list = options.list ?? listSegments
    this.#open = new OpenSegments(info.stream, options.onDamage ?? null, options.isAsFound === true ? 'look' : 'read')
  }

  read(fromOffset: number, limits: Limits): LogChunk {
    const { records, firstOffset, nextOffset } = this.#lookAgain(fromOffset, () => this.#readKnown(fromOffset, limits))
    return { ...this.#info, records, nextOffset, missing: this.#missingBetween(fromOffset, firstOffset) }
  }

  readRuns(fromOffset: number, bytesMax: number): LogRuns {
    const { runs, firstOffset, nextOffset } = this.#lookAgain(fromOffset, () =>
      this.#readKnownRuns(fromOffset, bytesMax),
    )
    return { runs, nextOffset, missing: this.#missingBetween(fromOffset, firstOffset) }
  }

  /**
   * Lists the segments only when the last listing has nothing after `fromOffset`.
   * @param readKnown reads from the segments of the last listing.
   */
  #lookAgain<T extends Walked>(fromOffset: number, readKnown: () => T): T {
    try {
      const known = readKnown()
      if (known.nextOffset > known.firstOffset && known.firstOffset === fromOffset) return known
    } catch (error) {
      if (!(error instanceof PortError && error.retryable)) throw error
    }
    // List the segments again: either the last listing ends at this offset, or one of its segments was deleted.
    this.#listAgain()
    let found = readKnown()
    if (found.firstOffset > fromOffset) {
      // While a large folder is listed, a file that is created may be missed although a later file is found. A second listing
      // has both files, so only a gap in both listings is real.
      this.#listAgain()
      found = readKnown()
    }
    if (found.nextOffset > found.firstOffset) return found
    const endOffset = this.#endOffset(fromOffset)
    if (fromOffset > endOffset) {
      const message = `position ${fromOffset} is beyond the end of the log in ${this.#folder}, which is at ${endOffset}`
      throw new PortError('event-log', 'conflict', new Error(message))
    }
    return found
  }

  status(offset: number): { endOffset: number; appendedAtMs: number | null } {
    this.#listAgain()
    return { endOffset: this.#endOffset(offset), appendedAtMs: this.#appendedAtMs(offset) }
  }

  /** When the first record from `offset` on was appended; null without such a record. */
  #appendedAtMs(offset: number): number | null {
    for (const segment of this.#segments.slice(this.#indexOf(offset))) {
      const from = Math.max(offset, segment.firstOffset)
      const appendedAtMs = this.#open.useUnlessDamaged(segment, opened => opened.appendedAtMs(from))
      if (appendedAtMs !== null) return appendedAtMs
    }
    return null
  }

  /** The index of the last segment that begins at or before `offset`; 0 if all segments begin later. */
  #indexOf(offset: number): number {
    return Math.max(
      0,
      this.#segments.findLastIndex(segment => segment.firstOffset <= offset),
    )
  }

  deleteSegmentsBefore(offset: number, olderThanMs: number): { deletedSegmentCount: number } {
    for (let deletedSegmentCount = 0; ; deletedSegmentCount++) {
      const oldest = this.oldestProcessed(offset)
      const isOld =
        oldest !== null &&
        (oldest.newestAppendMs < olderThanMs || this.#hasOldBehind(offset, oldest.newestAppendMs, olderThanMs))
      if (!isOld) return { deletedSegmentCount }
      oldest.delete()
    }
  }

  /** The oldest segment, if all of it is before `offset` and it is not the newest; null otherwise. */
  oldestProcessed(offset: number): { readonly newestAppendMs: number; delete(): void } | null {
    this.#listAgain()
    const [oldest] = this.#segments
    if (oldest === undefined || !this.#isProcessed(0, offset)) return null
    return {
      newestAppendMs: this.#newestAppendMs(oldest),
      delete: () => {
        this.#open.close(oldest.path)
        removeSegmentFiles(oldest.path)
      },
    }
  }

  /** A segment stamped by a clock that was ahead does not count as newer than the segments after it. */
  #hasOldBehind(offset: number, oldestMs: number, olderThanMs: number): boolean {
    const processed = this.#segments.filter((_, index) => this.#isProcessed(index, offset))
    // Timestamps usually ascend, so the newest processed segment usually decides, without a look at the others.
    if (this.#newestAppendMs(processed.at(-1)!) >= oldestMs) return false
    return processed.some(segment => this.#newestAppendMs(segment) < olderThanMs)
  }

  /** Whether a segment lies completely before `offset` and is not the newest segment. */
  #isProcessed(index: number, offset: number): boolean {
    const next = this.#segments[index + 1]
    return next !== undefined && next.firstOffset <= offset
  }

  /** Packs every segment but the newest, oldest first. A damaged segment stays unchanged; reading it reports the damage. */
  async pack(signal: AbortSignal): Promise<number> {
    let packedCount = 0
    for (const segment of this.#list(this.#folder).slice(0, -1)) {
      if (signal.aborted) break
      removeUnpackedDuplicate(this.#folder, segment)
      if (segment.form !== 'plain' || this.#unpackable.has(segment.path)) continue
      try {
        if (await compressSegment(this.#folder, segment, signal)) packedCount++
      } catch (error) {
        const failure = toSegmentReadError(error, segment.path)
        if (failure instanceof PortError && failure.code === 'corrupt') this.#unpackable.add(segment.path)
        else if (!(failure instanceof PortError)) throw new PortError('event-log', 'unavailable', error)
      }
    }
    return packedCount
  }

  close(): void {
    this.#open.closeAllBut([])
  }

  #readKnown(fromOffset: number, limits: Limits): Walked & { readonly records: readonly RecordAt[] } {
    const records: RecordAt[] = []
    let bytesLeft = limits.bytesMax
    const walked = this.#walk(fromOffset, (frame, from) => {
      const cursor = new RecordCursor(frame.body, frame.record_count)
      cursor.skip(from - frame.first_offset)
      let offset = from
      while (!cursor.done && records.length < limits.recordCountMax) {
        const bytes = cursor.nextBytes
        if (bytes > bytesLeft && records.length > 0) break
        bytesLeft -= bytes
        const record = cursor.next()
        records.push({
          offset: offset++,
          record: record.kind === 'damaged' ? { ...record, appendedAtMs: frame.appended_at_ms } : record,
        })
      }
      return {
        nextOffset: offset,
        isEnough: !cursor.done || records.length >= limits.recordCountMax || bytesLeft <= 0,
      }
    })
    return { records, ...walked }
  }

  #readKnownRuns(fromOffset: number, bytesMax: number): Walked & { readonly runs: readonly LogRun[] } {
    const runs: LogRun[] = []
    let bytesLeft = bytesMax
    const walked = this.#walk(fromOffset, frame => {
      const { first_offset: firstOffset, record_count: recordCount, appended_at_ms: appendedAtMs, body: bytes } = frame
      const offsets = Array.from({ length: recordCount }, (_, index) => firstOffset + index)
      runs.push({ offsets, appendedAtMs, bytes })
      bytesLeft -= bytes.length
      return { nextOffset: firstOffset + recordCount, isEnough: bytesLeft <= 0 }
    })
    return { runs, ...walked }
  }

  /**
   * Passes the frames from `fromOffset` on to `take`, which returns the offset to continue at and whether it has enough.
   * Goes through the segments of the last listing; all but the newest are complete, so the end of each leads to the next.
   */
  #walk(
    fromOffset: number,
    take: (frame: FrameRow, fromOffset: number) => { nextOffset: number; isEnough: boolean },
  ): Walked {
    let firstOffset = fromOffset
    let nextOffset = fromOffset
    let isEnough = false
    for (let index = this.#indexOf(fromOffset); index < this.#segments.length; index++) {
      const segment = this.#segments[index]!
      const before = this.#endOfSegment(index)
      if (segment.firstOffset > nextOffset) {
        if (nextOffset > firstOffset) break
        firstOffset = nextOffset = segment.firstOffset
      }
      try {
        this.#open.use(segment, opened => {
          for (const frame of opened.framesFrom(nextOffset)) {
            if (frame.first_offset + frame.record_count <= nextOffset) continue
            if (frame.first_offset >= before) break
            if (frame.first_offset > nextOffset) {
              // This frame follows a gap: stop before it, so that the caller sees the gap first.
              if (nextOffset > firstOffset) {
                isEnough = true
                break
              }
              firstOffset = nextOffset = frame.first_offset
            }
            const taken = take(frame, nextOffset)
            nextOffset = taken.nextOffset
            isEnough = taken.isEnough
            if (isEnough) break
          }
        })
      } catch (error) {
        // Return the records before the damage; the next call will reach the damage again and report it.
        if (nextOffset > firstOffset && error instanceof PortError && error.code === 'corrupt') break
        throw error
      }
      if (isEnough) break
    }
    return { firstOffset, nextOffset }
  }

  #listAgain(): void {
    this.#segments = this.#list(this.#folder)
    this.#open.closeAllBut(this.#segments)
  }

  /**
   * The first offset that the next segment has, or will have. The newest segment may have been set aside with records that
   * were never acknowledged: those are not part of the stream.
   */
  #endOfSegment(index: number): number {
    const next = this.#segments[index + 1]
    if (next !== undefined) return next.firstOffset
    return this.#segments[index]!.form === 'damaged' ? readStreamMark(this.#folder) : Number.POSITIVE_INFINITY
  }

  /** Every offset of this log had a record at some time, so each skipped offset is a lost record. */
  #missingBetween(fromOffset: number, toOffset: number): MissingRecords | null {
    if (toOffset === fromOffset) return null
    const segment = this.#segments.findLast(each => each.firstOffset <= fromOffset)
    const file = segment?.form === 'damaged' ? segment.path : null
    return { recordCount: toOffset - fromOffset, fromOffset, toOffset, file }
  }

  /** The end of the stream. A stream without segments begins and ends at `position`, the state's position in it. */
  #endOffset(position: number): number {
    const newest = this.#segments.at(-1)
    if (newest === undefined) return position
    const readMark = () => Math.max(readStreamMark(this.#folder), newest.firstOffset)
    if (newest.form === 'damaged') return readMark()
    return this.#open.useUnlessDamaged(newest, opened => opened.endOffset()) ?? readMark()
  }

  /**
   * When a segment's newest record was appended. For an unreadable segment: when its file was modified, so that it, too,
   * ages.
   */
  #newestAppendMs(segment: SegmentName): number {
    const newest = this.#open.useUnlessDamaged(segment, opened => opened.newestAppendMs())
    return newest ?? statSync(segment.path, { throwIfNoEntry: false })?.mtimeMs ?? 0
  }
}
