// Counts events by name and day, with the first and last time of each name. An export may have a different name in each
// record, so names beyond a limit are counted together.

import type { ImportedEvent } from '#importer/records/imported-event.ts'
import { formatTime, usPerMs, utcDay } from '#importer/records/source-time.ts'
import type { DayCount, EventCount } from './import-report.ts'

/**
 * The most names that are counted separately: in total, and summed over the days. A much larger report could not be written
 * or read.
 */
export const countedMax = { names: 100_000, ofDays: 500_000 }

const usPerDay = 86_400_000 * usPerMs

/** How many source names are kept per event: names made of ids would otherwise fill the report. */
const sourceNamesMax = 20

interface NameCount {
  count: number
  /** The names that the event has in the source. */
  readonly sources: Set<string>
  firstUs: number
  lastUs: number
}

export class EventCounts {
  total = 0
  readonly #max: typeof countedMax
  readonly #names = new Map<string, NameCount>()
  readonly #days = new Map<number, { readonly counts: Map<string, number>; others: number }>()
  /** Number of names in `#days`, summed over the days. */
  #namesOfDays = 0
  #others = 0
  #firstUs = Number.POSITIVE_INFINITY
  #lastUs = Number.NEGATIVE_INFINITY

  constructor(max = countedMax) {
    this.#max = max
  }

  /** @param isGenerated whether the importer generated the event, so that it has no name in the source. */
  add({ event, timeUs, sourceName = event }: ImportedEvent, isGenerated = false): void {
    this.total++
    this.#firstUs = Math.min(this.#firstUs, timeUs)
    this.#lastUs = Math.max(this.#lastUs, timeUs)
    const name = this.#addToName(event, timeUs)
    if (!isGenerated && name !== null && name.sources.size < sourceNamesMax) name.sources.add(sourceName)
    this.#addToDay(event, Math.floor(timeUs / usPerDay))
  }

  /** @returns null for a name that is counted together with others. */
  #addToName(event: string, timeUs: number): NameCount | null {
    if (this.#names.size >= this.#max.names && !this.#names.has(event)) {
      this.#others++
      return null
    }
    const name = this.#names.getOrInsertComputed(event, () => ({
      ...{ count: 0, sources: new Set<string>(), firstUs: timeUs, lastUs: timeUs },
    }))
    name.count++
    if (timeUs < name.firstUs) name.firstUs = timeUs
    if (timeUs > name.lastUs) name.lastUs = timeUs
    return name
  }

  #addToDay(event: string, number: number): void {
    const day = this.#days.getOrInsertComputed(number, () => ({ counts: new Map<string, number>(), others: 0 }))
    const count = day.counts.get(event)
    if (count === undefined && this.#namesOfDays >= this.#max.ofDays) day.others++
    else {
      if (count === undefined) this.#namesOfDays++
      day.counts.set(event, (count ?? 0) + 1)
    }
  }

  /** How many events have names that are not in `names()`. */
  get others(): number {
    return this.#others
  }

  /** Sorted by frequency, most frequent first. */
  names(): readonly EventCount[] {
    return [...this.#names]
      .map(([event, { count, sources, firstUs, lastUs }]) => ({
        event,
        sources: [...sources].toSorted(compareTexts),
        count,
        first: formatTime(firstUs),
        last: formatTime(lastUs),
      }))
      .toSorted((a, b) => b.count - a.count || compareTexts(a.event, b.event))
  }

  days(): readonly DayCount[] {
    return [...this.#days]
      .toSorted(([a], [b]) => a - b)
      .map(([number, { counts, others }]) => ({
        day: utcDay(number * usPerDay),
        count: [...counts.values()].reduce((sum, count) => sum + count, others),
        events: Object.fromEntries([...counts].toSorted(([a], [b]) => compareTexts(a, b))),
      }))
  }

  range(): { readonly first: string; readonly last: string } | null {
    return this.total === 0 ? null : { first: formatTime(this.#firstUs), last: formatTime(this.#lastUs) }
  }
}

export function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
