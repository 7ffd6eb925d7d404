// The ledger of a job in `job.db`: facts that one record states about other records, the user of each device, the latest
// properties of groups and persons, and the events generated from these. Its content depends only on the staged records.
// Source: docs/wire/import.md §0, I1 to I6.

import type Database from 'better-sqlite3'
import { isJsonObject, isRawNumber, type JsonObject, type JsonValue, parseJson } from '#core/json.ts'
import type { ImportLedger } from '../records/import-ledger.ts'
import type { SourceFact } from '../records/import-source.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import type { JobDatabase } from './job-database.ts'
import { RecentMap } from './recent-map.ts'
import { ContentDamage } from './sqlite-file.ts'

/** Groups are sent before links. Source: docs/wire/import.md §2.5. */
export type GeneratedKind = 'group' | 'link'

interface GeneratedRow {
  readonly time_us: number
  readonly uuid: string
  readonly id: number
  readonly event: string
}

/** How many changed persons and groups are buffered before they are written. */
const changedMax = 20_000
/** Sizes of the in-memory caches, in characters. */
const cacheChars = { snapshots: 4 << 20, facts: 4 << 20, users: 4 << 20 }

export class JobLedger implements ImportLedger {
  readonly #database: Database.Database
  readonly #statements
  /** Caches the snapshots (properties of persons and groups) that are stored in the file. */
  readonly #snapshots = new RecentMap<JsonObject>(cacheChars.snapshots)
  /** Changed snapshots that are not stored yet. */
  readonly #changed = new Map<string, { readonly kind: string; readonly key: string; properties: JsonObject }>()
  readonly #facts = new RecentMap<string | null>(cacheChars.facts)
  readonly #users = new RecentMap<string | null>(cacheChars.users)

  constructor({ sql }: JobDatabase) {
    this.#database = sql
    this.#statements = prepareStatements(sql)
  }

  /** Must be called before the database's `commit`. */
  flush(): void {
    for (const [name, { kind, key, properties }] of this.#changed) {
      const text = JSON.stringify(properties)
      this.#statements.putSnapshot.run(kind, key, text)
      this.#snapshots.set(name, properties, text.length)
    }
    this.#changed.clear()
  }

  putFact(fact: SourceFact): void {
    // Make the text well-formed first, as SQLite stores it, so that cached values equal values read from the file.
    const [key, value] = [fact.key.toWellFormed(), fact.value.toWellFormed()]
    const name = joinKindAndKey(fact.kind, key)
    // Skips a known fact, since each of a person's records may repeat it.
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
    const countRows = (table: string) =>
      (this.#database.prepare(`SELECT count(*) AS n FROM ${table}`).get() as { n: number }).n
    return { all: countRows('link'), shared: countRows('shared_device') }
  }

  group(type: string, key: string, properties: JsonObject | null): JsonObject | null {
    return this.#replace('group', JSON.stringify([type, key]), before => properties ?? before ?? {})
  }

  person(distinctId: string, properties: JsonObject): JsonObject | null {
    return this.#replace('person', distinctId, () => properties)
  }

  /**
   * If a group returns to earlier properties, its event gets the same uuid again, and the receiver stores each uuid once.
   * So of events with the same uuid only the latest is kept, which decides the final properties.
   */
  addGenerated(kind: GeneratedKind, event: ImportedEvent): void {
    if (kind === 'group') this.#statements.forgetGroup.run(event.uuid)
    this.#statements.putGenerated.run(kind, event.timeUs, event.uuid, JSON.stringify(event))
  }

  forgetGenerated(): void {
    this.#database.exec('DELETE FROM generated')
  }

  /** The generated events of a kind, ordered by time and uuid. @throws ContentDamage */
  *generatedEvents(kind: GeneratedKind): IterableIterator<ImportedEvent> {
    // Events are read in pages, so that no statement stays open while the caller writes.
    const page = this.#database.prepare<[string, number, string, number], GeneratedRow>(
      'SELECT time_us, uuid, id, event FROM generated WHERE kind = ? AND (time_us, uuid, id) > (?, ?, ?) ORDER BY time_us, uuid, id LIMIT 1000',
    )
    for (
      let last: GeneratedRow | undefined = { time_us: Number.MIN_SAFE_INTEGER, uuid: '', id: 0, event: '' };
      last !== undefined;
    ) {
      const rows: GeneratedRow[] = page.all(kind, last.time_us, last.uuid, last.id)
      for (const { event } of rows) yield parseStoredObject(event) as unknown as ImportedEvent
      last = rows.at(-1)
    }
  }

  /**
   * Adds a name to the group that the scan is reading: records with the same timestamp.
   * @param name hex.
   * @returns whether the name is new to the group.
   */
  addTimestampName(name: string): boolean {
    return this.#statements.putTimestampName.run(Buffer.from(name, 'hex')).changes > 0
  }

  forgetTimestampGroup(): void {
    this.#statements.forgetTimestampGroup.run()
  }

  #replace(kind: string, key: string, change: (before: JsonObject | null) => JsonObject): JsonObject | null {
    const name = joinKindAndKey(kind, key)
    const changed = this.#changed.get(name)
    const before = changed?.properties ?? this.#snapshots.get(name) ?? this.#storedSnapshot(name, kind, key)
    const properties = change(before)
    if (before !== null && isSameInOrder(before, properties)) return before
    if (changed !== undefined) changed.properties = properties
    else {
      if (this.#changed.size >= changedMax) this.flush()
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
    putTimestampName: database.prepare('INSERT OR IGNORE INTO timestamp_group VALUES (?)'),
    forgetTimestampGroup: database.prepare('DELETE FROM timestamp_group'),
  }
}

/** @throws ContentDamage */
function parseStoredObject(text: string): JsonObject {
  try {
    const value = parseJson(text)
    if (isJsonObject(value)) return value
  } catch (cause) {
    throw new ContentDamage('a row of the ledger is not JSON', { cause })
  }
  throw new ContentDamage('a row of the ledger is not a JSON object')
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
