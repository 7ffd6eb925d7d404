// Switches person processing off for the events of ids that send too many, in records that are encoded already: which
// project they are of is known only then. Imports neither count nor are touched. Source: docs/wire/ingestion.md 5, 9.

import type { HotKeys } from '#core/events/hot-keys.ts'
import type { PreparedEvents } from '#core/events/prepare-events.ts'
import { filterEvents } from '#core/log/record-filter.ts'
import { inSlices } from './in-slices.ts'

/**
 * @param uuids gets those of the events of hot ids, in their order; null: nobody asks.
 * @returns the same records, changed in place, and how many of them are of hot ids.
 */
export async function coolHotKeys(
  hotKeys: HotKeys,
  projectId: number,
  prepared: PreparedEvents,
  of: { readonly nowMs: number; readonly uuids: Set<string> | null },
): Promise<{ readonly cooled: PreparedEvents; readonly hotCount: number }> {
  const { main } = prepared
  if (main === null) return { cooled: prepared, hotCount: 0 }
  const { nowMs, uuids } = of
  const acceptedByLane = { ...prepared.acceptedByLane }
  let hotCount = 0
  const steps = filterEvents(main, event => {
    if (event.historicalMigration || !hotKeys.isHot(projectId, event.distinctId, nowMs)) return true
    acceptedByLane[event.lane]!--
    event.switchPersonsOff()
    acceptedByLane[event.lane] = (acceptedByLane[event.lane] ?? 0) + 1
    uuids?.add(event.uuid)
    hotCount++
    return true
  })
  return { cooled: { ...prepared, main: await inSlices(steps), acceptedByLane }, hotCount }
}
