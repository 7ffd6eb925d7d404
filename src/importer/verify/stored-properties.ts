// Whether the service stored the properties of an event as they were sent. Some it moves to columns, adds to or leaves out
// by the rules for all events, which is no difference. Source: docs/wire/import.md §2.10; docs/wire/ingestion.md 6.6 to 6.9.

import { laneOf } from '#core/capture/normalize-event.ts'
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '#core/json.ts'
import { isSameJson } from '#core/json-equal.ts'
import { internalKeys } from '#core/processing/build-stored-event.ts'
import { isKeptWhenStripped, isStripped } from '#core/processing/feature-flag-called.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { type EventMarks, sentProperties } from '../send/encode-event.ts'
import { personMaps } from './person-maps.ts'

/** Columns of a stored event; the last ones follow the group types of the project. */
const columns: ReadonlySet<string> = new Set([
  ...['distinct_id', '$process_person_profile', ...internalKeys],
  ...['$group_0', '$group_1', '$group_2', '$group_3', '$group_4'],
])
/** What describes the person; an event that has none keeps nothing of it. */
const personKeys: ReadonlySet<string> = new Set(['$set', '$set_once', '$unset'])

/** @returns the first property that is not as it was sent, in words; null when all are. */
export function propertyDifference(sent: ImportedEvent, stored: JsonObject, marks: EventMarks): string | null {
  const properties = sentProperties(sent, marks)
  for (const [key, value] of Object.entries(expectedOf(sent, properties))) {
    if (columns.has(key)) continue
    const found = ownValue(stored, key)
    if (found === undefined) {
      if (mayBeLeftOut(sent.event, key, properties, stored)) continue
      return `the property ${key} is missing`
    }
    if (!isSameJson(valueStored(key, value), personKeys.has(key) ? withoutLookedUp(value, found) : found))
      return `the property ${key} is ${JSON.stringify(found).slice(0, 100)}`
  }
  return null
}

/** What the event says of its browser and its origin is said of its person as well. */
function expectedOf(sent: ImportedEvent, properties: JsonObject): JsonObject {
  const { set, setOnce } = personMaps({ ...sent, properties })
  const { $set, $set_once, ...expected } = properties
  return { ...expected, ...(set !== null && { $set: set }), ...(setOnce !== null && { $set_once: setOnce }) }
}

function mayBeLeftOut(event: string, key: string, sent: JsonObject, stored: JsonObject): boolean {
  // A project may ask for addresses to be forgotten.
  if (key === '$ip') return true
  if (personKeys.has(key)) return stored.$process_person_profile === false
  if (key.startsWith('$ai_gateway')) return laneOf(event, true) === 'ai'
  return isStripped(event, sent) && !isKeptWhenStripped(key)
}

/** A job may ask for the location of the recorded addresses, which is said of the person as well. */
function withoutLookedUp(sent: JsonValue, found: JsonValue): JsonValue {
  if (!isJsonObject(sent) || !isJsonObject(found)) return found
  const isLookedUp = (key: string) => /^\$(?:initial_)?geoip_/.test(key) && !Object.hasOwn(sent, key)
  return Object.fromEntries(Object.entries(found).filter(([key]) => !isLookedUp(key)))
}

/** Sessions are stored in lower case. */
function valueStored(key: string, value: JsonValue): JsonValue {
  return key === '$session_id' && typeof value === 'string' ? value.toLowerCase() : value
}
