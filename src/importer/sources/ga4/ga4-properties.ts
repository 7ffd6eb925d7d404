// The event properties of a GA4 export row. Parameters become top-level properties, as in a live event; nested fields for
// which we have no names stay nested, so that two fields of the same name never overwrite each other. Source:
// docs/wire/import.md §1.5.

import {
  getOwnValue,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseNumberOrLiteral,
  setOwnValue,
} from '#core/json.ts'
import { isSameJson } from '#core/json-equal.ts'
import { deriveSessionUuid } from '#importer/records/deterministic-uuid.ts'
import { toIdText, toLegalId } from '#importer/records/distinct-ids.ts'
import {
  isEmptyValue,
  putPersonUpdates,
  putProperties,
  putProperty,
  putUrlProperties,
  readObjectField,
  readTextField,
} from '#importer/records/record-fields.ts'
import { formatTime, readTime } from '#importer/records/source-time.ts'

type Names = ReadonlyMap<string, string>

/** Fields that the event, its uuid and its person are made of. */
const consumed = new Set([
  ...['event_name', 'event_timestamp', 'event_date', 'event_params', 'event_bundle_sequence_id', 'stream_id'],
  ...['batch_page_id', 'batch_ordering_id', 'batch_event_index', 'user_id', 'user_pseudo_id', 'user_properties'],
  ...['user_first_touch_timestamp', 'device', 'geo', 'traffic_source', 'collected_traffic_source'],
])
const paramNames: Names = new Map([
  ['page_title', 'title'],
  ['page_referrer', '$referrer'],
])
const deviceNames: Names = new Map([
  ['operating_system', '$os'],
  ['operating_system_version', '$os_version'],
  ['language', '$browser_language'],
  ['mobile_brand_name', '$device_manufacturer'],
  ['mobile_model_name', '$device_model'],
])
const webNames: Names = new Map([
  ['browser', '$browser'],
  ['browser_version', '$browser_version'],
  ['hostname', '$host'],
])
const geoNames: Names = new Map([
  ['continent', '$geoip_continent_name'],
  ['country', '$geoip_country_name'],
  ['region', '$geoip_subdivision_1_name'],
  ['city', '$geoip_city_name'],
])
const campaignNames: Names = new Map([
  ['manual_campaign_name', 'utm_campaign'],
  ['manual_campaign_id', 'utm_id'],
  ...['source', 'medium', 'term', 'content', 'source_platform', 'creative_format', 'marketing_tactic'].map(
    field => [`manual_${field}`, `utm_${field}`] as const,
  ),
  ...['gclid', 'dclid', 'srsltid'].map(field => [field, field] as const),
])
const firstTouchNames: Names = new Map([
  ['source', '$initial_utm_source'],
  ['medium', '$initial_utm_medium'],
  ['name', '$initial_utm_campaign'],
])

/** Purchases, kept as written. */
const wholeFields: ReadonlySet<string> = new Set(['items', 'ecommerce'])

export function mapGa4Properties(row: JsonObject): JsonObject {
  const properties: JsonObject = {}
  const params = readKeyedValues(getOwnValue(row, 'event_params'))
  for (const [field, value] of Object.entries(row))
    if (!consumed.has(field))
      putProperty(properties, field, wholeFields.has(field) ? nullIfEmpty(value) : removeEmptyFields(value))
  putDevice(properties, readObjectField(row, 'device'))
  putNamedFields(properties, 'geo', readObjectField(row, 'geo'), geoNames)
  putNamedFields(
    properties,
    'collected_traffic_source',
    readObjectField(row, 'collected_traffic_source'),
    campaignNames,
  )
  for (const [key, value] of Object.entries(params)) if (key !== 'page_location') putParam(properties, key, value)
  putUrlProperties(properties, readTextField(params, 'page_location'), { hasHost: true })
  putProperty(properties, '$ga4_user_pseudo_id', toIdText(row.user_pseudo_id))
  putProperty(properties, '$session_id', deriveSessionId(row, getOwnValue(params, 'ga_session_id')))
  putPerson(properties, row)
  return properties
}

/** A parameter with the name of another field and a different value is set as `event_params.NAME`. */
function putParam(properties: JsonObject, key: string, value: JsonValue): void {
  const name = paramNames.get(key) ?? key
  const known = getOwnValue(properties, name)
  putProperty(properties, known === undefined || isSameJson(known, value) ? name : `event_params.${key}`, value)
}

function putDevice(properties: JsonObject, device: JsonObject): void {
  const { web_info: _web, category: _category, ...rest } = device
  const category = readTextField(device, 'category')
  if (category !== null) putProperty(properties, '$device_type', category.charAt(0).toUpperCase() + category.slice(1))
  const web = readObjectField(device, 'web_info')
  for (const [field, name] of webNames) putProperty(properties, name, getOwnValue(web, field))
  const unnamedWeb = Object.fromEntries(Object.entries(web).filter(([field]) => !webNames.has(field)))
  if (Object.keys(unnamedWeb).length > 0) rest.web_info = unnamedWeb
  putNamedFields(properties, 'device', rest, deviceNames)
}

/** Sets fields in `names` at the top level, and other fields nested under `recordName`. */
function putNamedFields(properties: JsonObject, recordName: string, record: JsonObject, names: Names): void {
  const rest: JsonObject = {}
  for (const [field, value] of Object.entries(record)) {
    const name = names.get(field)
    if (name === undefined) setOwnValue(rest, field, value)
    else putProperty(properties, name, value)
  }
  putProperty(properties, recordName, removeEmptyFields(rest))
}

/** @returns the value; null for an empty list or a record of empty values, which BigQuery writes for "none". */
function nullIfEmpty(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.length === 0 ? null : value
  if (!isJsonObject(value)) return value
  return Object.values(value).every(field => isEmptyValue(nullIfEmpty(field))) ? null : value
}

/** @returns the value without empty fields; null when none remains. Lists are not changed. */
function removeEmptyFields(value: JsonValue): JsonValue {
  if (!isJsonObject(value)) return nullIfEmpty(value)
  const nonEmpty: JsonObject = {}
  for (const [field, each] of Object.entries(value)) putProperty(nonEmpty, field, removeEmptyFields(each))
  return Object.keys(nonEmpty).length === 0 ? null : nonEmpty
}

/**
 * The id of the session. The number that GA4 gives a session is the second in which the session started.
 * @returns null for an event outside of sessions.
 */
function deriveSessionId(row: JsonObject, session: JsonValue | undefined): string | null {
  const number = toIdText(session)
  if (number === null || !/^[1-9]\d{0,10}$/.test(number)) return null
  // Without the device, two users whose sessions start in the same second would share a session id.
  const device = toLegalId(row.user_pseudo_id) ?? toLegalId(row.user_id) ?? ''
  return deriveSessionUuid(Number(number) * 1_000, 'ga4', 'session', device, number)
}

function putPerson(properties: JsonObject, row: JsonObject): void {
  const set: JsonObject = {}
  putProperties(set, readKeyedValues(getOwnValue(row, 'user_properties')))
  const setOnce: JsonObject = {}
  const firstTouch = readObjectField(row, 'traffic_source')
  for (const [field, name] of firstTouchNames) putProperty(setOnce, name, getOwnValue(firstTouch, field))
  putProperty(setOnce, 'first_touch_at', formatInstant(getOwnValue(row, 'user_first_touch_timestamp')))
  putPersonUpdates(properties, { set, setOnce })
}

/** @param value microseconds since 1970; 0 means unknown. */
function formatInstant(value: JsonValue | undefined): string | null {
  const timeUs = isEmptyValue(value)
    ? null
    : readTime(value!, { zone: 'UTC', unit: 'us' }, 'user_first_touch_timestamp')
  return timeUs === null || timeUs <= 0 ? null : formatTime(timeUs)
}

// The functions below read lists of `{key, value: {string_value, int_value, …}}`.

const integer = /^-?(?:0|[1-9]\d*)$/
const decimal = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i

/** @returns each key with the value that is set; for a repeated key, its last value. */
function readKeyedValues(list: JsonValue | undefined): JsonObject {
  const values: JsonObject = {}
  for (const entry of Array.isArray(list) ? list : []) {
    const key = isJsonObject(entry) ? getOwnValue(entry, 'key') : null
    if (typeof key !== 'string') continue
    const value = findNonEmptyValue(getOwnValue(entry as JsonObject, 'value'))
    if (value !== null) setOwnValue(values, key, value)
  }
  return values
}

function findNonEmptyValue(value: JsonValue | undefined): JsonValue | null {
  if (!isJsonObject(value)) return null
  const text = getOwnValue(value, 'string_value')
  if (!isEmptyValue(text)) return text!
  for (const field of ['int_value', 'float_value', 'double_value']) {
    const number = getOwnValue(value, field)
    if (!isEmptyValue(number)) return parseNumber(number!)
  }
  return null
}

/** Whole numbers are exported as text, since JSON parsers would round them. Values such as `NaN` are text too. */
function parseNumber(value: JsonValue): JsonValue {
  if (typeof value !== 'string') return value
  if (integer.test(value)) return parseNumberOrLiteral(value)
  return decimal.test(value) && Number.isFinite(Number(value)) ? Number(value) : value
}
