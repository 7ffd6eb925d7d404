// Maps the properties in a Mixpanel record to properties of its event and its person. Source: docs/wire/import.md §1.2.

import { countryOf } from '#core/countries.ts'
import { getOwnValue, type JsonObject, type JsonValue } from '#core/json.ts'
import { isEmptyValue, pickRecordProperties, putPersonUpdates, putProperty } from '#importer/records/record-fields.ts'
import { readPersonId } from './mixpanel-ids.ts'

const autocaptureTypes: ReadonlyMap<string, string> = new Map([
  ['$mp_click', 'click'],
  ['$mp_submit', 'submit'],
  ['$mp_input_change', 'change'],
])
const renames: ReadonlyMap<string, string> = new Map([
  ['current_url_path', '$pathname'],
  ['current_domain', '$host'],
  ['current_page_title', 'title'],
  ['mp_lib', '$lib'],
  ['$city', '$geoip_city_name'],
  ['$region', '$geoip_subdivision_1_name'],
])
/** Properties that describe the export and not the event, so that no event carries them. */
const droppedKeys: ReadonlySet<string> = new Set([
  '$mp_api_endpoint',
  'mp_processing_time_ms',
  '$insert_id',
  '$geo_source',
  '$mp_api_timestamp_ms',
  '$import',
  '$mp_event_size',
])
/** Mapped individually. */
const ownKeys: ReadonlySet<string> = new Set(['time', 'distinct_id', '$user_id', '$device_id', 'mp_country_code'])
const identityKeys: ReadonlyMap<string, readonly string[]> = new Map([
  ['$identify', ['$identified_id', '$anon_id']],
  ['$create_alias', ['alias']],
  ['$merge', ['$distinct_ids']],
])

/** Properties of an event that also update its person. */
const personKeys = [
  ...['$browser', '$browser_version', '$os', '$os_version', '$device', '$device_type'],
  ...['$current_url', '$referrer', '$referring_domain'],
  ...['$geoip_city_name', '$geoip_subdivision_1_name', '$geoip_country_code', '$geoip_country_name'],
]
const personOnceKeys = [
  ...['$initial_referrer', '$initial_referring_domain', '$initial_utm_source', '$initial_utm_medium'],
  ...['$initial_utm_campaign', '$initial_utm_content', '$initial_utm_term'],
]

export function mapMixpanelProperties(sourceName: string, from: JsonObject): JsonObject {
  const leftOut = identityKeys.get(sourceName) ?? []
  const properties: JsonObject = {}
  for (const [key, value] of Object.entries(from)) {
    if (ownKeys.has(key) || droppedKeys.has(key) || leftOut.includes(key)) continue
    if (!isNamedTwice(from, key, renames)) putProperty(properties, renames.get(key) ?? key, value)
  }
  putCountry(properties, getOwnValue(from, 'mp_country_code'))
  putProperty(properties, '$mixpanel_user_id', readPersonId(getOwnValue(from, '$user_id')))
  putProperty(properties, '$mixpanel_device_id', readPersonId(getOwnValue(from, '$device_id')))
  putProperty(properties, '$device_id', getOwnValue(from, '$device_id'))
  putProperty(properties, '$event_type', autocaptureTypes.get(sourceName))
  putPersonUpdates(properties, {
    set: pickRecordProperties(properties, personKeys),
    setOnce: pickRecordProperties(properties, personOnceKeys),
  })
  return properties
}

/**
 * Whether the record also has a property with our name for the key. The property with our name wins, so that the result
 * does not depend on the order of keys, which differs between downloads.
 */
function isNamedTwice(from: JsonObject, key: string, names: ReadonlyMap<string, string>): boolean {
  const name = names.get(key)
  return name !== undefined && !isEmptyValue(getOwnValue(from, name) ?? null)
}

/** Sets the country code, and the country's name as in live events. */
function putCountry(properties: JsonObject, code: JsonValue | undefined): void {
  putProperty(properties, '$geoip_country_code', code)
  if (typeof code === 'string')
    putProperty(properties, '$geoip_country_name', countryOf(code.trim().toUpperCase())?.name)
}

/** Fields that no event carries. @param uuidKey the field that the uuid is derived from, which therefore counts as carried. */
export function listDroppedFields(from: JsonObject, uuidKey: string | null): string[] {
  return Object.keys(from).filter(key => (droppedKeys.has(key) && key !== uuidKey) || isNamedTwice(from, key, renames))
}

/** Mixpanel's reserved profile properties, and our names for them. */
const profileRenames: ReadonlyMap<string, string> = new Map([
  ...['email', 'name', 'first_name', 'last_name', 'phone', 'avatar'].map(key => [`$${key}`, key] as const),
  ['$city', '$geoip_city_name'],
  ['$region', '$geoip_subdivision_1_name'],
])
const countryKeys = ['$country_code', 'mp_country_code']

/** The properties of the person in a row of the profile export. */
export function mapProfileProperties(from: JsonObject): JsonObject {
  const set: JsonObject = {}
  for (const [key, value] of Object.entries(from)) {
    if (key === '$last_seen' || countryKeys.includes(key)) continue
    if (!isNamedTwice(from, key, profileRenames)) putProperty(set, profileRenames.get(key) ?? key, value)
  }
  for (const key of countryKeys) putCountry(set, getOwnValue(from, key))
  return set
}

export function listDroppedProfileFields(from: JsonObject): string[] {
  return Object.keys(from).filter(key => key === '$last_seen' || isNamedTwice(from, key, profileRenames))
}
