// The state of a fetch, in `fetch.db` of the job folder: parts with their hashes, and the calls of the last hours. A row
// says `done` only after the file has its final name, so a crash in between leaves a complete file, which is adopted.

import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { JobFolder } from '../job/job-folder.ts'
import { isSqliteDamage, SqliteFile } from '../job/sqlite-file.ts'
import { describeExportMismatch } from './fetch-config.ts'
import { FetchStop } from './fetch-faults.ts'
import type { FetchPart, PartParams } from './fetch-source.ts'
import { toPartFile } from './part-file.ts'

const stateFile = 'fetch.db'
export const fetchLockFile = 'fetch.lock'

/** The result of a fetch, as the later stages read it. */
export interface FetchedParts {
  /** The configuration that the folder is bound to, for `parseFetchConfig`. */
  readonly config: unknown
  /** Whether every part of the source's last listing has been fetched. */
  readonly isComplete: boolean
  readonly partsWaiting: number
  readonly partsEmpty: number
  /** Warnings that were shown to the user. */
  readonly warnings: readonly string[]
  /** Oldest first. */
  readonly parts: readonly FetchedPart[]
}

export interface FetchedPart {
  /** Path relative to the job's folder, such as `raw/mixpanel-2024-05-01.jsonl.gz`. */
  readonly object: string
  readonly sha256: string
  readonly bytes: number
}

/**
 * @returns null if no fetch was started in the folder.
 * @throws JobStopped if the state in the folder is damaged.
 */
export function readFetchedParts(folder: string): FetchedParts | null {
  if (!existsSync(join(folder, stateFile))) return null
  try {
    using state = new FetchState(folder)
    const config = state.config()
    if (config === null) return null
    const { waiting: partsWaiting, empty: partsEmpty } = state.counts()
    const warnings = [...new Set(state.warnings().map(({ line }) => line))]
    const parts = state.fetchedParts()
    return { config: JSON.parse(config), isComplete: state.isComplete(), partsWaiting, partsEmpty, warnings, parts }
  } catch (error) {
    throw toStateDamageError(folder, error)
  }
}

/** `split`: replaced by parts with smaller windows. `empty`: the source has no data there, so there is no file. */
export type PartState = 'waiting' | 'done' | 'empty' | 'split'

/** A line for the user. */
export interface FetchWarning {
  /** The id of the part; empty for a warning about the whole fetch. */
  readonly part: string
  readonly line: string
}

export interface StoredPart extends FetchPart {
  readonly state: PartState
  readonly savedBytes: number
}

type Row = Omit<StoredPart, 'asks'> & { readonly asks: string }

/** How long the times of calls are kept: longer than an hour, the longest span of a source's limits. */
const callsKeptMs = 2 * 3_600_000
const schema = `
  CREATE TABLE IF NOT EXISTS fetch (config TEXT NOT NULL, is_complete INTEGER NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS part (
    place INTEGER NOT NULL, id TEXT PRIMARY KEY, asks TEXT NOT NULL, state TEXT NOT NULL, bytes INTEGER,
    saved_bytes INTEGER NOT NULL DEFAULT 0, sha256 TEXT) STRICT;
  CREATE INDEX IF NOT EXISTS part_place ON part (state, place, id);
  CREATE INDEX IF NOT EXISTS part_order ON part (place);
  CREATE INDEX IF NOT EXISTS part_bytes ON part (state, bytes);
  CREATE TABLE IF NOT EXISTS call (at_ms INTEGER NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS warning (part TEXT NOT NULL, line TEXT NOT NULL, PRIMARY KEY (part, line)) STRICT;`

const selectParts = 'SELECT id, asks, state, bytes, saved_bytes AS savedBytes FROM part'

export class FetchState extends SqliteFile {
  readonly #folder: string

  constructor(folder: string) {
    super(join(folder, stateFile), `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; ${schema}`, () => undefined)
    this.#folder = folder
  }

  /**
   * Binds the folder to a configuration. Until data is fetched, it may be bound again to another configuration, such as one
   * with the right region.
   * @throws FetchStop when something was fetched with another configuration.
   */
  bindTo(config: string): void {
    const bound = this.config()
    if (bound === config) return
    if (bound !== null) {
      if (this.#hasData()) throw new FetchStop(describeExportMismatch(this.#folder, bound, config))
      for (const id of this.ids()) rmSync(toPartFile(this.#folder, id).path, { force: true })
    }
    this.sql.exec('DELETE FROM part; DELETE FROM warning; DELETE FROM fetch')
    this.#run('INSERT INTO fetch VALUES (?, 0)', config)
  }

  /** Whether any data was fetched: also a complete file whose row does not say `done` yet, or the start of a large file. */
  #hasData(): boolean {
    const rows = this.sql.prepare(selectParts).iterate() as IterableIterator<Row>
    for (const { id, state, savedBytes } of rows)
      if (state === 'done' || savedBytes > 0 || existsSync(toPartFile(this.#folder, id).finalPath)) return true
    return false
  }

  /** The configuration that the folder is bound to; null before the first fetch. */
  config(): string | null {
    return (this.sql.prepare('SELECT config FROM fetch').pluck().get() as string | undefined) ?? null
  }

  /** Whether all parts were listed and none is waiting. */
  isComplete(): boolean {
    return this.sql.prepare('SELECT is_complete FROM fetch').pluck().get() === 1
  }

  markComplete(isComplete: boolean): void {
    this.#run('UPDATE fetch SET is_complete = ?', Number(isComplete))
  }

  /** Appends a part. @returns the stored part, which keeps its state if it was known before. */
  addPart(part: FetchPart): StoredPart {
    this.#insert(part, '(SELECT coalesce(max(place), 0) + 1 FROM part)')
    return toStoredPart(this.sql.prepare(`${selectParts} WHERE id = ?`).get(part.id) as Row)
  }

  /** @param place an SQL expression for the part's place in the order. */
  #insert({ id, asks, bytes }: FetchPart, place: string, ...values: readonly string[]): void {
    const add = `INSERT INTO part (id, asks, bytes, state, place) VALUES (?, ?, ?, 'waiting', ${place}) ON CONFLICT DO NOTHING`
    this.#run(add, id, JSON.stringify(asks), bytes, ...values)
  }

  inTransaction<T>(work: () => T): T {
    return this.sql.transaction(work)()
  }

  ids(): string[] {
    return this.sql.prepare('SELECT id FROM part ORDER BY place').pluck().all() as string[]
  }

  /** Deletes a part and its warnings. */
  remove(id: string): void {
    this.#run('DELETE FROM part WHERE id = ?', id)
    this.#run('DELETE FROM warning WHERE part = ?', id)
  }

  /** The oldest waiting part that is not excluded. */
  nextWaiting(isExcluded: (id: string) => boolean): StoredPart | null {
    const rows = this.sql.prepare(`${selectParts} WHERE state = 'waiting' ORDER BY place, id`).iterate()
    for (const row of rows as IterableIterator<Row>) if (!isExcluded(row.id)) return toStoredPart(row)
    return null
  }

  markDone(id: string, { sha256, bytes }: Omit<FetchedPart, 'object'>): void {
    this.#run(
      "UPDATE part SET state = 'done', sha256 = ?, bytes = ?, saved_bytes = ? WHERE id = ?",
      sha256,
      bytes,
      bytes,
      id,
    )
  }

  markEmpty(id: string): void {
    this.#run("UPDATE part SET state = 'empty', bytes = 0 WHERE id = ?", id)
  }

  /** Resets a part whose file is gone or whose object has changed. */
  markWaiting(id: string, { asks, bytes }: { readonly asks: PartParams; readonly bytes: number | null }): void {
    const again = "UPDATE part SET state = 'waiting', asks = ?, bytes = ?, saved_bytes = 0, sha256 = NULL WHERE id = ?"
    this.#run(again, JSON.stringify(asks), bytes, id)
  }

  /**
   * Replaces a part with its halves, at the part's place in the order. The halves stay in order, since part ids sort like
   * windows.
   */
  split(id: string, halves: readonly FetchPart[]): void {
    this.inTransaction(() => {
      this.#run("UPDATE part SET state = 'split' WHERE id = ?", id)
      for (const half of halves) this.#insert(half, '(SELECT place FROM part WHERE id = ?)', id)
    })
  }

  saveBytes(id: string, bytes: number): void {
    this.#run('UPDATE part SET saved_bytes = ? WHERE id = ?', bytes, id)
  }

  addCall(atMs: number): void {
    this.inTransaction(() => {
      this.#run('INSERT INTO call VALUES (?)', atMs)
      this.#run('DELETE FROM call WHERE at_ms < ?', atMs - callsKeptMs)
    })
  }

  /**
   * Moves calls with a future time to now: the clock was set back after those calls. Without this, the limits would wait
   * until the clock reaches their times again.
   */
  moveFutureCallsTo(nowMs: number): void {
    this.#run('UPDATE call SET at_ms = ? WHERE at_ms > ?', nowMs, nowMs)
  }

  /** Times of the calls of the last hours, ascending. */
  callsMs(): number[] {
    return this.sql.prepare('SELECT at_ms FROM call ORDER BY at_ms').pluck().all() as number[]
  }

  addWarning(part: string, line: string): void {
    this.#run('INSERT INTO warning VALUES (?, ?) ON CONFLICT DO NOTHING', part, line)
  }

  warnings(): FetchWarning[] {
    return this.sql.prepare('SELECT part, line FROM warning ORDER BY part').all() as FetchWarning[]
  }

  counts(): { readonly [figure in 'waiting' | 'done' | 'empty' | 'bytesDone']: number } {
    const rows = this.sql
      .prepare('SELECT state, count(*) AS n, coalesce(sum(bytes), 0) AS bytes FROM part GROUP BY state')
      .all() as { state: PartState; n: number; bytes: number }[]
    const findRow = (state: PartState) => rows.find(row => row.state === state) ?? { n: 0, bytes: 0 }
    return {
      waiting: findRow('waiting').n,
      done: findRow('done').n,
      empty: findRow('empty').n,
      bytesDone: findRow('done').bytes,
    }
  }

  /** The fetched parts in the source's order, oldest first. */
  fetchedParts(): FetchedPart[] {
    return this.sql
      .prepare("SELECT 'raw/' || id AS object, sha256, bytes FROM part WHERE state = 'done' ORDER BY place, id")
      .all() as FetchedPart[]
  }

  #run(sql: string, ...values: readonly (string | number | null)[]): void {
    this.sql.prepare(sql).run(...values)
  }
}

/** @returns JobStopped with what to do if SQLite reports damage of the file; any other error unchanged. */
export function toStateDamageError(folder: string, error: unknown, file = stateFile): unknown {
  return isSqliteDamage(error) ? new JobFolder(folder).damaged(file) : error
}

function toStoredPart({ asks, ...part }: Row): StoredPart {
  return { ...part, asks: JSON.parse(asks) as PartParams }
}
