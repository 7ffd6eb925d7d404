// The state of a fetch, in `fetch.db` of the job folder: parts with their hashes, and the calls of the last hours. A row
// says `done` only after the file has its final name, so a crash in between leaves a complete file, which is adopted.

import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { JobFolder } from '../job/job-folder.ts'
import { isSqliteDamage } from '../job/sqlite-damage.ts'
import { hourMs } from './call-limits.ts'
import { FetchStop } from './fetch-faults.ts'
import type { FetchPart, PartAsks } from './fetch-source.ts'
import { formatOtherExport } from './other-export-text.ts'
import { toPartFile } from './part-file.ts'

/** `split`: replaced by parts with smaller windows. `empty`: the source has no data there, so there is no file. */
export type PartState = 'waiting' | 'done' | 'empty' | 'split'

/** A part as the later stages read it. */
export interface FetchedPart {
  /** Path relative to the job's folder, such as `raw/mixpanel-2024-05-01.jsonl.gz`. */
  readonly object: string
  readonly sha256: string
  readonly bytes: number
  readonly lineCount: number | null
}

export interface StoredPart extends FetchPart {
  readonly state: PartState
  readonly savedBytes: number
  readonly sha256: string | null
}

interface Row {
  readonly id: string
  readonly asks: string
  readonly state: PartState
  readonly bytes: number | null
  readonly saved_bytes: number
  readonly sha256: string | null
  readonly line_count: number | null
}

const stateFile = 'fetch.db'
const schema = `
  CREATE TABLE IF NOT EXISTS setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS part (
    place REAL NOT NULL, id TEXT PRIMARY KEY, asks TEXT NOT NULL, state TEXT NOT NULL, bytes INTEGER,
    saved_bytes INTEGER NOT NULL DEFAULT 0, sha256 TEXT, line_count INTEGER) STRICT;
  CREATE INDEX IF NOT EXISTS part_place ON part (state, place);
  CREATE INDEX IF NOT EXISTS part_order ON part (place);
  CREATE INDEX IF NOT EXISTS part_bytes ON part (state, bytes);
  CREATE TABLE IF NOT EXISTS call (at_ms INTEGER NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS warning (part TEXT NOT NULL, line TEXT NOT NULL, PRIMARY KEY (part, line)) STRICT;`

export class FetchState {
  readonly #database: Database.Database
  readonly #folder: string

  /** @throws JobStopped when the file is damaged. */
  constructor(folder: string) {
    this.#folder = folder
    this.#database = new Database(join(folder, stateFile))
    try {
      this.#database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; ${schema}`)
    } catch (error) {
      this.#database.close()
      throw toStateDamage(folder, error)
    }
  }

  close(): void {
    this.#database.close()
  }

  /**
   * Binds the folder to a configuration. It may be bound to another one, such as the right region, until data is fetched.
   * @throws FetchStop when something was fetched with another configuration.
   */
  bindTo(config: string): void {
    const bound = this.config()
    if (bound === config) return
    if (bound !== null) {
      if (this.#hasData()) throw new FetchStop(formatOtherExport(this.#folder, bound, config))
      for (const id of this.ids()) rmSync(toPartFile(this.#folder, toObjectPath(id)).path, { force: true })
      this.#run('DELETE FROM part')
      this.#run('DELETE FROM warning')
    }
    this.#run("INSERT INTO setting VALUES ('config', ?) ON CONFLICT DO UPDATE SET value = excluded.value", config)
  }

  /** Whether any file has data, even a complete file whose row does not say `done` yet or the start of a large file. */
  #hasData(): boolean {
    const rows = this.#database.prepare('SELECT * FROM part').iterate() as IterableIterator<Row>
    for (const { id, state, saved_bytes } of rows)
      if (state === 'done' || saved_bytes > 0 || existsSync(join(this.#folder, toObjectPath(id)))) return true
    return false
  }

  /** Null before the first fetch. */
  config(): string | null {
    return this.#setting('config')
  }

  /** Whether all parts were listed and none is waiting. */
  isComplete(): boolean {
    return this.#setting('is_complete') === 'yes'
  }

  markComplete(isComplete: boolean): void {
    const keep = "INSERT INTO setting VALUES ('is_complete', ?) ON CONFLICT DO UPDATE SET value = excluded.value"
    this.#run(keep, isComplete ? 'yes' : 'no')
  }

  /** Appends a part. @returns the stored part, which keeps its state if it was known before. */
  addPart(part: FetchPart): StoredPart {
    const next = '(SELECT coalesce(max(place), 0) + 1 FROM part)'
    const add = `INSERT INTO part (place, id, asks, state, bytes) VALUES (${next}, ?, ?, 'waiting', ?) ON CONFLICT DO NOTHING`
    this.#run(add, part.id, JSON.stringify(part.asks), part.bytes)
    return this.findPart(part.id)!
  }

  inTransaction<T>(work: () => T): T {
    return this.#database.transaction(work)()
  }

  findPart(id: string): StoredPart | null {
    const row = this.#database.prepare('SELECT * FROM part WHERE id = ?').get(id) as Row | undefined
    return row === undefined ? null : toStoredPart(row)
  }

  ids(): string[] {
    return this.#database.prepare('SELECT id FROM part ORDER BY place').pluck().all() as string[]
  }

  /** Deletes a part and its warnings. */
  remove(id: string): void {
    this.#run('DELETE FROM part WHERE id = ?', id)
    this.#run('DELETE FROM warning WHERE part = ?', id)
  }

  /** The oldest waiting part that is not among `others`. */
  nextWaiting(isExcluded: (id: string) => boolean): StoredPart | null {
    const rows = this.#database.prepare("SELECT * FROM part WHERE state = 'waiting' ORDER BY place").iterate()
    for (const row of rows as IterableIterator<Row>) if (!isExcluded(row.id)) return toStoredPart(row)
    return null
  }

  markDone(id: string, { sha256, bytes, lineCount }: Omit<FetchedPart, 'object'>): void {
    const done = `UPDATE part SET state = 'done', sha256 = ?, bytes = ?, line_count = ?, saved_bytes = ? WHERE id = ?`
    this.#run(done, sha256, bytes, lineCount, bytes, id)
  }

  markEmpty(id: string): void {
    this.#run("UPDATE part SET state = 'empty', bytes = 0 WHERE id = ?", id)
  }

  /** Resets a part whose file is gone or whose object has changed. */
  markWaiting(id: string, { asks, bytes }: { readonly asks: PartAsks; readonly bytes: number | null }): void {
    const again = "UPDATE part SET state = 'waiting', asks = ?, bytes = ?, saved_bytes = 0, sha256 = NULL WHERE id = ?"
    this.#run(again, JSON.stringify(asks), bytes, id)
  }

  /** Replaces a part by its halves, at the same place in the order. */
  split(id: string, halves: readonly FetchPart[]): void {
    this.inTransaction(() => {
      const find = `SELECT place, (SELECT min(place) FROM part AS n WHERE n.place > part.place) AS next FROM part WHERE id = ?`
      const { place, next } = this.#database.prepare(find).get(id) as { place: number; next: number | null }
      const step = ((next ?? place + 1) - place) / (halves.length + 1)
      this.#run("UPDATE part SET state = 'split' WHERE id = ?", id)
      halves.forEach((half, index) => {
        const add = "INSERT INTO part (place, id, asks, state, bytes) VALUES (?, ?, ?, 'waiting', ?)"
        this.#run(add, place + step * (index + 1), half.id, JSON.stringify(half.asks), half.bytes)
      })
    })
  }

  saveBytes(id: string, bytes: number): void {
    this.#run('UPDATE part SET saved_bytes = ? WHERE id = ?', bytes, id)
  }

  addCall(atMs: number): void {
    this.inTransaction(() => {
      this.#run('INSERT INTO call VALUES (?)', atMs)
      this.#run('DELETE FROM call WHERE at_ms < ?', atMs - 2 * hourMs)
    })
  }

  /**
   * Moves calls with a future time to now. The clock was set back since they were made, and the limits would otherwise wait
   * until it reaches that time again.
   */
  moveFutureCallsTo(nowMs: number): void {
    this.#run('UPDATE call SET at_ms = ? WHERE at_ms > ?', nowMs, nowMs)
  }

  /** Times of the calls of the last hours, ascending. */
  callsMs(): number[] {
    return this.#database.prepare('SELECT at_ms FROM call ORDER BY at_ms').pluck().all() as number[]
  }

  addWarning(part: string, line: string): void {
    this.#run('INSERT INTO warning VALUES (?, ?) ON CONFLICT DO NOTHING', part, line)
  }

  warnings(): { readonly part: string; readonly line: string }[] {
    return this.#database.prepare('SELECT part, line FROM warning ORDER BY part').all() as {
      part: string
      line: string
    }[]
  }

  counts(): { readonly [state in PartState]: number } & { readonly bytesDone: number; readonly bytesWaiting: number } {
    const rows = this.#database
      .prepare('SELECT state, count(*) AS n, coalesce(sum(bytes), 0) AS bytes FROM part GROUP BY state')
      .all() as { state: PartState; n: number; bytes: number }[]
    const findRow = (state: PartState) => rows.find(row => row.state === state)
    const count = (state: PartState) => findRow(state)?.n ?? 0
    return {
      waiting: count('waiting'),
      done: count('done'),
      empty: count('empty'),
      split: count('split'),
      bytesDone: findRow('done')?.bytes ?? 0,
      bytesWaiting: findRow('waiting')?.bytes ?? 0,
    }
  }

  /** Yields the parts in the order of the source, oldest first. */
  *fetchedParts(): IterableIterator<FetchedPart> {
    for (const row of this.#database.prepare("SELECT * FROM part WHERE state = 'done' ORDER BY place").all() as Row[])
      yield { object: toObjectPath(row.id), sha256: row.sha256!, bytes: row.bytes!, lineCount: row.line_count }
  }

  #setting(name: string): string | null {
    const row = this.#database.prepare('SELECT value FROM setting WHERE name = ?').get(name)
    return (row as { value: string } | undefined)?.value ?? null
  }

  #run(sql: string, ...values: readonly (string | number | null)[]): void {
    this.#database.prepare(sql).run(...values)
  }
}

/** @returns JobStopped with what to do if SQLite reports damage; any other error unchanged. */
export function toStateDamage(folder: string, error: unknown): unknown {
  return isSqliteDamage(error) ? new JobFolder(folder).damaged(stateFile) : error
}

export function toObjectPath(id: string): string {
  return `raw/${id}`
}

function toStoredPart({ id, asks, state, bytes, saved_bytes: savedBytes, sha256 }: Row): StoredPart {
  return { id, asks: JSON.parse(asks) as PartAsks, state, bytes, savedBytes, sha256 }
}
