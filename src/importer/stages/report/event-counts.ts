// Counts events by name and day, with the first and the last time of each name.

import type { ImportedEvent } from '#importer/records/imported-event.ts'
import { timeText, usPerMs } from '#importer/records/source-time.ts'
import type { DayCount, EventCount } from './rehearsal-report.ts'

const usPerDay = 86_400_000 * usPerMs

interface NameCount {
  count: number
  firstUs: number
  lastUs: number
}

export class EventCounts {
  total = 0
  readonly #names = new Map<string, NameCount>()
  readonly #days = new Map<number, Map<string, number>>()

  add({ event, timeUs }: ImportedEvent): void {
    this.total++
    const name = this.#names.get(event)
    if (name === undefined) this.#names.set(event, { count: 1, firstUs: timeUs, lastUs: timeUs })
    else {
      name.count++
      if (timeUs < name.firstUs) name.firstUs = timeUs
      if (timeUs > name.lastUs) name.lastUs = timeUs
    }
    const number = Math.floor(timeUs / usPerDay)
    const day = this.#days.get(number) ?? new Map<string, number>()
    if (day.size === 0) this.#days.set(number, day)
    day.set(event, (day.get(event) ?? 0) + 1)
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
      .map(([number, events]) => ({
        day: dayText(number),
        count: [...events.values()].reduce((sum, count) => sum + count, 0),
        events: Object.fromEntries([...events].toSorted(([a], [b]) => compareTexts(a, b))),
      }))
  }

  range(): { readonly first: string; readonly last: string } | null {
    let [firstUs, lastUs] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
    for (const name of this.#names.values()) {
      firstUs = Math.min(firstUs, name.firstUs)
      lastUs = Math.max(lastUs, name.lastUs)
    }
    return this.total === 0 ? null : { first: timeText(firstUs), last: timeText(lastUs) }
  }
}

export function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function dayText(number: number): string {
  return new Date((number * usPerDay) / usPerMs).toISOString().slice(0, 10)
}
