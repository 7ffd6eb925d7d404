// Switches person processing off for the events of ids that send too many. It works on encoded records, because their project
// is not known earlier. Imports neither count nor are touched. Source: docs/wire/ingestion.md 5, 9.

import type { HotKeys } from '#core/capture/hot-keys.ts'
import type { PreparedEvents } from '#core/capture/prepare-events.ts'
import { filterEvents } from '#core/log/record-filter.ts'
import { inSlices } from '../shared/in-slices.ts'

/** The events of hot ids in a request. */
export interface HotEvents {
  readonly count: number
  /** The first of them, in their order. */
  readonly events: readonly { readonly uuid: string; readonly name: string }[]
  /** For each record in the main log, in order, 1 where the event's id is hot. Empty where none are listed. */
  readonly marks: Uint8Array
}

/**
 * @param of `listedMax`: how many of the events are asked for, or 0.
 * @returns the same records, changed in place.
 */
export async function coolHotKeys(
  hotKeys: HotKeys,
  projectId: number,
  prepared: PreparedEvents,
  of: { readonly nowMs: number; readonly listedMax: number },
): Promise<{ readonly cooled: PreparedEvents; readonly hot: HotEvents }> {
  const { main } = prepared
  if (main === null) return { cooled: prepared, hot: noHotEvents }
  const { nowMs, listedMax } = of
  const acceptedByLane = { ...prepared.acceptedByLane }
  const events: { uuid: string; name: string }[] = []
  const marks = listedMax === 0 ? noHotEvents.marks : new Uint8Array(main.recordCount)
  let count = 0
  let looked = -1
  const steps = filterEvents(main, event => {
    looked++
    if (event.historicalMigration || !hotKeys.isHot(projectId, event.distinctId, nowMs)) return true
    acceptedByLane[event.lane]!--
    event.switchPersonsOff()
    acceptedByLane[event.lane] = (acceptedByLane[event.lane] ?? 0) + 1
    if (listedMax > 0) marks[looked] = 1
    if (events.length < listedMax) events.push({ uuid: event.uuid, name: event.name })
    count++
    return true
  })
  return { cooled: { ...prepared, main: await inSlices(steps), acceptedByLane }, hot: { count, events, marks } }
}

const noHotEvents: HotEvents = { count: 0, events: [], marks: new Uint8Array(0) }
