// Finds records that a source exported twice. Such records happened at the same time, so they follow each other in the
// order of staging, and only the records of one moment have to be remembered: a few in memory, all others on the disk,
// since the profiles of an export may be millions of one moment.
// Source: docs/wire/import.md §1.9 (same line twice), §2.3, §2.6 (`duplicate_in_source`).

import type { JsonObject } from '#core/json.ts'
import { sha256Hex } from '../job/sha256.ts'
import { contentUuid } from '../records/deterministic-uuid.ts'
import type { ImportedEvent } from '../records/imported-event.ts'

/** As `ScanNote.d`. */
export type Repeat = 'c' | 'i'

/** What does not fit into memory of the moment that is read. Has to go on with the rest of a scan, or back with it. */
export interface MomentNames {
  /** @param name hex. @returns whether it is new. */
  addMomentName(name: string): boolean
  forgetMoment(): void
}

const keptMax = 10_000

export class Repeats {
  readonly #others: MomentNames
  readonly #keptMax: number
  #timeUs: number | null = null
  /** The first record of the moment, which is only named once there is another: mostly there is none. */
  #first: readonly ImportedEvent[] | null = null
  #seen = new Set<string>()

  /** @param max how many names are kept in memory. */
  constructor(others: MomentNames, max = keptMax) {
    this.#others = others
    this.#keptMax = max
  }

  /** @returns how the record repeats one before it; null for a new one. */
  find(source: string, timeUs: number | null, events: readonly ImportedEvent[], value: JsonObject): Repeat | null {
    const [first] = events
    if (first === undefined) return null
    if (timeUs !== this.#timeUs || this.#isEmpty) {
      this.#forget()
      this.#timeUs = timeUs
      this.#first = events
      return null
    }
    this.#nameFirst()
    if (this.#isNew(nameOf(events))) return null
    return first.uuid === contentUuid(source, value) ? 'c' : 'i'
  }

  /** For a later run that goes on here. */
  state(): { timeUs: number | null; seen: readonly string[] } {
    this.#nameFirst()
    return { timeUs: this.#timeUs, seen: [...this.#seen] }
  }

  restore({ timeUs, seen }: { timeUs: number | null; seen: readonly string[] }): void {
    this.#timeUs = timeUs
    this.#first = null
    this.#seen = new Set(seen)
  }

  get #isEmpty(): boolean {
    return this.#first === null && this.#seen.size === 0
  }

  #nameFirst(): void {
    if (this.#first !== null) this.#isNew(nameOf(this.#first))
    this.#first = null
  }

  #isNew(name: string): boolean {
    if (this.#seen.has(name)) return false
    if (this.#seen.size >= this.#keptMax) return this.#others.addMomentName(name)
    this.#seen.add(name)
    return true
  }

  #forget(): void {
    if (this.#seen.size >= this.#keptMax) this.#others.forgetMoment()
    if (this.#seen.size > 0) this.#seen.clear()
  }
}

/** Two records with one id but another event, time or person are two. */
function nameOf(events: readonly ImportedEvent[]): string {
  const parts = events.flatMap(({ uuid, event, distinctId, timeUs }) => [uuid, event, distinctId, timeUs])
  return sha256Hex(JSON.stringify(parts)).slice(0, 32)
}
