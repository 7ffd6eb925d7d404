// Opens the state file with the settings that every connection needs, since SQLite keeps them per connection, and
// translates SQLite's failures into PortErrors. The caller decides how long a connection waits for a lock. It does not
// import Kysely (`kysely-on-sqlite.ts`), which takes 12 MiB in every thread and is not needed on a front's main thread.

import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { PortError, type PortErrorCode } from '#ports/port-error.ts'

export type SqliteDatabase = Database.Database

export function stateFilePath(dataFolder: string): string {
  return join(dataFolder, 'state.db')
}

/** How long a writer of the state waits for other writers: their transactions are short, so a longer wait means trouble. */
export const writerWaitMs = 2_000

/**
 * A connection that writes. A commit is synced before it returns. When the file is removed or replaced, the connection
 * refuses writes within a second.
 * @param busyTimeoutMs how long to wait for another writer; 0 = not at all.
 * @throws PortError when the file cannot be opened.
 */
export function openStateForWriting(
  dataFolder: string,
  busyTimeoutMs: number,
  { mayCreate = true }: { readonly mayCreate?: boolean } = {},
): SqliteDatabase {
  return rethrowAsStatePortErrors(() => {
    if (mayCreate) mkdirSync(dataFolder, { recursive: true })
    const database = new Database(stateFilePath(dataFolder), { timeout: busyTimeoutMs, fileMustExist: !mayCreate })
    database.pragma('journal_mode = WAL')
    database.pragma('synchronous = FULL')
    // macOS returns from fsync before the data is on the disk.
    if (process.platform === 'darwin') database.pragma('fullfsync = 1')
    database.pragma('foreign_keys = ON')
    refuseWritesWhileMissing(database)
    return database
  })
}

/** A connection that only reads an existing state; it never waits and never holds up a writer. */
export function openStateForReading(dataFolder: string): SqliteDatabase {
  return rethrowAsStatePortErrors(() => {
    const database = new Database(stateFilePath(dataFolder), { readonly: true, fileMustExist: true, timeout: 0 })
    database.pragma('cache_size = -8000')
    return database
  })
}

/** Prepares a statement for each text, under the same name. */
export function prepareStatements<T extends Readonly<Record<string, string>>>(database: SqliteDatabase, texts: T) {
  const statements = Object.entries(texts).map(([name, text]) => [name, database.prepare<unknown[]>(text)])
  return Object.fromEntries(statements) as { readonly [Name in keyof T]: Database.Statement<unknown[]> }
}

/** A PortError for a failure of SQLite or of the files; anything else, such as our own bugs, is returned as it is. */
export function toStatePortError(cause: unknown): unknown {
  if (cause instanceof Database.SqliteError) return new PortError('state', toPortErrorCode(cause.code), cause)
  const isFileError = cause instanceof Error && 'syscall' in cause
  const isGone =
    cause instanceof TypeError && /database connection is not open|directory does not exist/.test(cause.message)
  if (isFileError || isGone) return new PortError('state', 'unavailable', cause)
  return cause
}

/** Whether SQLite refused because another connection holds a lock. */
export function isSqliteBusy(sqliteCode: string): boolean {
  return sqliteCode.startsWith('SQLITE_BUSY') || sqliteCode === 'SQLITE_LOCKED'
}

function toPortErrorCode(sqliteCode: string): PortErrorCode {
  if (isSqliteBusy(sqliteCode)) return 'timeout'
  if (sqliteCode.startsWith('SQLITE_CONSTRAINT')) return 'conflict'
  if (sqliteCode === 'SQLITE_FULL') return 'full'
  if (sqliteCode.startsWith('SQLITE_CORRUPT') || sqliteCode === 'SQLITE_NOTADB') return 'corrupt'
  return 'unavailable'
}

/** Runs `work` and throws SQLite's failures as PortErrors. */
export function rethrowAsStatePortErrors<T>(work: () => T): T {
  try {
    return work()
  } catch (cause) {
    throw toStatePortError(cause)
  }
}

const lookMs = 1_000
/** The main file and its side files; the newest commits are in `-wal`. */
const suffixes = ['', '-wal', '-shm']

/**
 * Checks once a second that the state's files still have their names: SQLite keeps using a file that was removed or
 * replaced, and all later writes to it are lost when the last process closes it. Stops when `isOpen` is false: SQLite
 * removes its side files with the last connection.
 * @param report called on each change: with the path of a missing or replaced file, or null once all files are back.
 * @returns a function that returns the result of the last check, in the form that `report` gets.
 */
export function watchStateFiles(
  path: string,
  { isOpen, report }: { readonly isOpen: () => boolean; readonly report: (missing: string | null) => void },
): () => string | null {
  const inodes = suffixes.map(suffix => readInode(path + suffix) ?? 0)
  let missing: string | null = null
  const timer = setInterval(() => {
    if (!isOpen()) return clearInterval(timer)
    const found = findMissing()
    if (found === missing) return
    missing = found
    report(missing)
  }, lookMs)
  timer.unref()
  return () => missing

  function findMissing(): string | null {
    for (const [index, suffix] of suffixes.entries()) {
      const inode = readInode(path + suffix)
      // If the disk does not answer, the result of the last check stays; only callers that read or write get an error.
      if (inode === null) return missing
      // A side file that did not exist yet is accepted when it appears.
      inodes[index] ||= inode
      if (inode !== inodes[index]) return path + suffix
    }
    return null
  }
}

/** Makes a connection refuse writes while its files are missing; reads still work. */
function refuseWritesWhileMissing(database: Database.Database): void {
  watchStateFiles(database.name, {
    isOpen: () => database.open,
    report: missing => database.pragma(`query_only = ${missing === null ? 'OFF' : 'ON'}`),
  })
}

/** The inode of a file; 0 when there is no such file, null when the disk does not answer. */
function readInode(path: string): number | null {
  try {
    return statSync(path, { throwIfNoEntry: false })?.ino ?? 0
  } catch {
    return null // the disk does not answer; `findMissing` says what follows
  }
}
