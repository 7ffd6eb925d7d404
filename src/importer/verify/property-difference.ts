// Checks that the service stored the properties of an event as sent. By its rules for all events, the service moves some
// properties to columns, adds to some and leaves some out. This does not count as a difference. Source: docs/wire/import.md
// §2.10; docs/wire/ingestion.md 6.6 to 6.9.

import { chooseLane } from '#core/capture/normalize-event.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts'
import { isSameJson } from '#core/json-equal.ts'
import { internalKeys } from '#core/processing/build-stored-event.ts'
import { isFlagCallStripped, isKeptWhenStripped } from '#core/processing/feature-flag-called.ts'
import { readPersonSetMaps } from '#importer/stages/expected/expected-persons.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { addMarkerProperties, type EventMarks } from '../send/encode-event.ts'

/** Properties that are stored as columns. Which columns contain the keys of groups depends on the project's group types. */
const columns: ReadonlySet<string> = new Set([
  ...['distinct_id', '$process_person_profile', ...internalKeys],
  ...['$group_0', '$group_1', '$group_2', '$group_3', '$group_4'],
])
/** Properties that describe the person; the service removes them from events without a person. */
const personKeys: ReadonlySet<string> = new Set(['$set', '$set_once', '$unset'])

/** @returns a description of the first property that differs from what was sent; null if none does. */
export function findPropertyDifference(sent: ImportedEvent, stored: JsonObject, marks: EventMarks): string | null {
  const properties = addMarkerProperties(sent, marks)
  for (const [key, value] of Object.entries(addPersonProperties(sent, properties))) {
    if (columns.has(key)) continue
    const found = getOwnValue(stored, key)
    if (found === undefined) {
      if (mayBeLeftOut(sent.event, key, properties, stored)) continue
      return `the property ${key} is missing`
    }
    if (!isSameJson(toStoredValue(key, value), personKeys.has(key) ? removeLookedUpLocations(value, found) : found))
      return `the property ${key} is ${JSON.stringify(found).slice(0, 100)}`
  }
  return null
}

/** Like the service, copies the event's browser and origin into its `$set` and `$set_once`. */
function addPersonProperties(sent: ImportedEvent, properties: JsonObject): JsonObject {
  const { set, setOnce } = readPersonSetMaps({ ...sent, properties })
  const { $set, $set_once, ...expected } = properties
  return { ...expected, ...(set !== null && { $set: set }), ...(setOnce !== null && { $set_once: setOnce }) }
}

function mayBeLeftOut(event: string, key: string, sent: JsonObject, stored: JsonObject): boolean {
  // The address may be absent, since a project may discard IP addresses.
  if (key === '$ip') return true
  if (personKeys.has(key)) return stored.$process_person_profile === false
  if (key.startsWith('$ai_gateway')) return chooseLane(event, true) === 'ai'
  return isFlagCallStripped(event, sent) && !isKeptWhenStripped(key)
}

/** Removes locations that the service looked up by IP address and added to the person, which a job may request. */
function removeLookedUpLocations(sent: JsonValue, found: JsonValue): JsonValue {
  if (!isJsonObject(sent) || !isJsonObject(found)) return found
  const isLookedUp = (key: string) => /^\$(?:initial_)?geoip_/.test(key) && !Object.hasOwn(sent, key)
  return Object.fromEntries(Object.entries(found).filter(([key]) => !isLookedUp(key)))
}

/** Returns the value as the service stores it: session ids are stored in lower case. */
function toStoredValue(key: string, value: JsonValue): JsonValue {
  return key === '$session_id' && typeof value === 'string' ? value.toLowerCase() : value
}
