// The event properties that also describe the person, and those that change too often to be worth a separate write. Lifts
// the former into `$set` and, as `$initial_…`, into `$set_once`; `person-update.ts` applies the maps.

import { isJsonObject, type JsonObject, type JsonValue, setOwnValue } from '#core/json.ts'

const liftedKeys = `$app_build $app_name $app_namespace $app_version $browser $browser_version $device_type $current_url
  $pathname $os $os_name $os_version $referring_domain $referrer $screen_height $screen_width $viewport_height
  $viewport_width $raw_user_agent utm_source utm_medium utm_campaign utm_content utm_name utm_term gclid gad_source gclsrc
  dclid gbraid wbraid fbclid msclkid twclid li_fat_id mc_cid igshid ttclid rdt_cid irclid _kx epik qclid sccid`.split(
  /\s+/,
)

/** Lifted key → its `$initial_…` name. Source: docs/wire/ingestion.md 6.6. */
export const mappedProperties: ReadonlyMap<string, string> = new Map(
  liftedKeys.map(key => [key, `$initial_${key.replace('$', '')}`]),
)

/** Keys whose change alone is not written to the person. Source: docs/wire/ingestion.md 6.6. */
export const filteredProperties: ReadonlySet<string> = new Set([
  ...`$current_url $pathname $referring_domain $referrer $screen_height $screen_width $viewport_height $viewport_width
    $browser $browser_version $device_type $raw_user_agent $os $os_name $os_version $geoip_postal_code $geoip_time_zone
    $geoip_latitude $geoip_longitude $geoip_accuracy_radius $geoip_city_confidence $geoip_country_confidence
    $geoip_postal_code_confidence`.split(/\s+/),
  ...[1, 2, 3].flatMap(level => ['code', 'name', 'confidence'].map(what => `$geoip_subdivision_${level}_${what}`)),
])

export interface PersonMaps {
  /** Null if the event has no map of this name. */
  readonly set: JsonObject | null
  readonly setOnce: JsonObject | null
}

/**
 * The `$os_name` to use as the event's `$os`: SDKs have sent `$os_name` in its place since 2024. Undefined if the event has
 * `$os`, and for servers, whose system says nothing about the person. Source: docs/wire/ingestion.md 6.6.
 */
export function osFromOsName(properties: JsonObject): JsonValue | undefined {
  return Object.hasOwn(properties, '$os') || properties.$is_server === true ? undefined : properties.$os_name
}

/**
 * The person maps of an event: the lifted properties, overwritten key by key by the client's own maps. When nothing is
 * lifted, the client's maps are returned unchanged. Source: docs/wire/ingestion.md 6.6; vectors.
 */
export function buildPersonSetMaps(
  properties: JsonObject,
  keys: readonly string[],
  clientSet: JsonObject | null,
  clientSetOnce: JsonObject | null,
): PersonMaps {
  const isServer = properties.$is_server === true
  const osName = isServer ? undefined : properties.$os_name
  let set: JsonObject | null = null
  let setOnce: JsonObject | null = null
  for (const key of keys) {
    const initialKey = mappedProperties.get(key)
    if (initialKey === undefined || (isServer && (key === '$os' || key === '$os_version'))) continue
    set ??= {}
    setOnce ??= {}
    if (osName !== undefined && key === '$os_name') continue
    set[key] = properties[key]!
    setOnce[initialKey] = properties[key]!
  }
  if (set === null || setOnce === null) return { set: clientSet, setOnce: clientSetOnce }
  if (clientSet !== null) copyOwnKeys(set, clientSet)
  if (clientSetOnce !== null) copyOwnKeys(setOnce, clientSetOnce)
  if (osName === undefined) return { set, setOnce }
  if (set.$os === undefined) set.$os = osName
  if (setOnce.$initial_os === undefined) setOnce.$initial_os = osName
  if (set.$os_name !== undefined) delete set.$os_name
  if (setOnce.$initial_os_name !== undefined) delete setOnce.$initial_os_name
  return { set, setOnce }
}

/** An event's `$set` or `$set_once`: the map in the properties, overwritten by the top-level one; null without both. */
export function readClientSetMap(
  inner: JsonObject[string] | undefined,
  topLevel: JsonObject | null,
): JsonObject | null {
  const innerMap = isJsonObject(inner) ? inner : null
  if (topLevel === null) return innerMap
  if (innerMap === null) return topLevel
  const merged = { ...innerMap }
  copyOwnKeys(merged, topLevel)
  return merged
}

/** Copies the own keys of `over` into `target`. */
export function copyOwnKeys(target: JsonObject, over: JsonObject): void {
  for (const key of Object.keys(over)) setOwnValue(target, key, over[key]!)
}
