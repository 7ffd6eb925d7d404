// On which day a live event is charged: the day its first copy was accepted, however often and however late it is sent
// again. Usage is frozen by days, so a later copy must not take its event to another day. Who knows the earlier copies
// is the event store (`findChargedTimes`); when it is asked is decided by `services/processing/process-one-chunk.ts`.

import type { EventIdentity, StoredEvent } from '../events/stored-event.ts'
import { dayMs } from '../time.ts'

const none: readonly StoredEvent[] = []

/**
 * The live events that were accepted on a later UTC day than they happened on: an earlier copy of theirs may stand on
 * a day that is frozen, or nearly. Copies of all other events are accepted on two days at most, the day of the event
 * and, by a clock that is ahead, the one before it; both are still open then, and the later copy takes the event along.
 * Source: ours, docs/decisions/0012-charged-on-the-day-of-the-first-copy.md.
 */
export function lateLiveEvents(rows: readonly StoredEvent[]): readonly StoredEvent[] {
  let late: StoredEvent[] | null = null
  for (const row of rows) {
    if (row.importJobId !== 0 || dayOf(row.timestampMs) >= dayOf(row.capturedAtMs)) continue
    late ??= []
    late.push(row)
  }
  return late ?? none
}

/**
 * @param late what `lateLiveEvents` makes of `rows`.
 * @param chargedTimes for each of `late`, when the stored copy was charged, epoch ms; null when there is no copy.
 * @returns `rows`, in their order, with the day of charge of the late ones; copies within the chunk share the earliest.
 */
export function chargeOnce(
  rows: readonly StoredEvent[],
  late: readonly StoredEvent[],
  chargedTimes: readonly (number | null)[],
): readonly StoredEvent[] {
  const earliest = new Map<string, number>()
  late.forEach((row, index) => {
    const key = identityKey(row)
    const known = earliest.get(key) ?? row.capturedAtMs
    earliest.set(key, Math.min(known, row.capturedAtMs, chargedTimes[index] ?? known))
  })
  const charged = new Map<StoredEvent, StoredEvent>()
  for (const row of late) {
    const chargedAtMs = earliest.get(identityKey(row))!
    if (chargedAtMs !== row.chargedAtMs) charged.set(row, { ...row, chargedAtMs })
  }
  return charged.size === 0 ? rows : rows.map(row => charged.get(row) ?? row)
}

/** Equal for copies of one event and for nothing else. */
export function identityKey({ projectId, timestampMs, event, distinctId, uuid }: EventIdentity): string {
  return `${projectId} ${dayOf(timestampMs)} ${uuid} ${event.length} ${event}${distinctId}`
}

/** Whole UTC days since 1970. */
function dayOf(timeMs: number): number {
  return Math.floor(timeMs / dayMs)
}
