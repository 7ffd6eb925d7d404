// The properties of a Matomo visit that each of its events carries. Source: docs/wire/import.md §1.6.

import { type JsonObject, type JsonValue, ownValue } from '#core/json.ts'
import { putProperty } from '#importer/records/record-fields.ts'
import { isMatomoDisplay } from './matomo-display.ts'

const names: ReadonlyMap<string, string> = new Map([
  ['visitIp', '$ip'],
  ['browserName', '$browser'],
  ['browserVersion', '$browser_version'],
  ['operatingSystemName', '$os'],
  ['operatingSystemVersion', '$os_version'],
  ['deviceType', '$device_type'],
  ['languageCode', '$browser_language'],
  ['referrerUrl', '$referrer'],
  ['continent', '$geoip_continent_name'],
  ['continentCode', '$geoip_continent_code'],
  ['country', '$geoip_country_name'],
  ['countryCode', '$geoip_country_code'],
  ['region', '$geoip_subdivision_1_name'],
  ['regionCode', '$geoip_subdivision_1_code'],
  ['city', '$geoip_city_name'],
])
/** Ids and times, which belong to the event itself, and fields that are mapped elsewhere. */
const consumed = new Set([
  'idSite',
  'idVisit',
  'visitorId',
  'userId',
  'firstActionTimestamp',
  'lastActionTimestamp',
  'lastActionDateTime',
  'serverTimestamp',
  'serverDate',
  'actionDetails',
  'resolution',
  'latitude',
  'longitude',
])
/** Matomo's text for a search whose keywords the search engine withheld. */
const keywordUnknown = 'Keyword not defined'

export function mapMatomoVisitProperties(visit: JsonObject): JsonObject {
  const properties: JsonObject = {}
  for (const [field, value] of Object.entries(visit)) {
    if (consumed.has(field) || isMatomoDisplay(field) || value === keywordUnknown) continue
    putProperty(properties, names.get(field) ?? field, field === 'countryCode' ? toUpperCaseCode(value) : value)
  }
  putResolution(properties, ownValue(visit, 'resolution'))
  putProperty(properties, '$geoip_latitude', parseDegrees(ownValue(visit, 'latitude')))
  putProperty(properties, '$geoip_longitude', parseDegrees(ownValue(visit, 'longitude')))
  return properties
}

/** Matomo writes `no`, but live events and other imports have `NO`, and a filter matches only one of the two. */
function toUpperCaseCode(code: JsonValue): JsonValue {
  return typeof code === 'string' ? code.toUpperCase() : code
}

/** Reads `1920x1080`; Matomo writes `unknown` if it has none. */
function putResolution(properties: JsonObject, value: JsonValue | undefined): void {
  const [, width, height] = (typeof value === 'string' && /^(\d{1,6})x(\d{1,6})$/.exec(value)) || []
  if (width === undefined || height === undefined) return
  putProperty(properties, '$screen_width', Number(width))
  putProperty(properties, '$screen_height', Number(height))
}

function parseDegrees(value: JsonValue | undefined): JsonValue | undefined {
  if (typeof value !== 'string') return value
  return /^-?\d{1,3}(?:\.\d+)?$/.test(value.trim()) ? Number(value) : undefined
}
