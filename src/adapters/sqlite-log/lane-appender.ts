// Appends to one lane: group commit into the newest segment, and the step to the next one. Synchronous, because it runs
// in a thread of its own (`log-writer-thread.ts`). Several processes append to the same lane at once: what the next
// offset is, and whether a segment still takes records, is only ever answered inside `BEGIN IMMEDIATE`.

import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import type Database from 'better-sqlite3'
import { sealRecords } from '#core/log/record-codec.ts'
import { LaneMark, readLaneMark } from './lane-mark.ts'
import { SalvagedSegment } from './salvage-segment.ts'
import {
  createSegment,
  DamageError,
  ensureFolder,
  frameBytesMax,
  frameRecordsMax,
  isDamage,
  listSegments,
  openSegment,
  removeAbandonedDrafts,
  type SegmentName,
} from './segment-file.ts'
import { setAside } from './set-aside.ts'

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

/** Somebody removed or replaced the lane's files: what is appended to them would be gone with the process. */
export class FilesGoneError extends Error {
  constructor(path: string) {
    super(`${path} was removed or replaced while it was in use; put it back if you can, and start Pennon again`)
    this.name = 'FilesGoneError'
  }
}

/** The commit itself failed: it may or may not be found after a restart. */
export class CommitUnknownError extends Error {
  constructor(cause: unknown) {
    super(`the commit's outcome is unknown: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    this.name = 'CommitUnknownError'
  }
}

const setAsideCountMax = 3

/** Between two tries while another process commits. SQLite's own waiting soon sleeps 25–100 ms at a time. */
const busyDelayMs = { first: 0.2, max: 2 }
const neverNotified = new Int32Array(new SharedArrayBuffer(4))

export class LaneAppender {
  readonly #options: LaneAppenderOptions
  readonly #mark: LaneMark
  #segment: WritableSegment | null = null
  /** Nothing is appended below: where the state stands, and how far the lane had come. */
  #firstOffset: number
  /** By the mark alone. */
  #markedOffset = 0
  /** In a row: a disk that gives back something else each time is no place to go on. */
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

  /** Commits without records, with all that a commit does. @throws as `append` does. */
  probe(): void {
    this.#append([], 0, true)
  }

  /** Whether what is appended now would be found again; and makes the mark last. @throws FilesGoneError, system errors. */
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

  /** What the disk answers to a sync now; null: nothing is wrong with it. SQLite tells no more than that there was an error. */
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

  /** First the mark, then the look: see `set-aside.ts`. */
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
   * From a completed segment. The one behind it may be complete as well, and packed or deleted already: one that was made in
   * its place would take records at offsets that others have.
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
    // Before the segment: it holds what the mark tells of, unless that is lost.
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

  /** @param newest what nobody appends to any more, if there is anything. */
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

type Whereabouts = 'here' | 'completed' | 'set_aside' | 'gone'

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
  /** The files as they were when they were opened: the segment and its side file, which holds the newest commits. */
  readonly #files: readonly { readonly path: string; readonly inode: number }[]
  readonly #folder: string
  /** As they were when all files had their names. */
  #folderInode = 0
  #folderChangedAtMs = 0

  constructor(name: SegmentName, busyTimeoutMs: number) {
    this.name = name
    this.#folder = dirname(name.path)
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
    this.#files = [name.path, `${name.path}-wal`, `${name.path}-shm`].map(path => ({ path, inode: inodeAt(path) }))
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
    const endOffset = (this.#end.get() as number | undefined) ?? this.name.firstOffset
    if (!Number.isSafeInteger(endOffset) || endOffset < this.name.firstOffset)
      throw new DamageError(`the last frame of ${this.name.path}`)
    return {
      endOffset,
      nextOffset: this.#next.get() as number | null,
      bytes: (this.#pageCount.get() as number) * this.#pageBytes,
    }
  }

  /** @returns the offset behind the last record. */
  insert(frames: readonly Frame[], firstOffset: number, nowMs: number): number {
    let offset = firstOffset
    for (const frame of frames) {
      this.#insert.run(offset, frame.recordCount, nowMs, frame.body)
      offset += frame.recordCount
    }
    return offset
  }

  /** Writes what is there already, so that a commit without records takes the way of all others. */
  touch(): void {
    this.#db.prepare('UPDATE segment SET first_offset = first_offset').run()
  }

  /** As `whereabouts`, at the price of one look: whatever happens to a name in a folder changes the folder's time. */
  whereaboutsAtCommit(): Whereabouts {
    const folder = statSync(this.#folder, { throwIfNoEntry: false })
    if (folder !== undefined && folder.ino === this.#folderInode && folder.mtimeMs === this.#folderChangedAtMs)
      return 'here'
    this.#folderInode = folder?.ino ?? 0
    this.#folderChangedAtMs = folder?.mtimeMs ?? 0
    return this.whereabouts()
  }

  /** Whether the files still have their names. A side file that was removed takes its commits along when all close it. */
  whereabouts(): Whereabouts {
    if (this.#files.every(({ path, inode }) => inodeAt(path) === inode)) return 'here'
    const { inode } = this.#files[0]!
    // What is complete is packed or deleted by the worker, whoever still has it open.
    if (inodeAt(this.name.path) === 0 && this.#next.get() !== null) return 'completed'
    const isSetAside = listSegments(this.#folder).some(
      ({ form, path }) => form === 'damaged' && inodeAt(path) === inode,
    )
    return isSetAside ? 'set_aside' : 'gone'
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

/** 0: there is none. */
function inodeAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.ino ?? 0
}

function isBusy(error: unknown): boolean {
  return String((error as { code?: unknown }).code).startsWith('SQLITE_BUSY')
}
