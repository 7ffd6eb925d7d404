// The segment that receives a stream's commits: one SQLite connection with its prepared statements. It waits while
// other processes commit, and checks that its files still have their names. `stream-appender.ts` manages the stream as
// a whole.

import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import type Database from 'better-sqlite3'
import {
  DamageError,
  hasSideFile,
  isSegmentDamage,
  listSegments,
  openSegment,
  type SegmentName,
} from './segment-file.ts'

/** A run of records, as a view into the bytes to append. */
export interface Frame {
  readonly body: Uint8Array
  readonly recordCount: number
}

/** The commit itself failed, so its outcome is unknown: its records may or may not exist after a restart. */
export class CommitUnknownError extends Error {
  constructor(cause: unknown) {
    super(`the commit's outcome is unknown: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    this.name = 'CommitUnknownError'
  }
}

/** The pause between tries while another process commits. SQLite's own busy handler soon sleeps 25–100 ms at a time. */
const busyDelayMs = { first: 0.2, max: 2 }
const neverNotified = new Int32Array(new SharedArrayBuffer(4))

type Whereabouts = 'here' | 'completed' | 'set_aside' | 'gone'

export class WritableSegment {
  readonly name: SegmentName
  readonly #db: Database.Database
  readonly #begin: Database.Statement
  readonly #commit: Database.Statement
  readonly #rollback: Database.Statement
  readonly #insert: Database.Statement
  readonly #end: Database.Statement
  readonly #began: Database.Statement
  readonly #next: Database.Statement
  readonly #pageCount: Database.Statement
  readonly #pageBytes: number
  readonly #busyTimeoutMs: number
  /** The files that were opened, by inode: the segment and its side file, which has the newest commits. */
  readonly #files: readonly { readonly path: string; readonly inode: number }[]
  readonly #folder: string
  /** The folder's state when all files were last seen under their names. */
  #folderInode = 0
  #folderChangedAtMs = 0
  /** When its first records were appended; undefined while empty. */
  #beganAtMs: number | undefined

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
    this.#began = this.#db.prepare('SELECT appended_at_ms FROM frames ORDER BY first_offset LIMIT 1').pluck()
    this.#next = this.#db.prepare('SELECT next_offset FROM segment').pluck()
    this.#pageCount = this.#db.prepare('PRAGMA page_count').pluck()
    this.#pageBytes = Number(this.#db.pragma('page_size', { simple: true }))
    // SQLite itself never waits for a lock: only `begin` waits, with its own pauses.
    this.#db.pragma('busy_timeout = 0')
    this.#files = [name.path, `${name.path}-wal`, `${name.path}-shm`].map(path => ({ path, inode: readInode(path) }))
  }

  /** Waits for other writers. @throws SqliteError `SQLITE_BUSY…` when that takes too long. */
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

  /** The segment's end and size. Valid until the end of the transaction in which they were read. */
  state(): { endOffset: number; nextOffset: number | null; bytes: number } {
    const endOffset = (this.#end.get() as number | undefined) ?? this.name.firstOffset
    if (!Number.isSafeInteger(endOffset) || endOffset < this.name.firstOffset)
      throw new DamageError(`the last frame of ${this.name.path} is damaged`)
    return {
      endOffset,
      nextOffset: this.#next.get() as number | null,
      bytes: (this.#pageCount.get() as number) * this.#pageBytes,
    }
  }

  /** Whether the segment has no records and its side file has no pages. @param state of the open transaction. */
  isEmpty({ endOffset }: { readonly endOffset: number }): boolean {
    return endOffset === this.name.firstOffset && !hasSideFile(this.name.path)
  }

  /** When its first records were appended, epoch ms; undefined while it is empty. */
  beganAtMs(): number | undefined {
    this.#beganAtMs ??= this.#began.get() as number | undefined
    return this.#beganAtMs
  }

  /** @returns the offset after the last record. */
  insert(frames: readonly Frame[], firstOffset: number, nowMs: number): number {
    let offset = firstOffset
    for (const frame of frames) {
      this.#insert.run(offset, frame.recordCount, nowMs, frame.body)
      offset += frame.recordCount
    }
    return offset
  }

  /** Rewrites a stored value, so that a commit without records has something to write, like any other commit. */
  touch(): void {
    this.#db.prepare('UPDATE segment SET first_offset = first_offset').run()
  }

  /** Like `whereabouts`, usually with a single `stat`: any change to a name in a folder changes the folder's time. */
  whereaboutsAtCommit(): Whereabouts {
    const folder = statSync(this.#folder, { throwIfNoEntry: false })
    if (folder !== undefined && folder.ino === this.#folderInode && folder.mtimeMs === this.#folderChangedAtMs)
      return 'here'
    this.#folderInode = folder?.ino ?? 0
    this.#folderChangedAtMs = folder?.mtimeMs ?? 0
    return this.whereabouts()
  }

  /**
   * Whether the files still have their names. The commits in a removed side file are lost once every process closes it.
   */
  whereabouts(): Whereabouts {
    if (this.#files.every(({ path, inode }) => readInode(path) === inode)) return 'here'
    const { inode } = this.#files[0]!
    // The worker packs or deletes complete segments even while other processes have them open.
    if (readInode(this.name.path) === 0 && this.#isComplete()) return 'completed'
    // A segment that was set aside is deleted once it is processed. A later segment then shows that it was set aside, since
    // processes begin a later segment only after this segment has ended.
    const isSetAside = listSegments(this.#folder).some(
      ({ form, path, firstOffset }) =>
        firstOffset > this.name.firstOffset || (form === 'damaged' && readInode(path) === inode),
    )
    return isSetAside ? 'set_aside' : 'gone'
  }

  /** Whether the segment is complete. False also when the file is damaged and this cannot be read. */
  #isComplete(): boolean {
    try {
      return this.#next.get() !== null
    } catch (error) {
      if (isSegmentDamage(error)) return false
      throw error
    }
  }

  /** Closes the segment: no process appends to it after this. Ends the transaction. */
  closeForGood(nextOffset: number): void {
    this.#db.prepare('UPDATE segment SET next_offset = ?').run(nextOffset)
    this.commit()
    // Empties the side file, even while other processes have the segment open. A stalled reader must not delay appends:
    // in that case the last process to close the file empties it.
    this.#db.pragma('busy_timeout = 100')
    this.#db.pragma('wal_checkpoint(TRUNCATE)')
  }

  /** Returns once the operating system says that the commit is on the disk. @throws CommitUnknownError, SqliteError */
  commit(): void {
    try {
      this.#commit.run()
    } catch (error) {
      // The outcome is known: on a full disk, the end of the commit was not written, and a busy file was not changed.
      if (isBusy(error) || (error as { code?: string }).code === 'SQLITE_FULL') throw error
      throw new CommitUnknownError(error)
    }
  }

  close(): void {
    this.#db.close()
  }
}

/** The inode of a file, 0 when there is no such file. */
function readInode(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.ino ?? 0
}

function isBusy(error: unknown): boolean {
  return String((error as { code?: unknown }).code).startsWith('SQLITE_BUSY')
}
