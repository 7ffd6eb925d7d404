// `job.db`, a SQLite file: the events of a job in compressed parts, and what the scan remembers between records. It depends
// only on the files of the export and the plan. Source: docs/wire/import.md §2.1, §2.2.

import { existsSync, mkdirSync } from 'node:fs'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type Database from 'better-sqlite3'
import { parseJsonWithDoubles } from '#core/json.ts'
import { matchesSchema, type Schema } from '../records/file-schema.ts'
import type { JobFolder } from './job-folder.ts'
import { JobStopped } from './job-paused.ts'
import type { Manifest } from './manifest.ts'
import { sha256Hex } from './sha256.ts'
import { ContentDamage, isSqliteDamage, SqliteFile } from './sqlite-file.ts'
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

function prepareStatements(sql: Database.Database) {
  return {
    putPart: sql.prepare('INSERT INTO part VALUES (?, ?, ?)'),
    lines: sql.prepare<[string], { lines: Buffer }>('SELECT lines FROM part WHERE id = ?'),
    progress: sql.prepare<[string], { value: string }>('SELECT value FROM progress WHERE name = ?'),
    putProgress: sql.prepare('INSERT OR REPLACE INTO progress VALUES (?, ?)'),
  }
}

/** If the file does not contain what a scan writes, methods throw an error that `isSqliteDamage` recognizes. */
export class JobDatabase extends SqliteFile<ReturnType<typeof prepareStatements>> {
  readonly #path: string

  constructor(folder: JobFolder) {
    mkdirSync(folder.path, { recursive: true })
    const path = folder.file(jobDatabaseFile)
    // A power failure may lose commits, since their records are scanned again. Checkpoints are rare: persons and devices
    // come in no order, so commits keep changing the same pages.
    const pragmas =
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 8192;'
    super(path, `${pragmas} ${schema}`, prepareStatements)
    this.#path = path
  }

  /** @returns what `question` returns; null if the file is missing or damaged. */
  static ask<T>(folder: JobFolder, question: (database: JobDatabase) => T): T | null {
    if (!existsSync(folder.file(jobDatabaseFile))) return null
    try {
      using database = new JobDatabase(folder)
      return question(database)
    } catch (error) {
      if (isSqliteDamage(error)) return null
      throw error
    }
  }

  static remove(folder: JobFolder): void {
    // Remove the WAL first; otherwise, after a crash, it would be applied to the next database.
    folder.remove(`${jobDatabaseFile}-wal`, `${jobDatabaseFile}-shm`, jobDatabaseFile)
  }

  /** @param lines each ends with a line feed. */
  addPart(part: Omit<StagedPart, 'sha256' | 'bytes'>, lines: Buffer): StagedPart {
    const packed = zstdCompressSync(lines)
    const whole: StagedPart = { ...part, sha256: sha256Hex(packed), bytes: packed.length }
    this.statements.putPart.run(part.id, JSON.stringify(whole), packed)
    return whole
  }

  /** In the order in which they were added. */
  parts(): StagedPart[] {
    const rows = this.sql.prepare<[], { described: string }>('SELECT described FROM part ORDER BY rowid').all()
    return rows.map(({ described }) => {
      const part = parseOrUndefined(described)
      if (!matchesSchema(stagedPartSchema, part)) throw new ContentDamage('a part does not match its schema')
      return part
    })
  }

  /** @returns the lines of a part. @throws JobStopped if its bytes changed. */
  readLines({ id, sha256 }: StagedPart): Buffer {
    const packed = this.statements.lines.get(id)?.lines
    if (packed === undefined || sha256Hex(packed) !== sha256)
      throw new JobStopped(
        `part ${id} in ${this.#path} ${packed === undefined ? 'is missing' : 'has changed since it was written'}. ` +
          `Delete ${this.#path} and run again: it is rebuilt from the files of the export`,
      )
    return zstdDecompressSync(packed)
  }

  /** Whether the database contains exactly the parts of the manifest. Their bytes are checked when they are read. */
  holds({ parts }: Manifest): boolean {
    const own = new Map(this.parts().map(({ id, sha256 }) => [id, sha256]))
    return own.size === parts.length && parts.every(({ id, sha256 }) => own.get(id) === sha256)
  }

  /** @returns null if none is stored. */
  readProgress<T>(name: string, expected: Schema<T>): T | null {
    const text = this.statements.progress.get(name)?.value
    if (text === undefined) return null
    const value = parseOrUndefined(text)
    if (!matchesSchema(expected, value)) throw new ContentDamage(`the progress of ${name} does not match its schema`)
    return value
  }

  putProgress(name: string, value: unknown): void {
    this.statements.putProgress.run(name, JSON.stringify(value))
  }
}

function parseOrUndefined(text: string): unknown {
  try {
    return parseJsonWithDoubles(text)
  } catch {
    // No schema accepts undefined, so invalid JSON fails the check.
    return undefined
  }
}
