// The ledger of a job, a SQLite file: facts that one record holds about others, the user of each device, the latest
// properties of groups and persons, and the events generated from all that. Its content depends on the staged bytes alone.
// Source: docs/wire/import.md §0, I1 to I6.

import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import { isJsonObject, isRawNumber, type JsonObject, type JsonValue, parseJson, parsePlainJson } from '#core/json.ts'
import { matchesSchema, type Schema } from '../records/file-schema.ts'
import type { ImportLedger } from '../records/import-ledger.ts'
import type { SourceFact } from '../records/import-source.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { computeLedgerSum } from './ledger-sum.ts'
import { RecentMap } from './recent-map.ts'
import { isSqliteDamage } from './sqlite-damage.ts'

/** Groups are sent before links. Source: docs/wire/import.md §2.5. */
export type GeneratedKind = 'group' | 'link'

/** How many changed persons and groups are buffered before they are written. */
const changedMax = 20_000
/** Sizes of the in-memory caches, in characters. */
const cacheChars = { snapshots: 4 << 20, facts: 4 << 20, users: 4 << 20 }

const schema = `
  CREATE TABLE IF NOT EXISTS fact (kind TEXT, key TEXT, value TEXT, PRIMARY KEY (kind, key)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS link (device TEXT PRIMARY KEY, user TEXT) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS shared_device (device TEXT PRIMARY KEY) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS snapshot (kind TEXT, key TEXT, properties TEXT, PRIMARY KEY (kind, key)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS generated (id INTEGER PRIMARY KEY, kind TEXT, time_us INTEGER, uuid TEXT, event TEXT);
  CREATE INDEX IF NOT EXISTS generated_in_order ON generated (kind, time_us, uuid, id);
  CREATE INDEX IF NOT EXISTS generated_groups ON generated (uuid) WHERE kind = 'group';
  CREATE TABLE IF NOT EXISTS moment (name BLOB PRIMARY KEY) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS progress (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;`

/** The file does not hold what a scan writes. */
export class LedgerDamage extends Error {}

/**
 * @param expected the checksum that the scan returned.
 * @throws LedgerDamage if the checksum differs. @throws JobPaused
 */
export async function checkLedger(path: string, expected: string, signal: AbortSignal): Promise<void> {
  const ledger = new JobLedger(path)
  try {
    if ((await ledger.sha256(signal)) !== expected)
      throw new LedgerDamage(`${path} does not hold the rows that the scan wrote`)
  } finally {
    ledger.close()
  }
}

export class JobLedger implements ImportLedger {
  readonly #database: Database.Database
  readonly #statements
  /** Cached rows of the file. */
  readonly #snapshots = new RecentMap<JsonObject>(cacheChars.snapshots)
  /** Rows not yet written. */
  readonly #changed = new Map<string, { readonly kind: string; readonly key: string; properties: JsonObject }>()
  readonly #facts = new RecentMap<string | null>(cacheChars.facts)
  readonly #users = new RecentMap<string | null>(cacheChars.users)

  /** @throws LedgerDamage */
  constructor(path: string) {
    const database = new Database(path)
    try {
      // Commits lost in a power failure are scanned again. Checkpoint rarely: persons and devices come in no order, so
      // commits keep changing the same pages.
      database.exec(
        `PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 8192; ${schema}`,
      )
      this.#statements = prepareStatements(database)
    } catch (error) {
      database.close()
      throw isDamage(error) ? new LedgerDamage(`${path} is not a ledger`, { cause: error }) : error
    }
    this.#database = database
  }

  /**
   * Checks the whole file, then runs `question` on it.
   * @returns null if the file is missing or damaged.
   */
  static ask<T>(path: string, question: (ledger: JobLedger) => T): T | null {
    if (!existsSync(path)) return null
    let ledger: JobLedger | undefined
    try {
      ledger = new JobLedger(path)
      return ledger.#database.pragma('quick_check(1)', { simple: true }) === 'ok' ? question(ledger) : null
    } catch (error) {
      if (isDamage(error)) return null
      throw error
    } finally {
      ledger?.close()
    }
  }

  /** The checksum of the rows that sending reads. @throws LedgerDamage, JobPaused */
  async sha256(signal: AbortSignal): Promise<string> {
    try {
      return await computeLedgerSum(this.#database, signal)
    } catch (error) {
      throw isDamage(error) ? new LedgerDamage('the ledger cannot be read', { cause: error }) : error
    }
  }

  /** Starts a transaction that `commit` or `rollback` ends. */
  begin(): void {
    this.#database.exec('BEGIN')
  }

  commit(): void {
    this.#writeChanged()
    this.#database.exec('COMMIT')
  }

  /** Drops everything since `begin`. */
  rollback(): void {
    this.#changed.clear()
    this.#snapshots.clear()
    this.#facts.clear()
    this.#users.clear()
    if (this.#database.inTransaction) this.#database.exec('ROLLBACK')
  }

  close(): void {
    this.#database.close()
  }

  putFact(fact: SourceFact): void {
    // Make well-formed first, as SQLite stores it, so that cached and re-read values are equal.
    const [key, value] = [fact.key.toWellFormed(), fact.value.toWellFormed()]
    const name = joinKindAndKey(fact.kind, key)
    // Each record of a person may repeat the same fact.
    if (this.#facts.get(name) === value) return
    this.#statements.putFact.run(fact.kind, key, value)
    this.#facts.set(name, value, value.length)
  }

  findFact(kind: string, rawKey: string): string | null {
    const key = rawKey.toWellFormed()
    const name = joinKindAndKey(kind, key)
    const known = this.#facts.get(name)
    if (known !== undefined) return known
    const fact = this.#statements.fact.get(kind, key)?.value ?? null
    this.#facts.set(name, fact, fact?.length ?? 0)
    return fact
  }

  link(deviceId: string, userId: string): 'linked' | 'known' | 'shared' {
    const known = this.userOf(deviceId)
    if (known === userId) return 'known'
    if (known !== null) {
      this.#statements.putShared.run(deviceId)
      return 'shared'
    }
    this.#statements.putLink.run(deviceId, userId)
    this.#users.set(deviceId, userId, userId.length)
    return 'linked'
  }

  /** @returns the user that the device is linked to; null for an id that is not linked. */
  userOf(deviceId: string): string | null {
    const known = this.#users.get(deviceId)
    if (known !== undefined) return known
    const user = this.#statements.link.get(deviceId)?.user ?? null
    this.#users.set(deviceId, user, user?.length ?? 0)
    return user
  }

  /** How many devices have a user, and how many have more than one. */
  deviceCounts(): { readonly all: number; readonly shared: number } {
    const count = (table: string) =>
      (this.#database.prepare(`SELECT count(*) AS n FROM ${table}`).get() as { n: number }).n
    return { all: count('link'), shared: count('shared_device') }
  }

  group(type: string, key: string, properties: JsonObject | null): JsonObject | null {
    return this.#replace('group', JSON.stringify([type, key]), before => properties ?? before ?? {})
  }

  person(distinctId: string, properties: JsonObject): JsonObject | null {
    return this.#replace('person', distinctId, () => properties)
  }

  /**
   * A group that returns to earlier properties gets the same uuid again, and the receiver stores a uuid once. Only the
   * latest event is kept, since that one decides the final properties.
   */
  addGenerated(kind: GeneratedKind, event: ImportedEvent): void {
    if (kind === 'group') this.#statements.forgetGroup.run(event.uuid)
    this.#statements.putGenerated.run(kind, event.timeUs, event.uuid, JSON.stringify(event))
  }

  generatedCount(kind?: GeneratedKind): number {
    const where = kind === undefined ? '' : `WHERE kind = '${kind}'`
    return (this.#database.prepare(`SELECT count(*) AS n FROM generated ${where}`).get() as { n: number }).n
  }

  /**
   * Groups first, then links, each by time and uuid.
   * @param skipped how many to leave out at the start.
   * @throws LedgerDamage
   */
  *generatedEvents(skipped = 0): IterableIterator<ImportedEvent> {
    type Row = { kind: string; time_us: number; uuid: string; id: number; event: string }
    const pageSql = (where: string, offset: number) =>
      `SELECT * FROM generated ${where} ORDER BY kind, time_us, uuid, id LIMIT 1000 OFFSET ${offset}`
    // Read in pages, so that no statement stays open while events are sent.
    const next = this.#database.prepare<[string, number, string, number], Row>(
      pageSql('WHERE (kind, time_us, uuid, id) > (?, ?, ?, ?)', 0),
    )
    let rows = this.#database.prepare<[], Row>(pageSql('', skipped)).all()
    for (let last = rows.at(-1); last !== undefined; last = rows.at(-1)) {
      for (const { event } of rows) yield parseStoredObject(event) as unknown as ImportedEvent
      rows = next.all(last.kind, last.time_us, last.uuid, last.id)
    }
  }

  /**
   * Adds a name to the timestamp group that the scan is reading.
   * @param name hex.
   * @returns whether the name is new to the group.
   */
  addTimestampName(name: string): boolean {
    return this.#statements.putTimestampName.run(Buffer.from(name, 'hex')).changes > 0
  }

  forgetTimestampGroup(): void {
    this.#statements.forgetTimestampGroup.run()
  }

  /** @returns null if none is stored. @throws LedgerDamage if it does not match the schema. */
  readProgress<T>(name: string, schema: Schema<T>): T | null {
    const text = this.#statements.progress.get(name)?.value
    if (text === undefined) return null
    const value = parseOrUndefined(text)
    if (!matchesSchema(schema, value)) throw new LedgerDamage(`the progress of ${name} does not match its schema`)
    return value
  }

  putProgress(name: string, value: unknown): void {
    this.#statements.putProgress.run(name, JSON.stringify(value))
  }

  #replace(kind: string, key: string, change: (before: JsonObject | null) => JsonObject): JsonObject | null {
    const name = joinKindAndKey(kind, key)
    const changed = this.#changed.get(name)
    const before = changed?.properties ?? this.#snapshots.get(name) ?? this.#storedSnapshot(name, kind, key)
    const properties = change(before)
    if (before !== null && isSameInOrder(before, properties)) return before
    if (changed !== undefined) changed.properties = properties
    else {
      if (this.#changed.size >= changedMax) this.#writeChanged()
      this.#changed.set(name, { kind, key, properties })
    }
    return before
  }

  #storedSnapshot(name: string, kind: string, key: string): JsonObject | null {
    const text = this.#statements.snapshot.get(kind, key)?.properties
    if (text === undefined) return null
    const properties = parseStoredObject(text)
    this.#snapshots.set(name, properties, text.length)
    return properties
  }

  #writeChanged(): void {
    for (const [name, { kind, key, properties }] of this.#changed) {
      const text = JSON.stringify(properties)
      this.#statements.putSnapshot.run(kind, key, text)
      this.#snapshots.set(name, properties, text.length)
    }
    this.#changed.clear()
  }
}

function prepareStatements(database: Database.Database) {
  return {
    fact: database.prepare<[string, string], { value: string }>('SELECT value FROM fact WHERE kind = ? AND key = ?'),
    // Skip unchanged rows, which are nearly all of them: rewriting them would cost pages of the WAL.
    putFact: database.prepare(
      'INSERT INTO fact VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value WHERE value <> excluded.value',
    ),
    link: database.prepare<[string], { user: string }>('SELECT user FROM link WHERE device = ?'),
    putLink: database.prepare('INSERT INTO link VALUES (?, ?)'),
    putShared: database.prepare('INSERT OR IGNORE INTO shared_device VALUES (?)'),
    snapshot: database.prepare<[string, string], { properties: string }>(
      'SELECT properties FROM snapshot WHERE kind = ? AND key = ?',
    ),
    putSnapshot: database.prepare('INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?)'),
    putGenerated: database.prepare('INSERT INTO generated (kind, time_us, uuid, event) VALUES (?, ?, ?, ?)'),
    forgetGroup: database.prepare(`DELETE FROM generated WHERE kind = 'group' AND uuid = ?`),
    putTimestampName: database.prepare('INSERT OR IGNORE INTO moment VALUES (?)'),
    forgetTimestampGroup: database.prepare('DELETE FROM moment'),
    progress: database.prepare<[string], { value: string }>('SELECT value FROM progress WHERE name = ?'),
    putProgress: database.prepare('INSERT OR REPLACE INTO progress VALUES (?, ?)'),
  }
}

function isDamage(error: unknown): boolean {
  return error instanceof LedgerDamage || isSqliteDamage(error)
}

/** @throws LedgerDamage */
function parseStoredObject(text: string): JsonObject {
  try {
    const value = parseJson(text)
    if (isJsonObject(value)) return value
  } catch (cause) {
    throw new LedgerDamage('a row of the ledger is not JSON', { cause })
  }
  throw new LedgerDamage('a row of the ledger is not a JSON object')
}

function parseOrUndefined(text: string): unknown {
  try {
    return parsePlainJson(text)
  } catch {
    // No schema accepts undefined.
    return undefined
  }
}

function joinKindAndKey(kind: string, key: string): string {
  return `${kind}\n${key}`
}

/** Whether both would be written as the same text, including the order of keys. */
function isSameInOrder(a: JsonValue, b: JsonValue): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (isRawNumber(a) || isRawNumber(b)) return isRawNumber(a) && isRawNumber(b) && a.rawJSON === b.rawJSON
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const [membersOfA, membersOfB] = [Object.entries(a), Object.entries(b)]
  if (membersOfA.length !== membersOfB.length) return false
  return membersOfA.every(([key, value], index) => {
    const [keyOfB, valueOfB] = membersOfB[index]!
    return key === keyOfB && isSameInOrder(value, valueOfB)
  })
}
