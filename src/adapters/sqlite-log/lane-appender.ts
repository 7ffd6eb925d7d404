// Appends to one lane: group commit into the newest segment, and the step to the next one. Synchronous, because it runs
// in a thread of its own (`log-writer-thread.ts`). Several processes append to the same lane at once: what the next
// offset is, and whether a segment still takes records, is only ever answered inside `BEGIN IMMEDIATE`.

import type Database from 'better-sqlite3'
import { sealRecords } from '#core/log/record-codec.ts'
import {
  createSegment,
  ensureFolder,
  frameBytesMax,
  frameRecordsMax,
  listSegments,
  openSegment,
  removeAbandonedDrafts,
  type SegmentName,
} from './segment-file.ts'

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
  /** Told by the one appender that made the lane go on where the state stands: what it held from `endOffset` on is gone. */
  readonly onGap?: (gap: { endOffset: number; firstOffset: number }) => void
}

/** The commit itself failed: it may or may not be found after a restart. */
export class CommitUnknownError extends Error {
  constructor(cause: unknown) {
    super(`the commit's outcome is unknown: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    this.name = 'CommitUnknownError'
  }
}

/** Between two tries while another process commits. SQLite's own waiting soon sleeps 25–100 ms at a time. */
const busyDelayMs = { first: 0.2, max: 2 }
const neverNotified = new Int32Array(new SharedArrayBuffer(4))

export class LaneAppender {
  readonly #options: LaneAppenderOptions
  #segment: WritableSegment | null = null

  /** Opens the newest segment, or makes the first; makes the one that begins where the state stands if that is further on. */
  constructor(options: LaneAppenderOptions) {
    this.#options = options
    ensureFolder(options.laneFolder)
    removeAbandonedDrafts(options.laneFolder, Date.now())
    this.#segment = this.#openNewest()
    const { endOffset, nextOffset } = this.#segment.state()
    // A reader that stands further on would find a lane that ends too soon, until somebody appends.
    if (nextOffset !== null || endOffset < options.firstOffset) this.#append([], 0)
  }

  /**
   * Commits runs of encoded records in one transaction and returns when they are on the disk.
   * @returns the offset of the first one.
   * @throws CommitUnknownError; any other error (SqliteError, a system error) means that nothing was stored.
   */
  append(runs: readonly Uint8Array<ArrayBuffer>[], nowMs: number): number {
    return this.#append(runs.flatMap(framesOf), nowMs)
  }

  #append(frames: readonly Frame[], nowMs: number): number {
    const { firstOffset } = this.#options
    try {
      for (;;) {
        this.#segment ??= this.#openNewest()
        const segment = this.#segment
        segment.begin()
        const state = segment.state()
        if (state.nextOffset !== null) {
          segment.rollback()
          this.#moveTo(state.nextOffset)
        } else if (state.endOffset < firstOffset) {
          segment.closeForGood(firstOffset)
          this.#options.onGap?.({ endOffset: state.endOffset, firstOffset })
          this.#moveTo(firstOffset)
        } else if (state.bytes >= this.#options.segmentBytesMax && state.endOffset > segment.name.firstOffset) {
          segment.closeForGood(state.endOffset)
          this.#moveTo(state.endOffset)
        } else {
          segment.insert(frames, state.endOffset, nowMs)
          segment.commit()
          return state.endOffset
        }
      }
    } catch (error) {
      // A connection that failed once is not trusted again; closing it rolls back what it had begun.
      this.close()
      throw error
    }
  }

  close(): void {
    const segment = this.#segment
    this.#segment = null
    segment?.close()
  }

  #moveTo(firstOffset: number): void {
    this.close()
    const name = createSegment(this.#options.laneFolder, firstOffset)
    this.#segment = new WritableSegment(name, this.#options.busyTimeoutMs)
  }

  #openNewest(): WritableSegment {
    const { laneFolder, firstOffset, busyTimeoutMs } = this.#options
    const name = listSegments(laneFolder).at(-1) ?? createSegment(laneFolder, firstOffset)
    try {
      return new WritableSegment(name, busyTimeoutMs)
    } catch (cause) {
      throw new Error(`log segment ${name.path} cannot be opened: ${(cause as Error).message}`, { cause })
    }
  }
}

/** A run of records inside the bytes that came in. */
interface Frame {
  readonly body: Uint8Array
  readonly recordCount: number
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

class WritableSegment {
  readonly name: SegmentName
  readonly #db: Database.Database
  readonly #begin: Database.Statement
  readonly #commit: Database.Statement
  readonly #rollback: Database.Statement
  readonly #insert: Database.Statement
  readonly #end: Database.Statement
  readonly #next: Database.Statement
  readonly #pageCount: Database.Statement
  readonly #pageBytes: number
  readonly #busyTimeoutMs: number

  constructor(name: SegmentName, busyTimeoutMs: number) {
    this.name = name
    this.#busyTimeoutMs = busyTimeoutMs
    this.#db = openSegment(name.path, 'write', busyTimeoutMs)
    this.#begin = this.#db.prepare('BEGIN IMMEDIATE')
    this.#commit = this.#db.prepare('COMMIT')
    this.#rollback = this.#db.prepare('ROLLBACK')
    this.#insert = this.#db.prepare('INSERT INTO frames VALUES (?, ?, ?, ?)')
    this.#end = this.#db
      .prepare('SELECT first_offset + record_count FROM frames ORDER BY first_offset DESC LIMIT 1')
      .pluck()
    this.#next = this.#db.prepare('SELECT next_offset FROM segment').pluck()
    this.#pageCount = this.#db.prepare('PRAGMA page_count').pluck()
    this.#pageBytes = Number(this.#db.pragma('page_size', { simple: true }))
    // Only beginning ever waits, and it does so itself.
    this.#db.pragma('busy_timeout = 0')
  }

  /** Waits for its turn. @throws SqliteError `SQLITE_BUSY…` when that takes too long. */
  begin(): void {
    const giveUpAtMs = performance.now() + this.#busyTimeoutMs
    for (let delayMs = busyDelayMs.first; ; delayMs = Math.min(delayMs * 1.5, busyDelayMs.max)) {
      try {
        this.#begin.run()
        return
      } catch (error) {
        if (!isBusy(error) || performance.now() > giveUpAtMs) throw error
      }
      Atomics.wait(neverNotified, 0, 0, delayMs)
    }
  }

  rollback(): void {
    this.#rollback.run()
  }

  /** Holds for as long as the transaction that it is asked in. */
  state(): { endOffset: number; nextOffset: number | null; bytes: number } {
    return {
      endOffset: (this.#end.get() as number | undefined) ?? this.name.firstOffset,
      nextOffset: this.#next.get() as number | null,
      bytes: (this.#pageCount.get() as number) * this.#pageBytes,
    }
  }

  insert(frames: readonly Frame[], firstOffset: number, nowMs: number): void {
    let offset = firstOffset
    for (const frame of frames) {
      this.#insert.run(offset, frame.recordCount, nowMs, frame.body)
      offset += frame.recordCount
    }
  }

  /** From here on no process appends to this segment. Ends the transaction. */
  closeForGood(nextOffset: number): void {
    this.#db.prepare('UPDATE segment SET next_offset = ?').run(nextOffset)
    this.commit()
    // Leaves nothing in the side file, whoever still has the segment open. A reader that stands still must not hold up
    // appending: then the last one to close the file does it.
    this.#db.pragma('busy_timeout = 100')
    this.#db.pragma('wal_checkpoint(TRUNCATE)')
  }

  /** Returns when the operating system says that the commit is on the disk. */
  commit(): void {
    try {
      this.#commit.run()
    } catch (error) {
      // Without room the end of the commit is not there, and a busy file was not touched.
      if (isBusy(error) || (error as { code?: string }).code === 'SQLITE_FULL') throw error
      throw new CommitUnknownError(error)
    }
  }

  close(): void {
    this.#db.close()
  }
}

function isBusy(error: unknown): boolean {
  return String((error as { code?: unknown }).code).startsWith('SQLITE_BUSY')
}
