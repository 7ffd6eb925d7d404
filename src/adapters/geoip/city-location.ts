// Converts a record of a City database to a location. There are two schemas: MaxMind's nested schema, with names in several
// languages, and the npm package's flat schema, which has only codes, and "" for unknown values.

import { continentNameOf, countryOf } from '#core/countries.ts'
import type { GeoipLocation } from '#core/geoip.ts'
import type { JsonObject, JsonValue } from '#core/json.ts'
import type { MmdbMap, MmdbValue } from './mmdb-file.ts'

/** Null when the record has no location. Names are English. Source: docs/wire/ingestion.md 7. */
export function toCityLocation(record: MmdbValue): GeoipLocation | null {
  if (!(record instanceof Map)) return null
  const location = typeof record.get('country_code') === 'string' ? toFlatLocation(record) : toNestedLocation(record)
  return Object.values(location).some(value => value !== null && value !== undefined) ? location : null
}

function toFlatLocation(record: MmdbMap): GeoipLocation {
  const code = readText(record.get('country_code'))
  const country = code === null ? null : countryOf(code)
  return {
    city_name: readText(record.get('city')),
    subdivision_2_name: readText(record.get('state2')),
    subdivision_1_name: readText(record.get('state1')),
    country_name: country?.name ?? null,
    country_code: code,
    continent_name: country && continentNameOf(country.continentCode),
    continent_code: country?.continentCode ?? null,
    postal_code: readText(record.get('postcode')),
    latitude: readCoordinate(record.get('latitude')),
    longitude: readCoordinate(record.get('longitude')),
    time_zone: readText(record.get('timezone')),
  }
}

function toNestedLocation(record: MmdbMap): GeoipLocation {
  const [country, continent, place] = [record.get('country'), record.get('continent'), record.get('location')]
  const subdivisions = record.get('subdivisions')
  const parts: readonly MmdbValue[] = Array.isArray(subdivisions) ? subdivisions : []
  const further = readFurtherSubdivisions(parts)
  return {
    city_name: readEnglishName(record.get('city')),
    subdivision_2_name: readEnglishName(parts[1]),
    subdivision_2_code: readText(readMember(parts[1], 'iso_code')),
    subdivision_1_name: readEnglishName(parts[0]),
    subdivision_1_code: readText(readMember(parts[0], 'iso_code')),
    country_name: readEnglishName(country),
    country_code: readText(readMember(country, 'iso_code')),
    continent_name: readEnglishName(continent),
    continent_code: readText(readMember(continent, 'code')),
    postal_code: readText(readMember(record.get('postal'), 'code')),
    latitude: readNumber(readMember(place, 'latitude')),
    longitude: readNumber(readMember(place, 'longitude')),
    accuracy_radius: readNumber(readMember(place, 'accuracy_radius')),
    time_zone: readText(readMember(place, 'time_zone')),
    ...(further !== null && { further }),
  }
}

/** Subdivisions after the second, with only the keys that the record has. */
function readFurtherSubdivisions(parts: readonly MmdbValue[]): JsonObject | null {
  const further: JsonObject = {}
  for (const [index, part] of parts.entries()) {
    if (index < 2) continue
    for (const [key, value] of [
      ['code', readText(readMember(part, 'iso_code'))],
      ['name', readEnglishName(part)],
    ] as const) {
      if (value !== null) further[`subdivision_${index + 1}_${key}`] = value
    }
  }
  return Object.keys(further).length === 0 ? null : further
}

function readMember(value: MmdbValue | undefined, key: string): MmdbValue | undefined {
  return value instanceof Map ? value.get(key) : undefined
}

function readEnglishName(value: MmdbValue | undefined): JsonValue {
  return readText(readMember(readMember(value, 'names'), 'en'))
}

function readText(value: MmdbValue | undefined): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

function readNumber(value: MmdbValue | undefined): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

/** GeoLite2 has four decimals; the flat files store 32-bit floats, which read back with spurious further digits. */
function readCoordinate(value: MmdbValue | undefined): number | null {
  const degrees = readNumber(value)
  return degrees === null ? null : Math.round(degrees * 10_000) / 10_000
}
