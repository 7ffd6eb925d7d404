// Where an address is, from a database in memory.

import type { GeoipLocation } from '#core/geoip.ts'

export interface Geoip {
  /** Null for private, malformed and unknown addresses. Never throws, never waits: the database is in memory. */
  lookUp(address: string): GeoipLocation | null
}
