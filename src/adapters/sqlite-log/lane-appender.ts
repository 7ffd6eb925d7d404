// Appends to one lane: group commit into the newest segment, and the step to the next one. Synchronous, because it runs
// in a thread of its own (`log-writer-thread.ts`). Several processes append to the same lane at once: what the next
// offset is, and whether a segment still takes records, is only ever answered inside `BEGIN IMMEDIATE`.

import { sealRecords } from '#core/log/record-codec.ts'
import { LaneMark, readLaneMark } from './lane-mark.ts'
import { SalvagedSegment } from './salvage-segment.ts'
import {
  createSegment,
  ensureFolder,
  frameBytesMax,
  frameRecordsMax,
  isDamage,
  listSegments,
  removeAbandonedDrafts,
  type SegmentName,
} from './segment-file.ts'
import { setAside } from './set-aside.ts'
import { type Frame, WritableSegment } from './writable-segment.ts'

export interface LaneAppenderOptions {
  readonly laneFolder: string
  /**
   * Where the state stands in the lane: nothing is appended below it, since nobody would read it there. A lane without
   * segments begins here, one that ends before it (it came back from an older copy) goes on here.
   */
  readonly firstOffset: number
  /** A segment that has reached this takes no further commit. */
  readonly segmentBytesMax: number
  /** How long to wait for other processes' commits. */
  readonly busyTimeoutMs: number
  /**
   * Told by the one appender that made the lane go on further on than it ended: what it held from `endOffset` on is gone.
   * `isLost`: it had been accepted into this very log, as the lane's mark tells, which did not come from an older copy.
   */
  readonly onGap?: (gap: LaneGap) => void
  /** A segment that cannot be read any more was set aside; the lane goes on in another. */
  readonly onDamage?: (damage: { path: string; error: unknown }) => void
}

export interface LaneGap {
  readonly endOffset: number
  readonly firstOffset: number
  readonly isLost: boolean
}

/** The lane's files were removed or replaced: what is appended to them would be gone with the process. */
export class FilesGoneError extends Error {
  constructor(path: string) {
    super(`${path} was removed or replaced while it was in use; put it back if you can, and start Pennon again`)
    this.name = 'FilesGoneError'
  }
}

const setAsideCountMax = 3

export class LaneAppender {
  readonly #options: LaneAppenderOptions
  readonly #mark: LaneMark
  #segment: WritableSegment | null = null
  /** Nothing is appended below this: the further on of where the state stands and how far the lane had come. */
  #firstOffset: number
  /** How far the lane had come, by its mark alone. */
  #markedOffset = 0
  /** Segments set aside in a row: a disk that gives back something else each time is no place to go on. */
  #setAsideCount = 0

  /** Opens the newest segment, or makes the first; makes the one that begins where the state stands if that is further on. */
  constructor(options: LaneAppenderOptions) {
    this.#options = options
    this.#firstOffset = options.firstOffset
    ensureFolder(options.laneFolder)
    removeAbandonedDrafts(options.laneFolder, Date.now())
    this.#mark = new LaneMark(options.laneFolder)
    try {
      this.#append([], 0)
    } catch (error) {
      this.#mark.close()
      throw error
    }
  }

  /**
   * Commits runs of encoded records in one transaction and returns when they are on the disk.
   * @returns the offset of the first one.
   * @throws CommitUnknownError, FilesGoneError; any other error (SqliteError, a system error) means that nothing was stored.
   */
  append(runs: readonly Uint8Array<ArrayBuffer>[], nowMs: number): number {
    return this.#append(runs.flatMap(framesOf), nowMs)
  }

  /** Makes a commit without records that does everything another one does. @throws as `append` does. */
  probe(): void {
    this.#append([], 0, true)
  }

  /** Checks that what is appended now would be found again, and syncs the mark. @throws FilesGoneError, system errors. */
  check(): void {
    const segment = this.#segment
    const whereabouts = segment?.whereabouts()
    if (whereabouts === 'gone') throw new FilesGoneError(segment!.name.path)
    if (whereabouts === 'set_aside' || whereabouts === 'completed') this.#closeSegment()
    if (this.#segment === null) this.#append([], 0)
    this.#mark.sync()
  }

  #append(frames: readonly Frame[], nowMs: number, isProbe = false): number {
    try {
      for (;;) {
        const segment = this.#segment ?? this.#openNewest()
        this.#segment = segment
        segment.begin()
        // Somebody who stood still may have open what is gone long since: what it commits there would have to be refused.
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
        } else if (state.endOffset < this.#firstOffset) {
          segment.closeForGood(this.#firstOffset)
          const isLost = this.#markedOffset > state.endOffset
          this.#options.onGap?.({ endOffset: state.endOffset, firstOffset: this.#firstOffset, isLost })
          this.#moveOn(this.#firstOffset)
        } else if (state.bytes >= this.#options.segmentBytesMax && state.endOffset > segment.name.firstOffset) {
          segment.closeForGood(state.endOffset)
          this.#moveOn(state.endOffset)
        } else {
          const endOffset = segment.insert(frames, state.endOffset, nowMs)
          if (isProbe) segment.touch()
          segment.commit()
          this.#acknowledge(segment, endOffset)
          this.#setAsideCount = 0
          return state.endOffset
        }
      }
    } catch (error) {
      const path = this.#segment?.name
      // A connection that failed once is not trusted again; closing it rolls back what it had begun.
      this.#closeSegment()
      if (path === undefined || !isDamage(error) || this.#setAsideCount >= setAsideCountMax) throw error
      this.#setAside(path, error)
      return this.#append(frames, nowMs, isProbe)
    }
  }

  /** What the disk answers to a sync now, null when it works. SQLite itself only says that there was an error. */
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

  /** Writes the mark before it looks where the files are; `set-aside.ts` relies on that order. */
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
          `${segment.name.path} was set aside as damaged in the middle of a commit; the next one goes elsewhere`,
        )
    }
  }

  #closeSegment(): void {
    const segment = this.#segment
    this.#segment = null
    segment?.close()
  }

  /**
   * Goes on behind a completed segment. The next one may be complete as well, and packed or deleted already: making it anew
   * would store records at offsets that others have.
   */
  #moveOn(nextOffset: number): void {
    this.#closeSegment()
    const { laneFolder, busyTimeoutMs } = this.#options
    const newest = listSegments(laneFolder).at(-1)
    const isBehind = newest !== undefined && newest.firstOffset >= nextOffset
    this.#segment = isBehind
      ? this.#openNewest()
      : new WritableSegment(createSegment(laneFolder, nextOffset), busyTimeoutMs)
  }

  #openNewest(): WritableSegment {
    const { laneFolder, firstOffset, busyTimeoutMs } = this.#options
    // The mark is read before the segment, so that the segment holds all that the mark promises unless some of it is lost.
    this.#markedOffset = readLaneMark(laneFolder)
    this.#firstOffset = Math.max(firstOffset, this.#markedOffset)
    const newest = listSegments(laneFolder).at(-1)
    const name = newest?.form === 'plain' ? newest : this.#createBehind(newest)
    try {
      return new WritableSegment(name, busyTimeoutMs)
    } catch (error) {
      if (!isDamage(error) || this.#setAsideCount >= setAsideCountMax) {
        const message = `log segment ${name.path} cannot be opened: ${(error as Error).message}`
        throw Object.assign(new Error(message, { cause: error }), { code: (error as { code?: unknown }).code })
      }
      this.#setAside(name, error)
      return this.#openNewest()
    }
  }

  /** @param newest the newest segment, to which nobody appends any more; undefined when there is none. */
  #createBehind(newest: SegmentName | undefined): SegmentName {
    const { laneFolder } = this.#options
    if (newest?.form === 'damaged') this.#firstOffset = Math.max(this.#firstOffset, salvagedEnd(newest))
    return createSegment(laneFolder, this.#firstOffset)
  }

  #setAside(name: SegmentName, error: unknown): void {
    this.#setAsideCount++
    const path = setAside(name)
    if (path !== null) this.#options.onDamage?.({ path, error })
  }
}

function salvagedEnd({ path, firstOffset }: SegmentName): number {
  const salvaged = new SalvagedSegment(path, firstOffset)
  try {
    const last = salvaged.frames.at(-1)
    return last === undefined ? firstOffset : last.firstOffset + last.recordCount
  } finally {
    salvaged.close()
  }
}

/** Seals a run and cuts it into frames, without copying. */
function framesOf(run: Uint8Array<ArrayBuffer>): Frame[] {
  const places = sealRecords(run)
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
