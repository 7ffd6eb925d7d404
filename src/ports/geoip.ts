// Where an address is, from a database on this host.

import type { GeoipLocation } from '#core/geoip.ts'

export interface Geoip {
  /** Null for private, malformed and unknown addresses. Never throws; blocks for a few pages of a local file at most. */
  lookUp(address: string): GeoipLocation | null
}
