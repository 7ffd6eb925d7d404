// `job.db`, a SQLite file: the events of a job in compressed parts, and what the scan remembers between records. It depends
// on the files of the export and the plan alone. Source: docs/wire/import.md §2.1, §2.2.

import { existsSync, mkdirSync } from 'node:fs'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import Database from 'better-sqlite3'
import { parsePlainJson } from '#core/json.ts'
import { matchesSchema, type Schema } from '../records/file-schema.ts'
import type { JobFolder } from './job-folder.ts'
import { JobStopped } from './job-paused.ts'
import type { Manifest } from './manifest.ts'
import { sha256Hex } from './sha256.ts'
import { isSqliteDamage } from './sqlite-damage.ts'
import { type StagedPart, stagedPartSchema } from './staged-part.ts'

export const jobDatabaseFile = 'job.db'

const schema = `
  CREATE TABLE IF NOT EXISTS part (id TEXT PRIMARY KEY, described TEXT, lines BLOB);
  CREATE TABLE IF NOT EXISTS fact (kind TEXT, key TEXT, value TEXT, PRIMARY KEY (kind, key)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS link (device TEXT PRIMARY KEY, user TEXT) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS shared_device (device TEXT PRIMARY KEY) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS snapshot (kind TEXT, key TEXT, properties TEXT, PRIMARY KEY (kind, key)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS generated (id INTEGER PRIMARY KEY, kind TEXT, time_us INTEGER, uuid TEXT, event TEXT);
  CREATE INDEX IF NOT EXISTS generated_in_order ON generated (kind, time_us, uuid, id);
  CREATE INDEX IF NOT EXISTS generated_groups ON generated (uuid) WHERE kind = 'group';
  CREATE TABLE IF NOT EXISTS timestamp_group (name BLOB PRIMARY KEY) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS progress (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;`

/** The file does not hold what a scan writes. */
export class JobDatabaseDamage extends Error {}

export class JobDatabase {
  readonly sql: Database.Database
  readonly #path: string
  readonly #putPart
  readonly #lines
  readonly #progress
  readonly #putProgress

  /** @throws JobDatabaseDamage */
  constructor(folder: JobFolder) {
    this.#path = folder.file(jobDatabaseFile)
    mkdirSync(folder.path, { recursive: true })
    this.sql = new Database(this.#path)
    try {
      // Commits lost in a power failure are scanned again. Checkpoint rarely: persons and devices come in no order, so
      // commits keep changing the same pages.
      this.sql.exec(
        `PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 8192; ${schema}`,
      )
      this.#putPart = this.sql.prepare('INSERT INTO part VALUES (?, ?, ?)')
      this.#lines = this.sql.prepare<[string], { lines: Buffer }>('SELECT lines FROM part WHERE id = ?')
      this.#progress = this.sql.prepare<[string], { value: string }>('SELECT value FROM progress WHERE name = ?')
      this.#putProgress = this.sql.prepare('INSERT OR REPLACE INTO progress VALUES (?, ?)')
    } catch (error) {
      this.sql.close()
      throw isSqliteDamage(error) ? new JobDatabaseDamage(`${this.#path} is not of a job`, { cause: error }) : error
    }
  }

  /** @returns the answer of `question`; null if the file is missing or damaged. */
  static ask<T>(folder: JobFolder, question: (database: JobDatabase) => T): T | null {
    if (!existsSync(folder.file(jobDatabaseFile))) return null
    let database: JobDatabase | undefined
    try {
      database = new JobDatabase(folder)
      return question(database)
    } catch (error) {
      if (error instanceof JobDatabaseDamage || isSqliteDamage(error)) return null
      throw error
    } finally {
      database?.close()
    }
  }

  static remove(folder: JobFolder): void {
    // Remove the WAL first; otherwise, after a crash, it would be applied to the next database.
    folder.remove(`${jobDatabaseFile}-wal`, `${jobDatabaseFile}-shm`, jobDatabaseFile)
  }

  /** Starts a transaction that `commit` or `rollback` ends. */
  begin(): void {
    this.sql.exec('BEGIN')
  }

  commit(): void {
    this.sql.exec('COMMIT')
  }

  rollback(): void {
    if (this.sql.inTransaction) this.sql.exec('ROLLBACK')
  }

  close(): void {
    this.sql.close()
  }

  /** @param lines each ends with a line feed. */
  addPart(part: Omit<StagedPart, 'sha256' | 'bytes'>, lines: Buffer): StagedPart {
    const packed = zstdCompressSync(lines)
    const whole: StagedPart = { ...part, sha256: sha256Hex(packed), bytes: packed.length }
    this.#putPart.run(part.id, JSON.stringify(whole), packed)
    return whole
  }

  /** In the order in which they were added. @throws JobDatabaseDamage */
  parts(): StagedPart[] {
    const rows = this.sql.prepare<[], { described: string }>('SELECT described FROM part ORDER BY rowid').all()
    return rows.map(({ described }) => {
      const part = parseOrUndefined(described)
      if (!matchesSchema(stagedPartSchema, part)) throw new JobDatabaseDamage('a part does not match its schema')
      return part
    })
  }

  /** @returns the lines of a part. @throws JobStopped if its bytes changed. */
  readLines({ id, sha256 }: StagedPart): Buffer {
    const packed = this.#lines.get(id)?.lines
    if (packed === undefined || sha256Hex(packed) !== sha256)
      throw new JobStopped(
        `part ${id} in ${this.#path} ${packed === undefined ? 'is missing' : 'has changed since it was written'}. ` +
          `Delete ${this.#path} and run again: it is rebuilt from the files of the export`,
      )
    return zstdDecompressSync(packed)
  }

  /** Whether it holds exactly the parts of the manifest. Their bytes are checked when they are read. */
  holds({ parts }: Manifest): boolean {
    const own = new Map(this.parts().map(({ id, sha256 }) => [id, sha256]))
    return own.size === parts.length && parts.every(({ id, sha256 }) => own.get(id) === sha256)
  }

  /** @returns null if none is stored. @throws JobDatabaseDamage if it does not match the schema. */
  readProgress<T>(name: string, expected: Schema<T>): T | null {
    const text = this.#progress.get(name)?.value
    if (text === undefined) return null
    const value = parseOrUndefined(text)
    if (!matchesSchema(expected, value))
      throw new JobDatabaseDamage(`the progress of ${name} does not match its schema`)
    return value
  }

  putProgress(name: string, value: unknown): void {
    this.#putProgress.run(name, JSON.stringify(value))
  }
}

function parseOrUndefined(text: string): unknown {
  try {
    return parsePlainJson(text)
  } catch {
    // No schema accepts undefined.
    return undefined
  }
}
