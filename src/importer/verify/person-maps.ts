// The `$set` and `$set_once` of an imported event after the service has read it, which also include event properties that
// describe the person. Needed to compare stored with sent events.
// Source: docs/wire/import.md §2.10; docs/wire/ingestion.md 6.6.

import { laneOf } from '#core/capture/normalize-event.ts'
import { groupEventNames } from '#core/events/event-names.ts'
import { clientMap, liftPersonMaps, type PersonMaps } from '#core/processing/properties/mapped-properties.ts'
import type { ImportedEvent } from '../records/imported-event.ts'

export function readPersonMaps(event: ImportedEvent): PersonMaps {
  if (!hasProfile(event)) return { set: null, setOnce: null }
  const { properties } = event
  const keys = Object.keys(properties)
  return liftPersonMaps(properties, keys, clientMap(properties.$set, null), clientMap(properties.$set_once, null))
}

/** Whether the event may change its person. AI events never do. */
export function hasProfile({ event, properties }: ImportedEvent): boolean {
  const isWithout = properties.$process_person_profile === false || groupEventNames.has(event)
  return !isWithout && laneOf(event, true) !== 'ai'
}
