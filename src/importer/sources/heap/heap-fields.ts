// Heap's names of properties and ours, the same for events and for users. Source: docs/wire/import.md §1.4.

import type { JsonObject, JsonValue } from '#core/json.ts'
import { put } from '#importer/records/record-fields.ts'

const names: ReadonlyMap<string, string> = new Map([
  ['browser', '$browser'],
  ['browser_version', '$browser_version'],
  ['device_type', '$device_type'],
  ['library', '$lib'],
  ['ip', '$ip'],
  ['city', '$geoip_city_name'],
  ['country', '$geoip_country_name'],
  ['region', '$geoip_subdivision_1_name'],
  ['referrer', '$referrer'],
  ['path', '$pathname'],
])

/** Sets a property under our name; a field that we have no name for keeps its own. */
export function putHeapField(properties: JsonObject, field: string, value: JsonValue): void {
  if (field === 'platform') putPlatform(properties, '$os', '$os_version', value)
  else put(properties, names.get(field) ?? field, value)
}

/**
 * Sets what a user's `initial_…` field says, under the name that our own first-touch properties have.
 * @param field without `initial_`.
 */
export function putHeapInitialField(properties: JsonObject, field: string, value: JsonValue): void {
  if (field === 'platform') {
    putPlatform(properties, '$initial_os', '$initial_os_version', value)
    return
  }
  // The first page of the first session is the first page of all, which the same field of an event is not.
  const name = field === 'landing_page' ? '$current_url' : (names.get(field) ?? field)
  put(properties, `$initial_${name.startsWith('$') ? name.slice(1) : name}`, value)
}

/** `Mac OS X 14.4` is `Mac OS X` and `14.4`; a platform that does not end in a number has no version. */
function putPlatform(properties: JsonObject, osKey: string, versionKey: string, value: JsonValue): void {
  const [, os, version] = (typeof value === 'string' && /^(.*\S)\s+(\d\S*)$/.exec(value.trim())) || []
  put(properties, osKey, os ?? value)
  put(properties, versionKey, version)
}
