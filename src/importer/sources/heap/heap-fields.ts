// Maps Heap's property names to ours, for events and users. Source: docs/wire/import.md §1.4.

import type { JsonObject, JsonValue } from '#core/json.ts'
import { putProperty } from '#importer/records/record-fields.ts'

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

/** Sets a property under our name for the field, or else under the field's own name. */
export function putHeapField(properties: JsonObject, field: string, value: JsonValue): void {
  if (field === 'platform') putPlatform(properties, '$os', '$os_version', value)
  else putProperty(properties, names.get(field) ?? field, value)
}

/**
 * Sets a user's `initial_…` field under the name of our own first-touch property.
 * @param field without `initial_`.
 */
export function putHeapInitialField(properties: JsonObject, field: string, value: JsonValue): void {
  if (field === 'platform') {
    putPlatform(properties, '$initial_os', '$initial_os_version', value)
    return
  }
  // In a user, this is the first page ever; in an event, it is the first page of the session.
  const name = field === 'landing_page' ? '$current_url' : (names.get(field) ?? field)
  putProperty(properties, `$initial_${name.startsWith('$') ? name.slice(1) : name}`, value)
}

/** `Mac OS X 14.4` is `Mac OS X` and `14.4`; a platform that does not end in a number has no version. */
function putPlatform(properties: JsonObject, osKey: string, versionKey: string, value: JsonValue): void {
  const [, os, version] = (typeof value === 'string' && /^(.*\S)\s+(\d\S*)$/.exec(value.trim())) || []
  putProperty(properties, osKey, os ?? value)
  putProperty(properties, versionKey, version)
}
