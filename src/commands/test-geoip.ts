// A table of locations in the place of the GeoIP database, also in a child process. Refused where the test clock is.

import type { GeoipLocation } from '#core/geoip.ts'
import type { Geoip } from '#ports/geoip.ts'

/** Address → what is known of it. */
export type GeoipTable = Readonly<Record<string, GeoipLocation>>

export function tableGeoip(table: GeoipTable): Geoip {
  const locations = new Map(Object.entries(table))
  return { lookUp: address => locations.get(address) ?? null }
}
