// Mixpanel: rows of its raw event export and of its profile export. Source: docs/wire/import.md §1.2.

import { countryOf } from '#core/countries.ts'
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '#core/json.ts'
import { contentUuid, mixpanelUuid, rootUuid } from '../records/deterministic-uuid.ts'
import { checkedId, chooseId, idText, illegalForMixpanel, legalId } from '../records/distinct-ids.ts'
import type { ImportSource, RecordConverter } from '../records/import-source.ts'
import {
  type Conversion,
  type IdentityLink,
  type ImportedEvent,
  RecordReject,
  skipped,
} from '../records/imported-event.ts'
import { eventName, isEmptyValue, pickProperties, put, putPersonUpdates } from '../records/record-fields.ts'
import { SourceConfig } from '../records/source-config.ts'
import { timeText } from '../records/source-time.ts'
import { checkTime, type TimeWindow } from '../records/time-window.ts'
import { type EventTime, readEventTime } from './mixpanel-time.ts'

const name = 'mixpanel'

interface Settings {
  readonly window: TimeWindow
  /** IANA zone of the project, for exports whose numbers are its wall clock. */
  readonly zone: string | null
  readonly allowsMerge: boolean
  /** When the profiles were exported; microseconds since 1970. */
  readonly profileTimeUs: number | null
}

export const mixpanel: ImportSource = {
  name,
  summary: 'rows of the raw event export, and of the profile export',
  prepare(values, window): RecordConverter {
    const config = new SourceConfig(name, values)
    const settings: Settings = {
      window,
      zone: config.zone(),
      allowsMerge: config.flag('allow_dangerous_merge'),
      profileTimeUs: config.time('profile_timestamp'),
    }
    config.end()
    return {
      convert: ({ value }) => (isProfile(value) ? convertProfile(value, settings) : convertEvent(value, settings)),
    }
  },
}

const eventNames: ReadonlyMap<string, string> = new Map([
  ['$mp_web_page_view', '$pageview'],
  ['$mp_page_leave', '$pageleave'],
  ['$mp_click', '$autocapture'],
  ['$mp_submit', '$autocapture'],
  ['$mp_input_change', '$autocapture'],
  ['$mp_rage_click', '$rageclick'],
  ['$mp_dead_click', '$dead_click'],
])
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
/** Facts about the export, not about the event. */
const droppedKeys: ReadonlySet<string> = new Set([
  '$mp_api_endpoint',
  'mp_processing_time_ms',
  '$insert_id',
  '$geo_source',
  '$mp_api_timestamp_ms',
  '$import',
  '$mp_event_size',
])
/** Read on their own, below. */
const ownKeys: ReadonlySet<string> = new Set(['time', 'distinct_id', '$user_id', '$device_id', 'mp_country_code'])
const identityKeys: ReadonlyMap<string, readonly string[]> = new Map([
  ['$identify', ['$identified_id', '$anon_id']],
  ['$create_alias', ['alias']],
  ['$merge', ['$distinct_ids']],
])

/** Properties of an event that also describe its person, and change with it. */
const personKeys = [
  ...['$browser', '$browser_version', '$os', '$os_version', '$device', '$device_type'],
  ...['$current_url', '$referrer', '$referring_domain'],
  ...['$geoip_city_name', '$geoip_subdivision_1_name', '$geoip_country_code', '$geoip_country_name'],
]
const personOnceKeys = [
  ...['$initial_referrer', '$initial_referring_domain', '$initial_utm_source', '$initial_utm_medium'],
  ...['$initial_utm_campaign', '$initial_utm_content', '$initial_utm_term'],
]

function convertEvent(record: JsonObject, settings: Settings): Conversion {
  const sourceName = eventName(ownValue(record, 'event'), 'event')
  const from = ownValue(record, 'properties')
  if (!isJsonObject(from)) throw new RecordReject('properties_not_object', 'properties')
  if (sourceName === '$merge' && !settings.allowsMerge)
    throw new RecordReject('merge_needs_approval', 'properties.$distinct_ids')
  const ids = identityOf(sourceName, from)
  const time = readEventTime(from, settings.zone)
  checkTime(time.timeUs, settings.window, 'properties.time')
  if (joinsNobody(ids)) return skipped('filtered')
  const properties = propertiesOf(sourceName, from)
  const rest = { dropped: droppedOf(from), notes: time.notes }
  switch (ids.kind) {
    case 'identify':
      return { ...rest, events: [], links: [{ ...ids, timeUs: time.timeUs, properties }] }
    case 'alias':
      return { ...rest, events: [joined('$create_alias', 'alias', ids, time, properties)] }
    case 'merge':
      return { ...rest, events: [joined('$merge_dangerously', 'merge', ids, time, properties)] }
    case 'event':
      return {
        ...rest,
        events: [
          {
            uuid: uuidOf(record, from),
            event: eventNames.get(sourceName) ?? sourceName,
            distinctId: ids.distinctId,
            timeUs: time.timeUs,
            properties,
          },
        ],
        links: linkOf(from, time.timeUs),
      }
  }
}

type Identity =
  | { readonly kind: 'event'; readonly distinctId: string }
  | { readonly kind: 'identify'; readonly userId: string; readonly deviceId: string }
  | ({ readonly kind: 'alias' | 'merge' } & Pair)

interface Pair {
  readonly distinctId: string
  readonly alias: string
}

/** Whether it joins a person with itself. */
function joinsNobody(ids: Identity): boolean {
  return ids.kind === 'identify' ? ids.userId === ids.deviceId : ids.kind !== 'event' && ids.distinctId === ids.alias
}

/** Whom the record is about. @throws RecordReject */
function identityOf(sourceName: string, from: JsonObject): Identity {
  switch (sourceName) {
    case '$identify': {
      const deviceId = personId(ownValue(from, '$anon_id'))
      // Without an anonymous id there is nothing to link, whatever it was sent for.
      if (deviceId === null) return { kind: 'event', distinctId: distinctIdOf(from) }
      return { kind: 'identify', userId: personId(ownValue(from, '$identified_id')) ?? distinctIdOf(from), deviceId }
    }
    case '$create_alias':
      return {
        kind: 'alias',
        distinctId: distinctIdOf(from),
        alias: requiredId(ownValue(from, 'alias'), 'properties.alias'),
      }
    case '$merge': {
      const ids = ownValue(from, '$distinct_ids')
      const field = 'properties.$distinct_ids'
      if (!Array.isArray(ids) || ids.length !== 2) throw new RecordReject('distinct_id_missing', field)
      return { kind: 'merge', distinctId: requiredId(ids[0], field), alias: requiredId(ids[1], field) }
    }
    default:
      return { kind: 'event', distinctId: distinctIdOf(from) }
  }
}

/** @throws RecordReject */
function distinctIdOf(from: JsonObject): string {
  const resolved = ownValue(from, 'distinct_id')
  const earlier = ownValue(from, '$distinct_id_before_identity')
  const first = isOfDevice(idText(resolved)) ? [earlier, resolved] : [resolved, earlier]
  const candidates = [...first, ownValue(from, '$user_id'), ownValue(from, '$device_id')]
  return chosenId(candidates)
}

function chosenId(candidates: readonly (JsonValue | undefined)[]): string {
  const field = 'distinct_id'
  return chooseId(
    candidates.map(value => ({ value: withoutPrefix(value), field })),
    field,
    illegalForMixpanel,
  )
}

/** An id that only digits make is a user's; one of upper-case letters, digits and dashes is what SDKs make for devices. */
function isOfDevice(id: string | null): boolean {
  return id !== null && (id.startsWith(devicePrefix) || /^(?=.*[A-Z])[A-Z0-9-]+$/.test(id))
}

const devicePrefix = '$device:'

/** Mixpanel's events name a device with the prefix, their `$device_id` without: only one of the two can be linked. */
function withoutPrefix(id: JsonValue | undefined): JsonValue | undefined {
  return typeof id === 'string' && id.startsWith(devicePrefix) ? id.slice(devicePrefix.length) : id
}

function personId(value: JsonValue | undefined): string | null {
  return legalId(withoutPrefix(value), illegalForMixpanel)
}

/** @throws RecordReject */
function requiredId(value: JsonValue | undefined, field: string): string {
  const id = personId(value)
  if (id === null) throw new RecordReject(isEmptyValue(value) ? 'distinct_id_missing' : 'distinct_id_illegal', field)
  return checkedId(id)
}

function linkOf(from: JsonObject, timeUs: number): IdentityLink[] {
  const userId = personId(ownValue(from, '$user_id'))
  const deviceId = personId(ownValue(from, '$device_id'))
  if (userId === null || deviceId === null) return []
  return [{ userId, deviceId, timeUs, properties: { $mixpanel_user_id: userId, $mixpanel_device_id: deviceId } }]
}

/** An event that joins two ids. Its uuid depends on them alone, so that a repeated row stays one event. */
function joined(
  event: string,
  kind: string,
  { distinctId, alias }: Pair,
  { timeUs }: EventTime,
  properties: JsonObject,
): ImportedEvent {
  return {
    uuid: rootUuid(kind, name, distinctId, alias),
    event,
    distinctId,
    timeUs,
    properties: { ...properties, alias },
  }
}

function uuidOf(record: JsonObject, from: JsonObject): string {
  const insertId = idText(ownValue(from, '$insert_id'))
  return insertId === null || insertId === '' ? contentUuid(name, record) : mixpanelUuid(insertId)
}

function propertiesOf(sourceName: string, from: JsonObject): JsonObject {
  const leftOut = identityKeys.get(sourceName) ?? []
  const properties: JsonObject = {}
  for (const [key, value] of Object.entries(from)) {
    if (ownKeys.has(key) || droppedKeys.has(key) || leftOut.includes(key)) continue
    put(properties, renames.get(key) ?? key, value)
  }
  putCountry(properties, ownValue(from, 'mp_country_code'))
  put(properties, '$mixpanel_user_id', personId(ownValue(from, '$user_id')))
  put(properties, '$mixpanel_device_id', personId(ownValue(from, '$device_id')))
  put(properties, '$device_id', ownValue(from, '$device_id'))
  put(properties, '$event_type', autocaptureTypes.get(sourceName))
  putPersonUpdates(properties, {
    set: pickProperties(properties, personKeys),
    setOnce: pickProperties(properties, personOnceKeys),
  })
  return properties
}

/** The code, and the name that live events have for it. */
function putCountry(properties: JsonObject, code: JsonValue | undefined): void {
  put(properties, '$geoip_country_code', code)
  if (typeof code === 'string') put(properties, '$geoip_country_name', countryOf(code.trim().toUpperCase())?.name)
}

function droppedOf(from: JsonObject): string[] {
  return Object.keys(from).filter(key => droppedKeys.has(key))
}

/** A row of the profile export has no event. */
function isProfile(record: JsonObject): boolean {
  return !Object.hasOwn(record, 'event') && Object.hasOwn(record, '$distinct_id')
}

/** What Mixpanel reserves in profiles, and what it is called here. */
const profileRenames: ReadonlyMap<string, string> = new Map([
  ...['email', 'name', 'first_name', 'last_name', 'phone', 'avatar'].map(key => [`$${key}`, key] as const),
  ['$city', '$geoip_city_name'],
  ['$region', '$geoip_subdivision_1_name'],
])
const countryKeys = ['$country_code', 'mp_country_code']

function convertProfile(record: JsonObject, { window, profileTimeUs }: Settings): Conversion {
  const from = ownValue(record, '$properties')
  if (!isJsonObject(from)) throw new RecordReject('properties_not_object', '$properties')
  const distinctId = chosenId([ownValue(record, '$distinct_id')])
  if (profileTimeUs === null) throw new RecordReject('timestamp_missing', 'profile_timestamp')
  checkTime(profileTimeUs, window, 'profile_timestamp')
  const set: JsonObject = {}
  for (const [key, value] of Object.entries(from)) {
    if (key === '$last_seen' || countryKeys.includes(key)) continue
    put(set, profileRenames.get(key) ?? key, value)
  }
  for (const key of countryKeys) putCountry(set, ownValue(from, key))
  const properties: JsonObject = {}
  putPersonUpdates(properties, { set })
  const uuid = rootUuid(name, 'profile', distinctId, timeText(profileTimeUs))
  return {
    events: [{ uuid, event: '$set', distinctId, timeUs: profileTimeUs, properties }],
    dropped: Object.keys(from).filter(key => key === '$last_seen'),
  }
}
