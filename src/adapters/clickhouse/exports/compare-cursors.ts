// Compares places of events the way the engine sorts a list of events, to merge the rows of several queries.

import type { EventCursor } from '#ports/events/event-queries.ts'

export function compareCursors(a: EventCursor, b: EventCursor, descending: boolean): number {
  const ascending =
    a.timestampMs - b.timestampMs ||
    compare(toSortableUuid(a.uuid), toSortableUuid(b.uuid)) ||
    compareNumbers(a.tieBreak, b.tieBreak)
  return descending ? -ascending : ascending
}

/** Swaps the halves of a UUID, since ClickHouse compares the second half first. */
function toSortableUuid(uuid: string): string {
  return uuid.slice(19) + uuid.slice(0, 18)
}

function compareNumbers(a: string, b: string): number {
  return a.length - b.length || compare(a, b)
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
