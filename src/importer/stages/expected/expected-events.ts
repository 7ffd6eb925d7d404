// Counts the events of a job that the service must have stored. One pass; memory grows only with the events of one day, and
// with at most `countedMax` names. Source: docs/wire/import.md §2.10, §3.12.

import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { normalizeDistinctId, toStoredName } from '#core/capture/normalize-event.ts'
import { isGeneratedEventName, mayBeGeneratedEvent } from '#core/events/generated-event.ts'
import { countedMax } from '#importer/stages/report/event-counts.ts'
import type { StagedPart } from '../../job/staged-part.ts'
import type { ImportedEvent } from '../../records/imported-event.ts'
import { utcDay } from '../../records/source-time.ts'

/** Distinct ids are counted by their CRC-32 modulo this. */
export const bucketCount = 256

export interface ExpectedEvents {
  readonly rows: number
  /** Unique events by UTC day and name. */
  readonly counts: ReadonlyMap<string, ReadonlyMap<string, number>>
  /** Unique events with names beyond `countedMax`, by UTC day and by the name's bucket (`findNameBucket`). */
  readonly otherCounts: ReadonlyMap<string, readonly number[]>
  readonly idBuckets: readonly number[]
  /**
   * Chosen by hash, so that another run of the same job asks for the same events. Each is a list of the events sent with
   * the same day, name, distinct id and uuid; the service stores only one of them.
   */
  readonly samples: readonly (readonly ImportedEvent[])[]
}

const otherParts = 64

/** The bucket in which a name is counted if it is not counted separately. */
export function findNameBucket(event: string): number {
  return crc32(event) % otherParts
}

const sampleCountDefault = 200

function formatEventKey({ uuid, distinctId, event }: ImportedEvent): string {
  return `${uuid}\n${distinctId}\n${event}`
}

/** Normalises name and distinct id like the service. */
function normalizeAsStored(event: ImportedEvent): ImportedEvent {
  const name = toStoredName(event.event.toWellFormed(), true)
  const distinctId = normalizeDistinctId(event.distinctId.toWellFormed())
  return name === event.event && distinctId === event.distinctId ? event : { ...event, event: name, distinctId }
}

interface Sample {
  readonly rank: string
  readonly events: ImportedEvent[]
}

/** How many events with the same key a sample contains. */
const sameKeyMax = 20

function formatSampleKey(event: ImportedEvent): string {
  return `${utcDay(event.timeUs)}\n${formatEventKey(event)}`
}

export class ExpectedTally {
  readonly #sampleCount: number
  readonly #max: Pick<typeof countedMax, 'ofDays'>
  readonly #counts = new Map<string, Map<string, number>>()
  /** Number of names in `#counts`, summed over the days. */
  #namesOfDays = 0
  readonly #otherCounts = new Map<string, number[]>()
  readonly #buckets = Array.from({ length: bucketCount }, () => 0)
  /**
   * Keys of events: the event store treats an event with a known key as a repetition. One set per open day, since the day
   * is part of the key.
   */
  readonly #seen = new Map<string, KeySet>()
  /** Keys of generated events, without the day: the service keeps the time at which it first stored them. */
  readonly #generatedSeen = new KeySet()
  /** By `formatSampleKey`. */
  #samples = new Map<string, Sample>()
  /** The largest hash that can be chosen as a sample. Until there are enough samples, it is a text larger than any hash. */
  #worstRank = '\u{100}'
  #rows = 0

  /**
   * @param sampleCount how many events to compare with all fields.
   * @param max how many names to count separately.
   */
  constructor(sampleCount = sampleCountDefault, max: Pick<typeof countedMax, 'ofDays'> = countedMax) {
    this.#sampleCount = sampleCount
    this.#max = max
  }

  add(sent: ImportedEvent): void {
    const event = normalizeAsStored(sent)
    const day = utcDay(event.timeUs)
    const seen = mayBeGeneratedEvent(event.event, event.uuid)
      ? this.#generatedSeen
      : this.#seen.getOrInsertComputed(day, () => new KeySet())
    const keyHash = hash('sha1', formatEventKey(event), 'latin1')
    if (seen.add(keyHash)) this.#count(event, day, keyHash)
    else this.#addToSample(event)
  }

  #addToSample(event: ImportedEvent): void {
    const sample = this.#samples.get(formatSampleKey(event))
    sample?.events.push(event)
    // Drop the sample's earliest event: of events with the same key, the service keeps the last.
    if (sample !== undefined && sample.events.length > sameKeyMax) sample.events.shift()
  }

  /** Call at the start of each part. Forgets the keys of earlier days, since the part has no events of these days. */
  beginPart({ id }: Pick<StagedPart, 'id'>): void {
    const day = id.slice(0, id.indexOf('/'))
    if (!/^\d/.test(day)) return
    for (const each of this.#seen.keys()) if (each < day) this.#seen.delete(each)
  }

  expected(): ExpectedEvents {
    return {
      rows: this.#rows,
      counts: this.#counts,
      otherCounts: this.#otherCounts,
      idBuckets: this.#buckets,
      samples: [...this.#chosen().values()].map(({ events }) => events),
    }
  }

  #count(event: ImportedEvent, day: string, rank: string): void {
    this.#rows++
    this.#countName(day, event.event)
    this.#buckets[crc32(event.distinctId) % bucketCount]!++
    this.#considerAsSample(event, rank)
  }

  /** @param rank the hash of the event's key, which chooses samples at random. */
  #considerAsSample(event: ImportedEvent, rank: string): void {
    if (rank > this.#worstRank) return
    this.#samples.set(formatSampleKey(event), { rank, events: [event] })
    if (this.#samples.size < 8 * this.#sampleCount) return
    this.#samples = this.#chosen()
    this.#worstRank = [...this.#samples.values()].at(-1)!.rank
  }

  #countName(day: string, name: string): void {
    const names = this.#counts.getOrInsertComputed(day, () => new Map<string, number>())
    const count = names.get(name)
    // Generated events may be stored under another day, so their names are compared over all days and always counted.
    if (count !== undefined || this.#namesOfDays < this.#max.ofDays || isGeneratedEventName(name)) {
      if (count === undefined) this.#namesOfDays++
      names.set(name, (count ?? 0) + 1)
    } else {
      const others = this.#otherCounts.getOrInsertComputed(day, () => new Array<number>(otherParts).fill(0))
      others[findNameBucket(name)]!++
    }
  }

  #chosen(): Map<string, Sample> {
    const sorted = [...this.#samples].toSorted(([, a], [, b]) => (a.rank < b.rank ? -1 : 1))
    return new Map(sorted.slice(0, this.#sampleCount))
  }
}

const startSlots = 1_024
const fullShare = 0.7

/**
 * A set of seen keys that needs 16 bytes per key or less, so that ten million keys of one day fit in memory. It stores a
 * 64-bit hash of each key, in halves, since a BigInt would take three times as long: of ten million keys, any two collide
 * with a probability of three in a million.
 */
class KeySet {
  /** A slot is empty if both halves are 0; a hash of 0 becomes 1. */
  #low = new Uint32Array(startSlots)
  #high = new Uint32Array(startSlots)
  #size = 0

  /** @param hash of the key, with one character per byte. @returns whether the key is new. */
  add(hash: string): boolean {
    const low = readBits32(hash, 0)
    const high = readBits32(hash, 4)
    if (!this.#put(low === 0 && high === 0 ? 1 : low, high)) return false
    if (++this.#size > this.#low.length * fullShare) this.#grow()
    return true
  }

  #put(low: number, high: number): boolean {
    const mask = this.#low.length - 1
    for (let at = low & mask; ; at = (at + 1) & mask) {
      const [foundLow, foundHigh] = [this.#low[at]!, this.#high[at]!]
      if (foundLow === low && foundHigh === high) return false
      if (foundLow !== 0 || foundHigh !== 0) continue
      this.#low[at] = low
      this.#high[at] = high
      return true
    }
  }

  #grow(): void {
    const [low, high] = [this.#low, this.#high]
    this.#low = new Uint32Array(low.length * 2)
    this.#high = new Uint32Array(high.length * 2)
    for (let at = 0; at < low.length; at++) if (low[at] !== 0 || high[at] !== 0) this.#put(low[at]!, high[at]!)
  }
}

/** @param bytes a text with one character per byte. */
function readBits32(bytes: string, at: number): number {
  let bits = 0
  for (let index = at + 3; index >= at; index--) bits = (bits << 8) | bytes.charCodeAt(index)
  return bits >>> 0
}
