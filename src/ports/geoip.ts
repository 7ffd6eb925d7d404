// Looks up the location of an IP address in a database on this host.

import type { GeoipLocation } from '#core/geoip.ts'

export interface Geoip {
  /** Null for private, malformed and unknown addresses. Never throws. Blocks at most to read a few pages of a file. */
  lookUp(address: string): GeoipLocation | null
}
