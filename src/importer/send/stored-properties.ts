// Whether the service stored the properties of an event as they were sent. Some it moves to columns, adds to or leaves out
// by the rules for all events, which is no difference. Source: docs/wire/import.md §2.10; docs/wire/ingestion.md 6.6 to 6.9.

import { type JsonObject, type JsonValue, ownValue } from '#core/json.ts'
import { isSameJson } from '#core/json-equal.ts'
import { isKeptWhenStripped, isStripped } from '#core/processing/feature-flag-called.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { type EventMarks, sentProperties } from './encode-event.ts'
import { personMaps } from './person-maps.ts'

/** Read by the service and kept elsewhere, or made by it. */
const ownKeys: ReadonlySet<string> = new Set([
  ...['distinct_id', '$elements', '$elements_chain', '$process_person_profile', '$heatmap_data', 'ph_product_tours'],
  ...['$product_tours_activated', '$override_feature_flag_payloads'],
  ...['$group_0', '$group_1', '$group_2', '$group_3', '$group_4'],
])
/** What describes the person; an event that has none keeps nothing of it. */
const personKeys: ReadonlySet<string> = new Set(['$set', '$set_once', '$unset'])

/** @returns the first property that is not as it was sent, in words; null when all are. */
export function propertyDifference(sent: ImportedEvent, stored: JsonObject, marks: EventMarks): string | null {
  const maps = personMaps(sent)
  const expected: JsonObject = { ...sentProperties(sent, marks) }
  for (const [key, map] of [
    ['$set', maps.set],
    ['$set_once', maps.setOnce],
  ] as const)
    if (map === null) delete expected[key]
    else expected[key] = map
  const isPersonless = stored.$process_person_profile === false
  const leavesOut = isStripped(sent.event, expected) ? (key: string) => !isKeptWhenStripped(key) : () => false
  for (const [key, value] of Object.entries(expected)) {
    if (ownKeys.has(key) || leavesOut(key) || (isPersonless && personKeys.has(key))) continue
    const found: JsonValue | undefined = ownValue(stored, key)
    // A project may ask for addresses to be forgotten.
    if (found === undefined && key === '$ip') continue
    if (found === undefined) return `the property ${key} is missing`
    if (!isSameJson(valueStored(key, value), found))
      return `the property ${key} is ${JSON.stringify(found).slice(0, 100)}`
  }
  return null
}

/** Sessions are stored in lower case. */
function valueStored(key: string, value: JsonValue): JsonValue {
  return key === '$session_id' && typeof value === 'string' ? value.toLowerCase() : value
}
