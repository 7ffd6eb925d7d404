// The result of looking up an address, and the properties that an event, its person and an evaluation get from it. The
// look-up itself is a port (`ports/geoip.ts`).

import type { JsonObject, JsonValue, PropertyBag } from './json.ts'

/** Source: docs/wire/ingestion.md 7. */
export const geoipKeys = [
  'city_name',
  'city_confidence',
  'subdivision_2_name',
  'subdivision_2_code',
  'subdivision_1_name',
  'subdivision_1_code',
  'country_name',
  'country_code',
  'continent_name',
  'continent_code',
  'postal_code',
  'latitude',
  'longitude',
  'accuracy_radius',
  'time_zone',
] as const
export type GeoipKey = (typeof geoipKeys)[number]

/** What is known about an address; names are English. A key that was not found is absent or null. */
export type GeoipLocation = { readonly [key in GeoipKey]?: JsonValue } & {
  /** Subdivisions beyond the second, as `subdivision_3_name`, `subdivision_3_code`, …. */
  readonly further?: JsonObject
}

export interface GeoipProperties {
  /** Properties for the event: only the keys that were found. */
  readonly event: JsonObject
  /** For `$set`: all 15 keys, null when not found, plus further subdivisions found. */
  readonly set: JsonObject
  /** For `$set_once`: the same values under `$initial_geoip_…`. */
  readonly setOnce: JsonObject
}

/** Source: docs/wire/service.md 4.1. */
const evaluationKeys = [
  'city_name',
  'country_name',
  'country_code',
  'continent_name',
  'continent_code',
  'postal_code',
  'time_zone',
] as const satisfies readonly GeoipKey[]

/** The properties that an evaluation gets: only those with a value. Source: docs/wire/evaluation.md 6. */
export function toEvaluationProperties(location: GeoipLocation): PropertyBag {
  const properties: JsonObject = {}
  for (const key of evaluationKeys) {
    const value = location[key]
    if (value !== undefined && value !== null) properties[`$geoip_${key}`] = value
  }
  return properties
}

/** The properties that an event and its person get. Source: docs/wire/ingestion.md 7; vectors. */
export function toGeoipProperties(location: GeoipLocation): GeoipProperties {
  const properties = { event: {} as JsonObject, set: {} as JsonObject, setOnce: {} as JsonObject }
  for (const key of geoipKeys) addKey(properties, key, location[key] ?? null)
  const { further } = location
  if (further !== undefined) for (const key of Object.keys(further)) addKey(properties, key, further[key]!)
  return properties
}

function addKey(to: { event: JsonObject; set: JsonObject; setOnce: JsonObject }, key: string, value: JsonValue): void {
  if (value !== null) to.event[`$geoip_${key}`] = value
  to.set[`$geoip_${key}`] = value
  to.setOnce[`$initial_geoip_${key}`] = value
}
