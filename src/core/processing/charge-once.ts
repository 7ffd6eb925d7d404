// Decides on which day a live event is charged: the day on which its first copy was accepted, however often and late it is
// sent again. Usage is frozen day by day, so a later copy must not move its event to another day. The event store has the
// earlier copies (`findChargedTimes`); `services/processing/insert-rows.ts` decides when to query it.

import { buildIdentityKey, type StoredEvent } from '../events/stored-event.ts'
import { dayMs } from '../time.ts'

const none: readonly StoredEvent[] = []

/**
 * The live events that were accepted on a later UTC day than they happened on: an earlier copy may be charged on a day
 * that is frozen or nearly so. Copies of all other events are accepted on at most two days: the day of the event and,
 * if the client's clock is ahead, the day before. Both are still open then, and the event is charged on the later
 * copy's day.
 * Source: ours, docs/decisions/0012-charged-on-the-day-of-the-first-copy.md.
 */
export function findLateLiveEvents(rows: readonly StoredEvent[]): readonly StoredEvent[] {
  let late: StoredEvent[] | null = null
  for (const row of rows) {
    if (row.importJobId !== 0 || toDayNumber(row.timestampMs) >= toDayNumber(row.capturedAtMs)) continue
    late ??= []
    late.push(row)
  }
  return late ?? none
}

/**
 * Sets the charge time of late events to the charge time of their first copy.
 * @param late the result of `findLateLiveEvents(rows)`.
 * @param chargedTimes for each event of `late`, when the stored copy was charged, epoch ms; null if there is no copy.
 * @returns `rows` in their order. Copies within the chunk share the earliest time.
 */
export function chargeLateEventsOnce(
  rows: readonly StoredEvent[],
  late: readonly StoredEvent[],
  chargedTimes: readonly (number | null)[],
): readonly StoredEvent[] {
  const earliest = new Map<string, number>()
  late.forEach((row, index) => {
    const key = buildIdentityKey(row)
    const known = earliest.get(key) ?? row.capturedAtMs
    earliest.set(key, Math.min(known, row.capturedAtMs, chargedTimes[index] ?? known))
  })
  const charged = new Map<StoredEvent, StoredEvent>()
  for (const row of late) {
    const chargedAtMs = earliest.get(buildIdentityKey(row))!
    if (chargedAtMs !== row.chargedAtMs) charged.set(row, { ...row, chargedAtMs })
  }
  return charged.size === 0 ? rows : rows.map(row => charged.get(row) ?? row)
}

/** Whole UTC days since 1970. */
function toDayNumber(timeMs: number): number {
  return Math.floor(timeMs / dayMs)
}
