// The ledger of a job, a SQLite file: the facts that records hold for others, which device belongs to whom, what was last
// said of groups and persons, and the events that come of it. What it holds depends on the staged bytes alone.
// Source: docs/wire/import.md §0, I1 to I6.

import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import { isJsonObject, isRawNumber, type JsonObject, type JsonValue, parseJson, parsePlainJson } from '#core/json.ts'
import { isOf, type Schema } from '../records/file-schema.ts'
import type { ImportLedger } from '../records/import-ledger.ts'
import type { SourceFact } from '../records/import-source.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { sumOfLedger } from './ledger-sum.ts'
import { RecentMap } from './recent-map.ts'
import { isSqliteDamage } from './sqlite-damage.ts'

/** Groups are sent before links. Source: docs/wire/import.md §2.5. */
export type GeneratedKind = 'group' | 'link'

/** How many persons and groups are held that the file does not have yet. */
const changedMax = 20_000
/** How many characters are kept in memory of what the file has; the rest is looked up. */
const keptChars = { snapshots: 4 << 20, facts: 4 << 20, users: 4 << 20 }

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

/** What the file holds is not what a scan writes. */
export class LedgerDamage extends Error {}

/**
 * @param expected the sum that a scan gave.
 * @throws LedgerDamage for another sum. @throws JobPaused
 */
export async function checkLedger(path: string, expected: string, signal: AbortSignal): Promise<void> {
  const ledger = new JobLedger(path)
  try {
    if ((await ledger.sha256(signal)) !== expected) throw new LedgerDamage(`${path} holds other rows than were scanned`)
  } finally {
    ledger.close()
  }
}

export class JobLedger implements ImportLedger {
  readonly #database: Database.Database
  readonly #statements
  /** As the file has them. */
  readonly #snapshots = new RecentMap<JsonObject>(keptChars.snapshots)
  /** As the file will have them. */
  readonly #changed = new Map<string, { readonly kind: string; readonly key: string; properties: JsonObject }>()
  readonly #facts = new RecentMap<string | null>(keptChars.facts)
  readonly #users = new RecentMap<string | null>(keptChars.users)

  /** @throws LedgerDamage */
  constructor(path: string) {
    const database = new Database(path)
    try {
      // What is lost with the power is scanned again. The log may hold many commits before its pages go into the file: they
      // change the same pages again and again, of persons and devices in no order.
      database.exec(
        `PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 8192; ${schema}`,
      )
      this.#statements = statementsOf(database)
    } catch (error) {
      database.close()
      throw isDamage(error) ? new LedgerDamage(`${path} is no ledger`, { cause: error }) : error
    }
    this.#database = database
  }

  /**
   * @returns the answer of a ledger that is whole; null where there is none, or one that holds something else than a scan
   *   writes. Everything in it is read for that.
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

  /** The sum over all that sending takes from it. @throws LedgerDamage, JobPaused */
  async sha256(signal: AbortSignal): Promise<string> {
    try {
      return await sumOfLedger(this.#database, signal)
    } catch (error) {
      throw isDamage(error) ? new LedgerDamage('the ledger cannot be read', { cause: error }) : error
    }
  }

  /** Everything until `commit` counts only with it. */
  begin(): void {
    this.#database.exec('BEGIN')
  }

  commit(): void {
    this.#writeChanged()
    this.#database.exec('COMMIT')
  }

  /** Forgets everything since `begin`. */
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
    // As the file will have it: what is known must not depend on whether it was looked up.
    const [key, value] = [fact.key.toWellFormed(), fact.value.toWellFormed()]
    const name = nameOf(fact.kind, key)
    // Every record of a person may say the same of it.
    if (this.#facts.get(name) === value) return
    this.#statements.putFact.run(fact.kind, key, value)
    this.#facts.set(name, value, value.length)
  }

  findFact(kind: string, asked: string): string | null {
    const key = asked.toWellFormed()
    const name = nameOf(kind, key)
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

  /** @returns the user that a device is linked to; null for other ids. */
  userOf(deviceId: string): string | null {
    const known = this.#users.get(deviceId)
    if (known !== undefined) return known
    const user = this.#statements.link.get(deviceId)?.user ?? null
    this.#users.set(deviceId, user, user?.length ?? 0)
    return user
  }

  /** How many devices users came to, and to how many of them more than one. */
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
   * A group that is again what it once was has the uuid of before, of which the receiver takes one: only the last one
   * leaves the group as it is.
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
   * @param skipped how many of them are left out.
   * @throws LedgerDamage
   */
  *generatedEvents(skipped = 0): IterableIterator<ImportedEvent> {
    type Row = { kind: string; time_us: number; uuid: string; id: number; event: string }
    const page = (where: string, offset: number) =>
      `SELECT * FROM generated ${where} ORDER BY kind, time_us, uuid, id LIMIT 1000 OFFSET ${offset}`
    // In pages, so that no statement stays open while events are sent.
    const next = this.#database.prepare<[string, number, string, number], Row>(
      page('WHERE (kind, time_us, uuid, id) > (?, ?, ?, ?)', 0),
    )
    let rows = this.#database.prepare<[], Row>(page('', skipped)).all()
    for (let last = rows.at(-1); last !== undefined; last = rows.at(-1)) {
      for (const { event } of rows) yield storedJson(event) as unknown as ImportedEvent
      rows = next.all(last.kind, last.time_us, last.uuid, last.id)
    }
  }

  /**
   * Keeps what a scan saw of the timestamp group that it is at.
   * @param name hex.
   * @returns whether it is new.
   */
  addTimestampName(name: string): boolean {
    return this.#statements.putTimestampName.run(Buffer.from(name, 'hex')).changes > 0
  }

  forgetTimestampGroup(): void {
    this.#statements.forgetTimestampGroup.run()
  }

  /** @returns null where there is none. @throws LedgerDamage for one of another kind. */
  readProgress<T>(name: string, schema: Schema<T>): T | null {
    const text = this.#statements.progress.get(name)?.value
    if (text === undefined) return null
    const value = jsonIn(text)
    if (!isOf(schema, value)) throw new LedgerDamage(`the progress of ${name} is not what it has to be`)
    return value
  }

  putProgress(name: string, value: unknown): void {
    this.#statements.putProgress.run(name, JSON.stringify(value))
  }

  #replace(kind: string, key: string, change: (before: JsonObject | null) => JsonObject): JsonObject | null {
    const name = nameOf(kind, key)
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
    const properties = storedJson(text)
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

function statementsOf(database: Database.Database) {
  return {
    fact: database.prepare<[string, string], { value: string }>('SELECT value FROM fact WHERE kind = ? AND key = ?'),
    // A row that stays as it is costs no page of the log, and nearly all of them do.
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
function storedJson(text: string): JsonObject {
  try {
    const value = parseJson(text)
    if (isJsonObject(value)) return value
  } catch (cause) {
    throw new LedgerDamage('a row of the ledger is no JSON', { cause })
  }
  throw new LedgerDamage('a row of the ledger is no object of JSON')
}

function jsonIn(text: string): unknown {
  try {
    return parsePlainJson(text)
  } catch {
    // No schema has room for it.
    return undefined
  }
}

function nameOf(kind: string, key: string): string {
  return `${kind}\n${key}`
}

/** Whether both are the same text. */
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
