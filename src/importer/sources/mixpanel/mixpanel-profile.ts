// Rows of Mixpanel's profile export. Source: docs/wire/import.md §1.2 (profile row).

import { isJsonObject, type JsonObject, ownValue } from '#core/json.ts'
import { rootUuid } from '#importer/records/deterministic-uuid.ts'
import { requireDistinctId } from '#importer/records/distinct-ids.ts'
import { type Conversion, RecordReject } from '#importer/records/imported-event.ts'
import { putPersonUpdates, putProperty } from '#importer/records/record-fields.ts'
import { checkTime, formatTime, type TimeWindow } from '#importer/records/source-time.ts'
import { readPersonId } from './mixpanel-ids.ts'
import { isNamedTwice, putCountry } from './mixpanel-properties.ts'

/** A row of the profile export has no event. */
export function isProfile(record: JsonObject): boolean {
  return !Object.hasOwn(record, 'event') && Object.hasOwn(record, '$distinct_id')
}

/** Mixpanel's reserved profile properties, and our names for them. */
const profileRenames: ReadonlyMap<string, string> = new Map([
  ...['email', 'name', 'first_name', 'last_name', 'phone', 'avatar'].map(key => [`$${key}`, key] as const),
  ['$city', '$geoip_city_name'],
  ['$region', '$geoip_subdivision_1_name'],
])
const countryKeys = ['$country_code', 'mp_country_code']

/**
 * @param exportedUs when the profiles were exported, microseconds since 1970; null refuses them.
 * @throws RecordReject
 */
export function checkProfileTime(exportedUs: number | null, window: TimeWindow): number {
  const field = 'profile_timestamp'
  if (exportedUs === null) throw new RecordReject('timestamp_missing', field)
  checkTime(exportedUs, window, field)
  return exportedUs
}

/** @param exportedUs as for `checkProfileTime`. @throws RecordReject */
export function convertProfile(record: JsonObject, exportedUs: number | null, window: TimeWindow): Conversion {
  const from = ownValue(record, '$properties')
  if (!isJsonObject(from)) throw new RecordReject('properties_not_object', '$properties')
  const distinctId = requireDistinctId(readPersonId(ownValue(record, '$distinct_id')))
  const timeUs = checkProfileTime(exportedUs, window)
  const set: JsonObject = {}
  for (const [key, value] of Object.entries(from)) {
    if (key === '$last_seen' || countryKeys.includes(key)) continue
    if (!isNamedTwice(from, key, profileRenames)) putProperty(set, profileRenames.get(key) ?? key, value)
  }
  for (const key of countryKeys) putCountry(set, ownValue(from, key))
  const properties: JsonObject = {}
  putPersonUpdates(properties, { set })
  const uuid = rootUuid('mixpanel', 'profile', distinctId, formatTime(timeUs))
  return {
    events: [{ uuid, event: '$set', sourceName: 'profile', distinctId, timeUs, isTimeFilledIn: true, properties }],
    dropped: Object.keys(from).filter(key => key === '$last_seen' || isNamedTwice(from, key, profileRenames)),
  }
}
