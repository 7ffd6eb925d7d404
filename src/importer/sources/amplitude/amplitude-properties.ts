// Maps the fields of an Amplitude record to properties of its event and its person. Source: docs/wire/import.md §1.1.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, mergeObjects, readJsonNumber } from '#core/json.ts'
import { deriveSessionUuid } from '#importer/records/deterministic-uuid.ts'
import { pickRecordProperties, putPersonUpdates } from '#importer/records/record-fields.ts'
import {
  isEmptyInAmplitude,
  parseObjectText,
  putAmplitudeValue,
  readAmplitudeObject,
  readAmplitudeText,
  removeEmptyValues,
  toAmplitudeBoolean,
} from './amplitude-values.ts'

/** Fields that are mapped individually, or used only by the import. */
const ownFields: ReadonlySet<string> = new Set([
  ...['event_type', 'user_id', 'device_id', 'amplitude_id', 'app', '$insert_id', 'uuid', 'event_id', 'session_id'],
  ...['event_time', 'client_event_time', 'client_upload_time', 'server_received_time', 'server_upload_time'],
  ...['processed_time', 'event_properties', 'user_properties', 'groups', 'group_properties', 'data', 'platform'],
  ...['version_name', 'os_name', 'os_version', 'device_type', 'country', 'region', 'city', 'ip_address'],
])
const updatedKey = 'user_properties_updated'
const truthFields: ReadonlySet<string> = new Set(['paying', 'is_attribution_event'])

/** Properties of an event that also update its person. */
const personKeys = [
  ...['$browser', '$browser_version', '$os', '$os_version', '$device_type'],
  ...['$device_manufacturer', '$device_model', '$device_name'],
  ...['$current_url', '$pathname', '$referrer', '$referring_domain'],
  ...['$geoip_country_name', '$geoip_city_name', '$geoip_subdivision_1_name'],
]
const firstTouch = [
  'referrer',
  'referring_domain',
  ...['source', 'medium', 'campaign', 'content', 'term'].map(toUtmKey),
]
const onceKeys: ReadonlyMap<string, string> = new Map(
  firstTouch.map(key => [`initial_${key}`, `$initial_${key}`] as const),
)

function toUtmKey(key: string): string {
  return `utm_${key}`
}

export interface RecordIds {
  readonly userId: string | null
  readonly deviceId: string | null
}

/** @throws RecordReject */
export function mapAmplitudeProperties(record: JsonObject, sourceName: string, ids: RecordIds): JsonObject {
  const own = readAmplitudeObject(record, 'event_properties')
  const properties = removeEmptyValues(own)
  const platform = readAmplitudeText(record, 'platform')
  const isWeb = platform === null || platform.toLowerCase() === 'web'
  for (const [field, value] of Object.entries(record)) {
    const isRead = ownFields.has(field) || (!isWeb && deviceFields.includes(field))
    if (!isRead && !Object.hasOwn(properties, field))
      putAmplitudeValue(properties, field, truthFields.has(field) ? toAmplitudeBoolean(value) : value)
  }
  putData(properties, parseObjectText(getOwnValue(record, 'data')))
  putIds(properties, record, ids)
  putPage(properties, own)
  if (isWeb) putBrowser(properties, record)
  else putDevice(properties, record, platform)
  putAmplitudeValue(properties, '$app_version', getOwnValue(record, 'version_name'))
  putAmplitudeValue(properties, '$geoip_country_name', getOwnValue(record, 'country'))
  putAmplitudeValue(properties, '$geoip_city_name', getOwnValue(record, 'city'))
  putAmplitudeValue(properties, '$geoip_subdivision_1_name', getOwnValue(record, 'region'))
  putAmplitudeValue(properties, '$ip', getOwnValue(record, 'ip_address'))
  putElement(properties, sourceName, own)
  putPersonUpdates(properties, { set: pickRecordProperties(properties, personKeys), setOnce: readFirstTouch(record) })
  return properties
}

/** The person properties in a record; sent only when they have changed. */
export function readPersonProperties(record: JsonObject): JsonObject {
  const person: JsonObject = {}
  for (const [key, value] of Object.entries(readAmplitudeObject(record, 'user_properties')))
    if (!onceKeys.has(key)) putAmplitudeValue(person, key, value)
  return person
}

function readFirstTouch(record: JsonObject): JsonObject {
  const from = readAmplitudeObject(record, 'user_properties')
  const once: JsonObject = {}
  for (const [key, target] of onceKeys) putAmplitudeValue(once, target, getOwnValue(from, key))
  return once
}

function putData(properties: JsonObject, data: JsonValue | undefined): void {
  if (data === undefined) return
  const updated = isJsonObject(data) ? toAmplitudeBoolean(getOwnValue(data, updatedKey)) : undefined
  putAmplitudeValue(
    properties,
    'data',
    updated === undefined ? data : mergeObjects(data as JsonObject, { [updatedKey]: updated }),
  )
}

function putIds(properties: JsonObject, record: JsonObject, { userId, deviceId }: RecordIds): void {
  putAmplitudeValue(properties, '$amplitude_user_id', userId)
  putAmplitudeValue(properties, '$amplitude_device_id', deviceId)
  putAmplitudeValue(properties, '$device_id', deviceId)
  putAmplitudeValue(properties, '$amplitude_event_id', getOwnValue(record, 'event_id'))
  const startMs = readSessionStartMs(getOwnValue(record, 'session_id'))
  if (startMs === null) return
  putAmplitudeValue(properties, '$amplitude_session_id', startMs)
  putAmplitudeValue(
    properties,
    '$session_id',
    deriveSessionUuid(startMs, 'amplitude', 'session', deviceId ?? '', String(startMs)),
  )
}

/** The id of a session is its start; -1 means no session. @returns epoch ms in the range of a UUIDv7; otherwise null. */
function readSessionStartMs(value: JsonValue | undefined): number | null {
  const ms = typeof value === 'string' ? Number(value) : readJsonNumber(value ?? null)
  return ms !== undefined && Number.isSafeInteger(ms) && ms > 0 && ms < 2 ** 48 ? ms : null
}

function putPage(properties: JsonObject, from: JsonObject): void {
  const url = getOwnValue(from, '[Amplitude] Page Location')
  putAmplitudeValue(
    properties,
    '$current_url',
    isEmptyInAmplitude(url) ? getOwnValue(from, '[Amplitude] Page URL') : url,
  )
  putAmplitudeValue(properties, '$host', getOwnValue(from, '[Amplitude] Page Domain'))
  putAmplitudeValue(properties, '$pathname', getOwnValue(from, '[Amplitude] Page Path'))
  putAmplitudeValue(properties, '$viewport_height', getOwnValue(from, '[Amplitude] Viewport Height'))
  putAmplitudeValue(properties, '$viewport_width', getOwnValue(from, '[Amplitude] Viewport Width'))
  putAmplitudeValue(properties, '$referrer', getOwnValue(from, 'referrer'))
  putAmplitudeValue(properties, '$referring_domain', getOwnValue(from, 'referring_domain'))
}

function putElement(properties: JsonObject, sourceName: string, from: JsonObject): void {
  const type = /^\[Amplitude\] Element (Clicked|Changed)$/.exec(sourceName)?.[1]
  if (type === undefined) return
  putAmplitudeValue(properties, '$event_type', type === 'Clicked' ? 'click' : 'change')
  putAmplitudeValue(properties, '$el_text', getOwnValue(from, '[Amplitude] Element Text'))
}

/** Fields that are mapped individually, unless the platform is the web; then they keep their names. */
const deviceFields: readonly string[] = ['device_manufacturer', 'device_model']

/** On the web, Amplitude reports the browser as the operating system, and the operating system as the device. */
function putBrowser(properties: JsonObject, record: JsonObject): void {
  const device = readAmplitudeText(record, 'device_type')
  putAmplitudeValue(properties, '$browser', readAmplitudeText(record, 'os_name'))
  putAmplitudeValue(properties, '$browser_version', parseWholeNumber(getOwnValue(record, 'os_version')))
  putAmplitudeValue(properties, '$os', device)
  putAmplitudeValue(properties, '$device_type', toDeviceType(device))
}

function putDevice(properties: JsonObject, record: JsonObject, platform: string): void {
  const system = readAmplitudeText(record, 'os_name')
  putAmplitudeValue(properties, '$os', system)
  putAmplitudeValue(properties, '$os_version', getOwnValue(record, 'os_version'))
  putAmplitudeValue(properties, '$device_type', toMobileType(system) ?? toMobileType(platform))
  putAmplitudeValue(properties, '$device_manufacturer', getOwnValue(record, 'device_manufacturer'))
  putAmplitudeValue(properties, '$device_model', getOwnValue(record, 'device_model'))
  putAmplitudeValue(properties, '$device_name', readAmplitudeText(record, 'device_type'))
}

/** Live events have a number as version, so a text of digits becomes a number; one filter then matches all events. */
function parseWholeNumber(version: JsonValue | undefined): JsonValue {
  return typeof version === 'string' && /^\d{1,15}$/.test(version) ? Number(version) : (version ?? null)
}

function toDeviceType(system: string | null): string | null {
  return system !== null && /^(?:windows|linux|mac(?: ?os)?(?: x)?)$/i.test(system) ? 'Desktop' : toMobileType(system)
}

function toMobileType(system: string | null): string | null {
  return system !== null && /^(?:ios|android)$/i.test(system) ? 'Mobile' : null
}
