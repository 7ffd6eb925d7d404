// One segment of a lane's log: a SQLite file named after the offset of its first record. What is stored in it, how it
// comes into being and how a connection is set up; who writes and reads when is decided by the appender and the reader.
//
// A commit's records lie in frames, rows of up to 500 records. A segment is closed for good by writing the offset that
// the next one begins with into `segment.next_offset`; only then is the next file made. So the newest file is the only
// one that may still grow, and every other is complete.

import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readdirSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { threadId } from 'node:worker_threads'
import Database from 'better-sqlite3'

export interface SegmentName {
  readonly firstOffset: number
  readonly path: string
  /**
   * `plain`: as it was appended to; `packed`: complete, and rewritten compressed by `pack-segment.ts`; `damaged`: SQLite
   * could not read it, so that it is read by `salvage-segment.ts`, and appended to no more.
   */
  readonly form: 'plain' | 'packed' | 'damaged'
}

/** The file is SQLite's, but no segment of this version. */
export class NotASegmentError extends Error {
  /** False when a later version may have written it, so that we cannot judge its file. */
  readonly isDamage: boolean
  constructor(version: unknown) {
    super(`its version is ${version} where ${segmentVersion} was expected`)
    this.name = 'NotASegmentError'
    this.isDamage = version === 0
  }
}

/** What the log says of it, whoever met it. */
export const damagedSegmentLine =
  'a segment of the log is damaged: it was set aside, and what can still be read of it is processed'

/** SQLite reads the file, but what it holds was never written so. */
export class DamageError extends Error {
  constructor(what: string) {
    super(`${what} is damaged`)
    this.name = 'DamageError'
  }
}

/** Whether an error of SQLite, or of opening a segment, says that the file itself is damaged. */
export function isDamage(error: unknown): boolean {
  if (error instanceof DamageError) return true
  if (error instanceof NotASegmentError) return error.isDamage
  return /^SQLITE_(CORRUPT|NOTADB)/.test(String((error as { code?: unknown }).code))
}

const segmentVersion = 1
/**
 * Each page of a commit is two writes and a checksum, and one write more at a checkpoint: large pages take 40 % off the CPU
 * of a commit of 100 KB, and cost a commit of one event nothing that can be measured.
 */
export const pageBytes = 32 * 1024
/** Bounds of one frame: what a reader decodes and loses at once. A larger single record is a frame alone. */
export const frameRecordsMax = 500
export const frameBytesMax = 1024 * 1024
/** 16 MiB. With SQLite's 4 MiB, p99 of 64 callers was 7 ms instead of 1–2. */
const checkpointPages = 512
/** The side file shrinks back to this after a large commit passed through. */
const walBytesKept = 32 * 1024 * 1024
const fileName = /^(\d{16})(?:\.(packed|damaged\d*))?\.db$/
const abandonedAfterMs = 60_000

/**
 * Segments of a lane, oldest first; none when the folder does not exist yet. One that is packed is listed as that alone.
 * A damaged one comes before another that begins where it does: it had been set aside before anything was read of it.
 */
export function listSegments(laneFolder: string): SegmentName[] {
  const segments: SegmentName[] = []
  for (const name of filesIn(laneFolder).sort()) {
    const [, offset, suffix] = fileName.exec(name) ?? []
    if (offset === undefined) continue
    const form = suffix === undefined ? 'plain' : suffix === 'packed' ? 'packed' : 'damaged'
    segments.push({ firstOffset: Number(offset), path: join(laneFolder, name), form })
  }
  const packed = new Set(segments.filter(({ form }) => form === 'packed').map(({ firstOffset }) => firstOffset))
  return segments
    .filter(({ form, firstOffset }) => form !== 'plain' || !packed.has(firstOffset))
    .sort((one, other) => one.firstOffset - other.firstOffset || isFirst(other) - isFirst(one))
}

function isFirst({ form }: SegmentName): number {
  return form === 'damaged' ? 1 : 0
}

/** The file of a segment that begins at an offset. */
export function segmentPath(laneFolder: string, firstOffset: number, suffix = ''): string {
  return join(laneFolder, `${String(firstOffset).padStart(16, '0')}${suffix}.db`)
}

/** What a folder's files take, SQLite's side files included. */
export function folderBytes(folder: string): number {
  let bytes = 0
  for (const name of filesIn(folder)) bytes += statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0
  return bytes
}

/** The folder of a lane or of the log, durably there. */
export function ensureFolder(path: string): void {
  const created = mkdirSync(path, { recursive: true, mode: 0o700 })
  if (created === undefined) return
  for (let folder = path; folder.length >= created.length; folder = dirname(folder)) syncFolder(dirname(folder))
}

/**
 * Makes an empty segment, durably, unless it is there already. Another process may do the same at the same time: the
 * file gets its name only when it is complete, and the first one to name it wins.
 */
export function createSegment(laneFolder: string, firstOffset: number): SegmentName {
  const path = segmentPath(laneFolder, firstOffset)
  const name: SegmentName = { firstOffset, path, form: 'plain' }
  if (statSync(path, { throwIfNoEntry: false }) !== undefined) return name
  const draft = `${path}.${process.pid}-${threadId}.draft`
  removeSegmentFiles(draft)
  try {
    const db = new Database(draft)
    try {
      db.pragma(`page_size = ${pageBytes}`)
      db.pragma('journal_mode = WAL')
      requireDurable(db)
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
  syncFolder(laneFolder)
  return name
}

/** In an empty database: nothing but its page size is set yet. */
export function createSegmentTables(
  db: Database.Database,
  of: { readonly firstOffset: number; readonly nextOffset: number | null; readonly version: number },
): void {
  db.exec(`
    CREATE TABLE segment (first_offset INTEGER NOT NULL, next_offset INTEGER);
    CREATE TABLE frames (
      first_offset INTEGER PRIMARY KEY,
      record_count INTEGER NOT NULL,
      appended_at_ms INTEGER NOT NULL,
      body BLOB NOT NULL
    );
    PRAGMA user_version = ${of.version};
  `)
  db.prepare('INSERT INTO segment VALUES (?, ?)').run(of.firstOffset, of.nextOffset)
}

/**
 * A connection to a segment. `write` waits for other writers up to `busyTimeoutMs` and syncs every commit; `read` never
 * waits and never writes.
 * @throws SqliteError; NotASegmentError.
 */
export function openSegment(path: string, mode: 'write' | 'read', busyTimeoutMs = 0): Database.Database {
  const db = new Database(path, { fileMustExist: true, timeout: mode === 'write' ? busyTimeoutMs : 0 })
  try {
    const version = db.pragma('user_version', { simple: true })
    if (version !== segmentVersion) throw new NotASegmentError(version)
    requireDurable(db)
    if (mode === 'read') db.pragma('query_only = ON')
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** Removes the main file first, so that nothing that a cut-short removal leaves has the name of a segment. */
export function removeSegmentFiles(path: string): void {
  for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true })
}

/**
 * Removes side files of segments that were removed: a segment made under the same name would take them for its own.
 * Call it only while no process has the lane open.
 */
export function removeOrphans(laneFolder: string): void {
  const names = new Set(filesIn(laneFolder))
  for (const name of names) {
    const main = /^(.*\.db)-(?:wal|shm)$/.exec(name)?.[1]
    if (main !== undefined && !names.has(main)) rmSync(join(laneFolder, name), { force: true })
  }
}

/** Drafts of processes that died while making them. */
export function removeAbandonedDrafts(laneFolder: string, nowMs: number): void {
  for (const name of filesIn(laneFolder)) {
    const path = join(laneFolder, name)
    const madeAtMs = name.includes('.draft') ? statSync(path, { throwIfNoEntry: false })?.mtimeMs : undefined
    if (madeAtMs !== undefined && nowMs - madeAtMs > abandonedAfterMs) rmSync(path, { force: true })
  }
}

/** Settings of a connection, not of the file, so each one makes them and sees that they hold. */
function requireDurable(db: Database.Database): void {
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
    throw new Error(`journal_mode is ${journal} and synchronous ${synchronous} where wal and 2 were set`)
  }
}

function filesIn(folder: string): string[] {
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

export function syncFolder(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
