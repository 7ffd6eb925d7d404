// `staging.db`, a SQLite file: all records of the raw files with their times, until the scan has converted them. They are
// read in the order of time, then in the order of the raw files, an order that depends only on the files and the plan.
// Source: docs/wire/import.md §2.1, §2.5.

import { existsSync, mkdirSync } from 'node:fs'
import type Database from 'better-sqlite3'
import { type JobFolder, parseObjectOrNull } from '../job/job-folder.ts'
import { type RawSource, rawObjectSchema, rawSourceSchema } from '../job/manifest.ts'
import { sha256Hex } from '../job/sha256.ts'
import { isSqliteDamage, SqliteFile } from '../job/sqlite-file.ts'
import { type DeepReadonly, matchesSchema, type Static, Type } from '../records/file-schema.ts'

const stagingFile = 'staging.db'

const schema = `
  CREATE TABLE IF NOT EXISTS record (
    id INTEGER PRIMARY KEY, time_us INTEGER, has_facts INTEGER, place TEXT, extra TEXT, json BLOB
  );
  CREATE INDEX IF NOT EXISTS record_in_order ON record (time_us, id);
  CREATE INDEX IF NOT EXISTS record_with_facts ON record (time_us, id) WHERE has_facts;
  CREATE TABLE IF NOT EXISTS raw_file (number INTEGER PRIMARY KEY, described TEXT);
  CREATE TABLE IF NOT EXISTS staging (only INTEGER PRIMARY KEY, described TEXT);`

/** Replaces an unreadable time, so that such records come last. No event has a time this late. */
const unknownTimeUs = Number.MAX_SAFE_INTEGER

/** Describes what the staged records depend on. */
const describedSchema = Type.Object({
  mapping: Type.String(),
  sources: Type.Array(rawSourceSchema),
  isComplete: Type.Boolean(),
})
type Described = Static<typeof describedSchema>

const stagedFileSchema = Type.Object({ objects: Type.Array(rawObjectSchema), records: Type.Number() })

/** The files within a raw file that was read to the end, and how many records they contain. */
type StagedFile = DeepReadonly<Static<typeof stagedFileSchema>>

export interface StagedRecord {
  /** The record's number among all records of the raw files, from 1. Blank lines are not counted. */
  readonly id: number
  /** Null if the time is unreadable. */
  readonly timeUs: number | null
  /** The place as `encodeRecordPlace` writes it. */
  readonly place: string
  /** `extra` and `json` are as `encodeRecordContent` writes them. */
  readonly extra: string
  readonly json: Buffer
}

export type NewRecord = Omit<StagedRecord, 'id' | 'json'> & { readonly json: Uint8Array }

/** Where a reader of the records continues. */
export type RecordPosition = Pick<StagedRecord, 'timeUs' | 'id'>

const columns = `id, nullif(time_us, ${unknownTimeUs}) AS timeUs, place, extra, json`

function prepareStatements(sql: Database.Database) {
  return {
    add: sql.prepare('INSERT INTO record VALUES (?, ?, ?, ?, ?, ?)'),
    endFile: sql.prepare('INSERT INTO raw_file VALUES (?, ?)'),
    describe: sql.prepare('INSERT OR REPLACE INTO staging VALUES (1, ?)'),
    setTime: sql.prepare('UPDATE record SET time_us = ? WHERE id = ?'),
    lastId: sql.prepare<[], { id: number | null }>('SELECT max(id) AS id FROM record'),
    description: sql.prepare<[], { described: string }>('SELECT described FROM staging'),
  }
}

export class StagedRecords extends SqliteFile<ReturnType<typeof prepareStatements>> {
  readonly #folder: JobFolder
  #lastId: number
  /** What the records depend on; null if the file has no readable description. */
  #described: Described | null = null

  private constructor(folder: JobFolder) {
    // With a rollback journal, appended pages are written once, not first to a WAL.
    const pragmas = 'PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -65536;'
    super(folder.file(stagingFile), `${pragmas} ${schema}`, prepareStatements)
    this.#folder = folder
    this.#lastId = this.statements.lastId.get()!.id ?? 0
    const described = parseObjectOrNull(this.statements.description.get()?.described ?? '')
    if (matchesSchema(describedSchema, described)) this.#described = described
  }

  /**
   * Opens the records of a staging that was stopped or is complete.
   * @returns null if there are no records of these sources and this mapping, or if the file is damaged.
   */
  static open(folder: JobFolder, isWanted: (described: Described) => boolean): StagedRecords | null {
    if (!existsSync(folder.file(stagingFile))) return null
    let records: StagedRecords
    try {
      records = new StagedRecords(folder)
    } catch (error) {
      if (isSqliteDamage(error)) return null
      throw error
    }
    if (records.#described !== null && isWanted(records.#described)) return records
    records.close()
    return null
  }

  static create(folder: JobFolder, mapping: string, sources: readonly RawSource[]): StagedRecords {
    StagedRecords.remove(folder)
    mkdirSync(folder.path, { recursive: true })
    const records = new StagedRecords(folder)
    records.#describe({ mapping, sources: [...sources], isComplete: false })
    return records
  }

  static remove(folder: JobFolder): void {
    folder.remove(`${stagingFile}-journal`, stagingFile)
  }

  #describe(described: Described): void {
    this.statements.describe.run(JSON.stringify(described))
    this.#described = described
  }

  get sources(): readonly RawSource[] {
    return this.#described!.sources
  }

  /** Identifies the files and the mapping that the records depend on. */
  identity(): string {
    const { mapping, sources } = this.#described!
    return sha256Hex(JSON.stringify([mapping, sources]))
  }

  get count(): number {
    return this.#lastId
  }

  add({ timeUs, place, extra, json }: NewRecord, hasFacts: boolean): void {
    this.statements.add.run(++this.#lastId, timeUs ?? unknownTimeUs, hasFacts ? 1 : 0, place, extra, json)
  }

  endFile(number: number, file: StagedFile): void {
    this.statements.endFile.run(number, JSON.stringify(file))
  }

  /** The files that were read to the end, in order. @throws JobStopped if the file is damaged. */
  files(): StagedFile[] {
    const rows = this.sql.prepare<[], { described: string }>('SELECT described FROM raw_file ORDER BY number').all()
    return rows.map(({ described }) => this.#folder.parseLine(stagingFile, described, stagedFileSchema))
  }

  complete(mapping: string): void {
    this.#describe({ ...this.#described!, mapping, isComplete: true })
  }

  /** Gives records without a readable time the time that `timeOf` finds. */
  setUnknownTimes(timeOf: (record: StagedRecord) => number | null): void {
    this.begin()
    const rows = this.sql.prepare<[number, number], StagedRecord>(
      `SELECT ${columns} FROM record WHERE time_us = ? AND id > ? ORDER BY id LIMIT 100`,
    )
    for (let page = rows.all(unknownTimeUs, 0); page.length > 0; page = rows.all(unknownTimeUs, page.at(-1)!.id))
      for (const record of page) {
        const timeUs = timeOf(record)
        if (timeUs !== null) this.statements.setTime.run(timeUs, record.id)
      }
    this.commit()
  }

  /** The first and the last readable time; null if no record has one. */
  range(): { readonly firstUs: number; readonly lastUs: number } | null {
    const { first, last } = this.sql
      .prepare('SELECT min(time_us) AS first, max(time_us) AS last FROM record WHERE time_us < ?')
      .get(unknownTimeUs) as { first: number | null; last: number | null }
    return first === null || last === null ? null : { firstUs: first, lastUs: last }
  }

  /** Records after a position, in order. No other statement may run meanwhile. @throws JobStopped if the file is damaged. */
  *after({ timeUs, id }: RecordPosition): Generator<StagedRecord> {
    const rows = this.sql.prepare<[number, number], StagedRecord>(
      `SELECT ${columns} FROM record WHERE (time_us, id) > (?, ?) ORDER BY time_us, id`,
    )
    yield* this.#read(rows.iterate(timeUs ?? unknownTimeUs, id))
  }

  /** Like `after`, but only records that were added with `hasFacts`, starting at the first. */
  *withFacts(): Generator<StagedRecord> {
    const rows = this.sql.prepare<[], StagedRecord>(
      `SELECT ${columns} FROM record WHERE has_facts ORDER BY time_us, id`,
    )
    yield* this.#read(rows.iterate())
  }

  *unknownTimes(): Generator<StagedRecord> {
    yield* this.after({ timeUs: null, id: 0 })
  }

  *#read(rows: Iterable<StagedRecord>): Generator<StagedRecord> {
    try {
      yield* rows
    } catch (error) {
      throw isSqliteDamage(error) ? this.#folder.damaged(stagingFile) : error
    }
  }
}

export const firstPosition: RecordPosition = { timeUs: Number.MIN_SAFE_INTEGER, id: 0 }
