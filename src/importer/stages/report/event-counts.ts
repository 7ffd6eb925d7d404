// Counts events by name and day, with the first and the last time of each name. Anybody may have sent a source events of any
// names, as many as there are records: beyond some, names are counted together.

import type { ImportedEvent } from '#importer/records/imported-event.ts'
import { timeText, usPerMs } from '#importer/records/source-time.ts'
import type { DayCount, EventCount } from './rehearsal-report.ts'

/** Names that are counted one by one, and names of days. A report of a few times as many could be neither written nor read. */
export const countedMax = { names: 100_000, ofDays: 500_000 }

const usPerDay = 86_400_000 * usPerMs

interface NameCount {
  count: number
  firstUs: number
  lastUs: number
}

interface DayNames {
  readonly counts: Map<string, number>
  others: number
}

export class EventCounts {
  total = 0
  readonly #max: typeof countedMax
  readonly #names = new Map<string, NameCount>()
  readonly #days = new Map<number, DayNames>()
  /** The names of all days together. */
  #namesOfDays = 0
  #others = 0
  #firstUs = Number.POSITIVE_INFINITY
  #lastUs = Number.NEGATIVE_INFINITY

  constructor(max = countedMax) {
    this.#max = max
  }

  add({ event, timeUs }: ImportedEvent): void {
    this.total++
    this.#firstUs = Math.min(this.#firstUs, timeUs)
    this.#lastUs = Math.max(this.#lastUs, timeUs)
    this.#addToName(event, timeUs)
    this.#addToDay(event, Math.floor(timeUs / usPerDay))
  }

  #addToName(event: string, timeUs: number): void {
    const name = this.#names.get(event)
    if (name !== undefined) {
      name.count++
      if (timeUs < name.firstUs) name.firstUs = timeUs
      if (timeUs > name.lastUs) name.lastUs = timeUs
    } else if (this.#names.size < this.#max.names) this.#names.set(event, { count: 1, firstUs: timeUs, lastUs: timeUs })
    else this.#others++
  }

  #addToDay(event: string, number: number): void {
    let day = this.#days.get(number)
    if (day === undefined) {
      day = { counts: new Map(), others: 0 }
      this.#days.set(number, day)
    }
    const count = day.counts.get(event)
    if (count === undefined && this.#namesOfDays >= this.#max.ofDays) day.others++
    else {
      if (count === undefined) this.#namesOfDays++
      day.counts.set(event, (count ?? 0) + 1)
    }
  }

  /** Events whose names are not among `names`. */
  get others(): number {
    return this.#others
  }

  /** The most frequent first. */
  names(): readonly EventCount[] {
    return [...this.#names]
      .map(([event, { count, firstUs, lastUs }]) => ({
        event,
        count,
        first: timeText(firstUs),
        last: timeText(lastUs),
      }))
      .toSorted((a, b) => b.count - a.count || compareTexts(a.event, b.event))
  }

  days(): readonly DayCount[] {
    return [...this.#days]
      .toSorted(([a], [b]) => a - b)
      .map(([number, { counts, others }]) => ({
        day: dayText(number),
        count: [...counts.values()].reduce((sum, count) => sum + count, others),
        events: Object.fromEntries([...counts].toSorted(([a], [b]) => compareTexts(a, b))),
      }))
  }

  range(): { readonly first: string; readonly last: string } | null {
    return this.total === 0 ? null : { first: timeText(this.#firstUs), last: timeText(this.#lastUs) }
  }
}

export function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function dayText(number: number): string {
  return new Date((number * usPerDay) / usPerMs).toISOString().slice(0, 10)
}
