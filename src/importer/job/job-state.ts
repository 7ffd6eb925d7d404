// `state.db`: what has happened to a job and is not in the job's other files: the approval, the id of the service's job,
// how far sending is, what was refused, and what verification found. A SQLite file of named values, so that values which
// belong together change in one transaction. Unlike `job.db`, it cannot be built again. Source: docs/wire/import.md §2.4.

import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import Database from 'better-sqlite3'
import { parseJson } from '#core/json.ts'
import type { JobFolder } from './job-folder.ts'
import { isSqliteDamage, isSqliteDiskFull, isSqliteNotWritable } from './sqlite-file.ts'

export const stateFile = 'state.db'
/** SQLite's default. */
const pageBytes = 4_096

const schema =
  'CREATE TABLE IF NOT EXISTS value (name TEXT PRIMARY KEY, json TEXT, checksum INTEGER) STRICT, WITHOUT ROWID'

interface Row {
  readonly name: string
  readonly json: string
  readonly checksum: number
}

/** Every method throws JobStopped, with the remedy, if the file is damaged. */
export class JobState implements Disposable {
  readonly #folder: JobFolder
  readonly #sql: Database.Database

  /** @returns null if nothing has happened to the job yet. */
  static ofBegun(folder: JobFolder): JobState | null {
    const path = folder.file(stateFile)
    if (!existsSync(path)) return null
    try {
      return new JobState(folder)
    } catch (error) {
      // Even to read a WAL database, SQLite creates files next to it, which fails on a disk that is full or not writable.
      // If the WAL has no changes, everything is in the file itself.
      if (
        !(isSqliteNotWritable(error) || isSqliteDiskFull(error)) ||
        (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
      )
        throw error
      const bytes = readFileSync(path)
      // Changes the header so that it does not ask for a WAL, which a database in memory cannot have.
      bytes.fill(1, 18, 20)
      return new JobState(folder, bytes)
    }
  }

  /**
   * Creates the file if it is missing.
   * @param bytes the content of the file, to read it without opening it for writing.
   */
  constructor(folder: JobFolder, bytes?: Buffer) {
    this.#folder = folder
    if (bytes === undefined) mkdirSync(folder.path, { recursive: true })
    const path = folder.file(stateFile)
    const found = statSync(path, { throwIfNoEntry: false })
    // Refuses a truncated file: SQLite would read the missing rest of a page as empty. With a WAL, the last page may be
    // partial.
    if (found && (!found.isFile() || (found.size % pageBytes !== 0 && !existsSync(`${path}-wal`))))
      throw folder.damaged(stateFile)
    this.#sql = new Database(bytes ?? path)
    try {
      // Every commit must be on disk when it returns: a lost approval or service job could not be found again.
      this.#guard(() => this.#sql.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; ${schema}`))
    } catch (error) {
      this.#sql.close()
      throw error
    }
  }

  [Symbol.dispose](): void {
    this.#sql.close()
  }

  /** @typeParam T the type of the value that this version of Pennon stores under the name. */
  get<T>(name: string): T | null {
    const row = this.#guard(() => this.#sql.prepare<[string], Row>('SELECT * FROM value WHERE name = ?').get(name))
    return row === undefined ? null : (this.#decode(row) as T)
  }

  /** The values whose names begin with `prefix`, by name. */
  *list<T>(prefix: string): Generator<T> {
    const page = this.#guard(() =>
      this.#sql.prepare<[string, string], Row>(
        'SELECT * FROM value WHERE name > ? AND name < ? ORDER BY name LIMIT 100',
      ),
    )
    for (let last: string | undefined = prefix; last !== undefined; ) {
      const rows: Row[] = this.#guard(() => page.all(last!, `${prefix}\u{10ffff}`))
      for (const row of rows) yield this.#decode(row) as T
      last = rows.at(-1)?.name
    }
  }

  /** @param value null to remove it. */
  put(name: string, value: unknown): void {
    const json = JSON.stringify(value)
    this.#guard(() => this.#sql.prepare('INSERT OR REPLACE INTO value VALUES (?, ?, ?)').run(name, json, crc32(json)))
  }

  /** Either all changes of `change` are stored or none. */
  transact(change: () => void): void {
    this.#guard(this.#sql.transaction(change))
  }

  #decode({ json, checksum }: Row): unknown {
    // Compares the checksum, since SQLite itself does not notice changed bytes within a value.
    if (crc32(json) !== checksum) throw this.#folder.damaged(stateFile)
    return parseJson(json)
  }

  #guard<T>(use: () => T): T {
    try {
      return use()
    } catch (error) {
      throw isSqliteDamage(error) ? this.#folder.damaged(stateFile) : error
    }
  }
}

/** @returns null if there is no such value. */
export function readJobState<T>(folder: JobFolder, name: string): T | null {
  using state = JobState.ofBegun(folder)
  return state?.get<T>(name) ?? null
}

/** @param value null to remove it. */
export function writeJobState(folder: JobFolder, name: string, value: unknown): void {
  using state = new JobState(folder)
  state.put(name, value)
}

/** Functions that read and store one value of the state; null for no value. @typeParam T like that of `JobState.get`. */
export function createStateAccessors<T>(name: string) {
  return [
    (folder: JobFolder) => readJobState<T>(folder, name),
    (folder: JobFolder, value: T | null) => writeJobState(folder, name, value),
  ] as const
}

const jobName = 'job'

/** Creates the state of a job that is about to be planned. Replaces the state of an earlier job. */
export function createJobState(folder: JobFolder, jobId: string): void {
  // Removes the WAL first; otherwise, after a crash, it would be applied to the next database.
  folder.remove(`${stateFile}-wal`, `${stateFile}-shm`, stateFile)
  writeJobState(folder, jobName, jobId)
}

/**
 * Checks the state before a command trusts it. With a missing file, a job that was sent would look unsent. With the file of
 * another job, a command would end that other job.
 * @throws JobStopped unless the folder has the state of this job.
 */
export function checkJobState(folder: JobFolder, jobId: string): void {
  const found = readJobState<string>(folder, jobName)
  if (found === jobId) return
  const isThere = existsSync(folder.file(stateFile))
  throw folder.damaged(stateFile, !isThere ? 'is missing' : found === null ? 'is damaged' : 'is of another import')
}
