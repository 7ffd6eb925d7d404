// A table of locations that replaces the GeoIP database in tests, in a child process too (`hooks.ts`).

import type { GeoipLocation } from '#core/geoip.ts'
import type { Geoip } from '#ports/geoip.ts'

/** Maps an address to its location. */
export type GeoipTable = Readonly<Record<string, GeoipLocation>>

export function createGeoipFromTable(table: GeoipTable): Geoip {
  const locations = new Map(Object.entries(table))
  return { lookUp: address => locations.get(address) ?? null }
}
