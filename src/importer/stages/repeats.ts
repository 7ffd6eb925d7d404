// Finds records that a source exported twice. Repeats have the same time and are therefore adjacent after staging, so only
// the records of one timestamp group (records with the same time) need to be remembered: a few in memory, the rest on disk,
// since an export's profiles may put millions into one group. Source: docs/wire/import.md §1.9 (same line twice), §2.3,
// §2.6 (`duplicate_in_source`, `differs_in_source`).

import type { JsonObject } from '#core/json.ts'
import { sha256Hex } from '../job/sha256.ts'
import { toCanonicalJson } from '../records/canonical-json.ts'
import { deriveContentUuid } from '../records/deterministic-uuid.ts'
import { allowNull, type Static, Type } from '../records/file-schema.ts'
import type { ImportedEvent } from '../records/imported-event.ts'

/**
 * How a record repeats an earlier record: without an id, but with the same content; or with the same id, and the same or
 * different content.
 */
export type Repeat = 'collapsed' | 'duplicate_in_source' | 'differs_in_source'

export interface TimedRecord {
  readonly timeUs: number | null
  readonly events: readonly ImportedEvent[]
  readonly value: JsonObject
  /** Length of the record's text. */
  readonly textLength: number
}

/**
 * The names (hashes) of the current timestamp group that do not fit into memory. Committed or rolled back with the scan's
 * state.
 */
export interface TimestampGroup {
  /** @param name in hexadecimal. @returns whether the name is new to the group. */
  addTimestampName(name: string): boolean
  forgetTimestampGroup(): void
}

export const repeatsSchema = Type.Object({ timeUs: allowNull(Type.Number()), seen: Type.Array(Type.String()) })
type RepeatsState = Static<typeof repeatsSchema>

const keptMax = 10_000
/** Bounds the memory for records whose content is not yet hashed, in the unit of `estimateHeldRecordLength`. */
const heldLengthMax = 4 * 1024 * 1024
/** The memory counted per event in addition to the record's text, since a record may yield thousands of events. */
const eventLength = 300

export class Repeats {
  readonly #others: TimestampGroup
  readonly #keptMax: number
  #timeUs: number | null = null
  /** The first record of the group. Its name is computed only once there is a second record, which is rare. */
  #first: TimedRecord | null = null
  /** The names (hashes) of records and of their contents that were seen in the group. */
  #seen = new Set<string>()
  /**
   * Events by name. Their content is hashed only if a record is repeated, since hashing is the most expensive step here.
   */
  #held = new Map<string, readonly ImportedEvent[]>()
  #heldLength = 0

  /** @param max how many names are kept in memory. */
  constructor(others: TimestampGroup, max = keptMax) {
    this.#others = others
    this.#keptMax = max
  }

  /** @returns how the record repeats an earlier record; null if it does not. */
  find(source: string, record: TimedRecord): Repeat | null {
    const { timeUs, events, value } = record
    const [first] = events
    if (first === undefined) return null
    if (timeUs !== this.#timeUs || this.#isEmpty) {
      this.#forget()
      this.#timeUs = timeUs
      this.#first = record
      return null
    }
    this.#nameFirst()
    const name = hashIdentity(events)
    if (this.#isNew(name)) {
      this.#hold(name, record)
      return null
    }
    if (first.uuid === deriveContentUuid(source, value)) return 'collapsed'
    return this.#saysNews(name, events) ? 'differs_in_source' : 'duplicate_in_source'
  }

  /** The state for a later run to continue from. */
  state(): RepeatsState {
    this.#nameFirst()
    for (const [name, events] of this.#held) this.#isNew(hashContent(name, events))
    this.#release()
    return { timeUs: this.#timeUs, seen: [...this.#seen] }
  }

  restore({ timeUs, seen }: RepeatsState): void {
    this.#timeUs = timeUs
    this.#first = null
    this.#release()
    this.#seen = new Set(seen)
  }

  get #isEmpty(): boolean {
    return this.#first === null && this.#seen.size === 0
  }

  #nameFirst(): void {
    if (this.#first === null) return
    const name = hashIdentity(this.#first.events)
    if (this.#isNew(name)) this.#hold(name, this.#first)
    this.#first = null
  }

  #hold(name: string, record: TimedRecord): void {
    const length = estimateHeldRecordLength(record)
    if (this.#heldLength + length > heldLengthMax) {
      this.#isNew(hashContent(name, record.events))
      return
    }
    this.#held.set(name, record.events)
    this.#heldLength += length
  }

  /** Whether the content differs from the content of every earlier record with this name. */
  #saysNews(name: string, events: readonly ImportedEvent[]): boolean {
    const held = this.#held.get(name)
    if (held !== undefined) this.#isNew(hashContent(name, held))
    this.#held.delete(name)
    return this.#isNew(hashContent(name, events))
  }

  #isNew(name: string): boolean {
    if (this.#seen.has(name)) return false
    if (this.#seen.size >= this.#keptMax) return this.#others.addTimestampName(name)
    this.#seen.add(name)
    return true
  }

  #forget(): void {
    if (this.#seen.size >= this.#keptMax) this.#others.forgetTimestampGroup()
    if (this.#seen.size > 0) this.#seen.clear()
    this.#release()
  }

  #release(): void {
    if (this.#held.size > 0) this.#held.clear()
    this.#heldLength = 0
  }
}

/** The memory that a held record takes, roughly in UTF-16 code units. */
export function estimateHeldRecordLength({ events, textLength }: Pick<TimedRecord, 'events' | 'textLength'>): number {
  return textLength + eventLength * events.length
}

/** Includes event, time and person, since records that differ in these are different even if they have the same id. */
function hashIdentity(events: readonly ImportedEvent[]): string {
  const parts = events.flatMap(({ uuid, event, distinctId, timeUs }) => [uuid, event, distinctId, timeUs])
  return sha256Hex(JSON.stringify(parts)).slice(0, 32)
}

/** Hashes the events, not the record, since transport times in a record differ between exports. */
function hashContent(name: string, events: readonly ImportedEvent[]): string {
  const content = events.map(({ properties }) => toCanonicalJson(properties))
  return sha256Hex(`${name}\n${content.join('\n')}`).slice(0, 32)
}
