// One segment of a stream's log: a SQLite file named after the offset of its first record. This file defines the
// tables, creates segments and sets up connections; the appender and the reader decide when to write and read.
//
// A commit stores its records in frames, rows of up to 500 records. Writing the next segment's first offset into
// `segment.next_offset` closes a segment permanently; only then is the next file created. So only the newest file may still
// grow, and every other file is complete.

import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readdirSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { threadId } from 'node:worker_threads'
import Database from 'better-sqlite3'

export interface SegmentName {
  readonly firstOffset: number
  readonly path: string
  /**
   * `plain`: as the appender wrote it; `packed`: complete, and compressed by `compressed-segment.ts`; `damaged`: SQLite could
   * not read it, so `salvage-segment.ts` reads it and nothing more is appended to it.
   */
  readonly form: 'plain' | 'packed' | 'damaged'
}

/** The file is a SQLite database, but not a segment of this version. */
export class NotASegmentError extends Error {
  /** False if a later version may have written the file, in which case its format is unknown. */
  readonly isDamage: boolean
  constructor(version: unknown) {
    super(`its version is ${version}, expected ${segmentVersion}`)
    this.name = 'NotASegmentError'
    this.isDamage = version === 0
  }
}

/** The log line for a damaged segment, whether the appender or the reader found it. */
export const damagedSegmentLine = 'a log segment is damaged and has been set aside; processing its readable records'

/** SQLite reads the file, but no writer can have produced its contents. */
export class DamageError extends Error {
  override name = 'DamageError'
}

/** The error for when the newest segment ends before the offset in its stream's mark. */
export function createTruncatedSegmentError(endOffset: number, markedOffset: number): DamageError {
  return new DamageError(`it ends at offset ${endOffset}, but the stream had reached ${markedOffset}`)
}

/** Whether an error from SQLite, or from opening a segment, means that the file itself is damaged. */
export function isSegmentDamage(error: unknown): boolean {
  if (error instanceof DamageError) return true
  if (error instanceof NotASegmentError) return error.isDamage
  return /^SQLITE_(CORRUPT|NOTADB)/.test(String((error as { code?: unknown }).code))
}

const segmentVersion = 1
/**
 * Each page of a commit takes two writes and a checksum, and another write at a checkpoint. Large pages save 40 % of
 * the CPU time of a 100 KB commit, at no measurable cost for a commit of one event.
 */
export const pageBytes = 32 * 1024
/** The limits of one frame, which is decoded, and may be lost, as a whole. A larger record has its own frame. */
export const frameRecordsMax = 500
export const frameBytesMax = 1024 * 1024
/** 16 MiB. With SQLite's default of 4 MiB, p99 with 64 callers was 7 ms instead of 1–2. */
const checkpointPages = 512
/** The side file shrinks back to this size after a large commit. */
const walBytesKept = 32 * 1024 * 1024
const fileName = /^(\d{16})(?:\.(packed|damaged\d*))?\.db$/
const abandonedAfterMs = 60_000

/**
 * Segments of a stream, oldest first; none when the folder does not exist yet. A packed segment is listed once, as packed.
 * If a damaged and an intact segment begin at the same offset, the damaged segment comes first.
 */
export function listSegments(streamFolder: string): SegmentName[] {
  const segments: SegmentName[] = []
  for (const name of listFiles(streamFolder).sort()) {
    const [, offset, suffix] = fileName.exec(name) ?? []
    if (offset === undefined) continue
    const form = suffix === undefined ? 'plain' : suffix === 'packed' ? 'packed' : 'damaged'
    segments.push({ firstOffset: Number(offset), path: join(streamFolder, name), form })
  }
  const packed = new Set(segments.filter(({ form }) => form === 'packed').map(({ firstOffset }) => firstOffset))
  return segments
    .filter(({ form, firstOffset }) => form !== 'plain' || !packed.has(firstOffset))
    .sort((one, other) => one.firstOffset - other.firstOffset || rankForm(other) - rankForm(one))
}

function rankForm({ form }: SegmentName): number {
  return form === 'damaged' ? 1 : 0
}

/** The path of the segment that begins at an offset. */
export function segmentPath(streamFolder: string, firstOffset: number, suffix = ''): string {
  return join(streamFolder, `${String(firstOffset).padStart(16, '0')}${suffix}.db`)
}

/** The total size of a folder's files, SQLite's side files included. */
export function measureFolder(folder: string): number {
  let bytes = 0
  for (const name of listFiles(folder)) bytes += statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0
  return bytes
}

/** Creates the folder of a stream or of the log durably, unless it exists. */
export function ensureFolder(path: string): void {
  const created = mkdirSync(path, { recursive: true, mode: 0o700 })
  if (created === undefined) return
  for (let folder = path; folder.length >= created.length; folder = dirname(folder)) syncSegmentFolder(dirname(folder))
}

/**
 * Creates an empty segment durably, unless it exists. Another process may do the same at the same time: the file gets
 * its name only when it is complete, and the first process to name it wins.
 */
export function createSegment(streamFolder: string, firstOffset: number): SegmentName {
  const path = segmentPath(streamFolder, firstOffset)
  const name: SegmentName = { firstOffset, path, form: 'plain' }
  if (statSync(path, { throwIfNoEntry: false }) !== undefined) return name
  const draft = `${path}.${process.pid}-${threadId}.draft`
  removeSegmentFiles(draft)
  try {
    const db = new Database(draft)
    try {
      db.pragma(`page_size = ${pageBytes}`)
      db.pragma('journal_mode = WAL')
      ensureDurable(db)
      createSegmentTables(db, { firstOffset, nextOffset: null, version: segmentVersion })
    } finally {
      db.close()
    }
    syncFile(draft)
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    removeSegmentFiles(draft)
  }
  syncSegmentFolder(streamFolder)
  return name
}

/** @param db an empty database with nothing but its page size set. */
export function createSegmentTables(
  db: Database.Database,
  segment: { readonly firstOffset: number; readonly nextOffset: number | null; readonly version: number },
): void {
  db.exec(`
    CREATE TABLE segment (first_offset INTEGER NOT NULL, next_offset INTEGER);
    CREATE TABLE frames (
      first_offset INTEGER PRIMARY KEY,
      record_count INTEGER NOT NULL,
      appended_at_ms INTEGER NOT NULL,
      body BLOB NOT NULL
    );
    PRAGMA user_version = ${segment.version};
  `)
  db.prepare('INSERT INTO segment VALUES (?, ?)').run(segment.firstOffset, segment.nextOffset)
}

/** Whether a database has complete or partial commits in its side file. */
export function hasSideFile(path: string): boolean {
  return (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
}

/**
 * A connection to a segment. `write` waits for other writers up to `busyTimeoutMs` and syncs every commit. `read` never
 * waits or writes, but like `write`, if it is the last connection to close, it moves the side file into the segment and
 * removes it. `look` leaves an existing side file unchanged: before a start, SQLite may not see all of it.
 * @throws SqliteError; NotASegmentError.
 */
export function openSegment(path: string, mode: 'write' | 'read' | 'look', busyTimeoutMs = 0): Database.Database {
  // Not read-only without a side file, since a read-only connection would leave an empty side file.
  const readonly = mode === 'look' && hasSideFile(path)
  const db = new Database(path, { readonly, fileMustExist: true, timeout: mode === 'write' ? busyTimeoutMs : 0 })
  try {
    const version = db.pragma('user_version', { simple: true })
    if (version !== segmentVersion) throw new NotASegmentError(version)
    ensureDurable(db)
    if (mode !== 'write') db.pragma('query_only = ON')
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** Removes the main file first, so that an interrupted removal leaves no file with the name of a segment. */
export function removeSegmentFiles(path: string): void {
  for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true })
}

/**
 * Removes the side files of removed segments: a new segment of the same name would use them. Call it only while no
 * process has the stream open.
 */
export function removeOrphanSideFiles(streamFolder: string): void {
  const names = new Set(listFiles(streamFolder))
  for (const name of names) {
    const main = /^(.*\.db)-(?:wal|shm)$/.exec(name)?.[1]
    if (main !== undefined && !names.has(main)) rmSync(join(streamFolder, name), { force: true })
  }
}

/** Removes the drafts of processes that died while writing them. */
export function removeAbandonedDrafts(streamFolder: string, nowMs: number): void {
  for (const name of listFiles(streamFolder)) {
    const path = join(streamFolder, name)
    const madeAtMs = name.includes('.draft') ? statSync(path, { throwIfNoEntry: false })?.mtimeMs : undefined
    if (madeAtMs !== undefined && nowMs - madeAtMs > abandonedAfterMs) rmSync(path, { force: true })
  }
}

/** These settings belong to the connection, not the file, so each connection sets and verifies them. */
function ensureDurable(db: Database.Database): void {
  db.pragma('synchronous = FULL')
  if (process.platform === 'darwin') {
    db.pragma('fullfsync = 1')
    db.pragma('checkpoint_fullfsync = 1')
  }
  db.pragma(`wal_autocheckpoint = ${checkpointPages}`)
  db.pragma(`journal_size_limit = ${walBytesKept}`)
  const journal = db.pragma('journal_mode', { simple: true })
  const synchronous = db.pragma('synchronous', { simple: true })
  if (journal !== 'wal' || synchronous !== 2) {
    throw new Error(`journal_mode is ${journal} and synchronous ${synchronous}, expected wal and 2`)
  }
}

function listFiles(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

export function syncFile(path: string): void {
  const descriptor = openSync(path, 'r+')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

export function syncSegmentFolder(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
