// Finds records that a source exported twice. Such records happened at the same time, so they follow each other in the
// order of staging, and only the records of one timestamp group have to be remembered: a few in memory, all others on the disk,
// since the profiles of an export may be millions in one timestamp group.
// Source: docs/wire/import.md §1.9 (same line twice), §2.3, §2.6 (`duplicate_in_source`, `differs_in_source`).

import type { JsonObject } from '#core/json.ts'
import { sha256Hex } from '../job/sha256.ts'
import { canonicalJson } from '../records/canonical-json.ts'
import { contentUuid } from '../records/deterministic-uuid.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import type { ScanNote } from './scan-notes.ts'

export type Repeat = NonNullable<ScanNote['d']>

export interface TimedRecord {
  readonly timeUs: number | null
  readonly events: readonly ImportedEvent[]
  readonly value: JsonObject
  /** How long its text is, of which its properties are made. */
  readonly textLength: number
}

/** What does not fit into memory of the timestamp group that is read. Has to go on with the rest of a scan, or back with it. */
export interface TimestampGroup {
  /** @param name hex. @returns whether it is new. */
  addTimestampName(name: string): boolean
  forgetTimestampGroup(): void
}

const keptMax = 10_000
/** As `heldLengthOf` counts. */
const heldLengthMax = 4 * 1024 * 1024
/** What an event takes beside the text of its record, which may give thousands. */
const eventLength = 300

export class Repeats {
  readonly #others: TimestampGroup
  readonly #keptMax: number
  #timeUs: number | null = null
  /** The first record of the timestamp group, which is only named once there is another: mostly there is none. */
  #first: TimedRecord | null = null
  /** Names of records, and of what they say. */
  #seen = new Set<string>()
  /** Records by name that only repeats would be compared with: naming what they say costs more than all else here. */
  #held = new Map<string, readonly ImportedEvent[]>()
  #heldLength = 0

  /** @param max how many names are kept in memory. */
  constructor(others: TimestampGroup, max = keptMax) {
    this.#others = others
    this.#keptMax = max
  }

  /** @returns how the record repeats one before it; null for a new one. */
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
    const name = nameOf(events)
    if (this.#isNew(name)) {
      this.#hold(name, record)
      return null
    }
    if (first.uuid === contentUuid(source, value)) return 'c'
    return this.#saysNews(name, events) ? 'o' : 'i'
  }

  /** For a later run that goes on here. */
  state(): { timeUs: number | null; seen: readonly string[] } {
    this.#nameFirst()
    for (const [name, events] of this.#held) this.#isNew(contentName(name, events))
    this.#release()
    return { timeUs: this.#timeUs, seen: [...this.#seen] }
  }

  restore({ timeUs, seen }: { timeUs: number | null; seen: readonly string[] }): void {
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
    const name = nameOf(this.#first.events)
    if (this.#isNew(name)) this.#hold(name, this.#first)
    this.#first = null
  }

  #hold(name: string, record: TimedRecord): void {
    const length = heldLengthOf(record)
    if (this.#heldLength + length > heldLengthMax) {
      this.#isNew(contentName(name, record.events))
      return
    }
    this.#held.set(name, record.events)
    this.#heldLength += length
  }

  /** Whether no record of that name before this one said the same. */
  #saysNews(name: string, events: readonly ImportedEvent[]): boolean {
    const held = this.#held.get(name)
    if (held !== undefined) this.#isNew(contentName(name, held))
    this.#held.delete(name)
    return this.#isNew(contentName(name, events))
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

/** How much memory a record takes that is held, in about UTF-16 code units. */
export function heldLengthOf({ events, textLength }: Pick<TimedRecord, 'events' | 'textLength'>): number {
  return textLength + eventLength * events.length
}

/** Two records with one id but another event, time or person are two. */
function nameOf(events: readonly ImportedEvent[]): string {
  const parts = events.flatMap(({ uuid, event, distinctId, timeUs }) => [uuid, event, distinctId, timeUs])
  return sha256Hex(JSON.stringify(parts)).slice(0, 32)
}

/** Hashes what would be sent. Times of transport are left out, since they differ between exports. */
function contentName(name: string, events: readonly ImportedEvent[]): string {
  const content = events.map(({ properties }) => canonicalJson(properties))
  return sha256Hex(`${name}\n${content.join('\n')}`).slice(0, 32)
}
