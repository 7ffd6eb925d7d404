// Decides whether the log may grow, by its size limit and the free disk space. Imports may take half of each, so that an
// import never causes live events to be refused. Several processes write and delete in the same folder, so sizes are
// measured once a second, and this process adds what it writes in between.

import { statfsSync } from 'node:fs'
import { join } from 'node:path'
import type { LogSpace } from '#ports/log/event-log.ts'
import { measureFolder } from './segment-file.ts'

export interface SpaceLimits {
  /** The folder of all streams. */
  readonly folder: string
  /** Limit for the files of all streams together. */
  readonly logBytesMax: number
  /** Bytes that must stay free on the disk. */
  readonly minFreeBytes: number
}

const lookAgainAfterMs = 1_000
/** Measures more often while full, to notice freed space quickly. */
const lookAgainWhenFullAfterMs = 200

/** Space is short when less than this share of a limit is left: writes must fit until the next measurement. */
const headroomShare = 1 / 8

/** The imports' share of the log's limit, and of the disk space above the reserve that would be free without imports. */
const importShare = 1 / 2

/** @throws system errors. */
export function measureLogSpace({ folder, logBytesMax, minFreeBytes }: SpaceLimits): LogSpace {
  const importBytes = measureFolder(join(folder, 'historical'))
  const bytes = measureFolder(join(folder, 'main')) + importBytes
  const disk = statfsSync(folder)
  const freeBytes = disk.bavail * disk.bsize
  const isShort = bytes > logBytesMax * (1 - headroomShare) || freeBytes < minFreeBytes * (1 + headroomShare)
  const importBytesMax = Math.min(logBytesMax, Math.max(0, freeBytes - minFreeBytes) + importBytes) * importShare
  const areImportsShort = importBytes > importBytesMax * (1 - headroomShare)
  const freeBytesMin = minFreeBytes
  return {
    bytes,
    bytesMax: logBytesMax,
    freeBytes,
    freeBytesMin,
    isShort,
    importBytes,
    importBytesMax,
    areImportsShort,
  }
}

export class DiskSpace {
  readonly #options: SpaceLimits
  #lookedAtMs = Number.NEGATIVE_INFINITY
  /** Bytes left below the log's limit. */
  #logLeftBytes = 0
  /** Free bytes on the disk above `minFreeBytes`. */
  #diskLeftBytes = 0
  /** Bytes that imports may still take. */
  #importLeftBytes = 0

  constructor(options: SpaceLimits) {
    this.#options = options
  }

  /** Null when this many bytes may be written; otherwise the reason why not. */
  refusal(bytes: number): string | null {
    this.#lookAgain(bytes > Math.min(this.#logLeftBytes, this.#diskLeftBytes))
    const { logBytesMax, minFreeBytes } = this.#options
    const isLogFull = bytes > this.#logLeftBytes
    const isDiskFull = bytes > this.#diskLeftBytes
    if (!isLogFull && !isDiskFull) return null
    const log = `the log has reached its limit, PENNON_LOG_MAX_BYTES, of ${logBytesMax} bytes`
    const disk = `the disk has less free space than PENNON_MIN_FREE_BYTES, ${minFreeBytes} bytes`
    return isLogFull && isDiskFull ? `${log}, and ${disk}` : isLogFull ? log : disk
  }

  /** Like `refusal`, for imports, which may have used up their share although the log has space. */
  importRefusal(bytes: number): string | null {
    this.#lookAgain(bytes > this.#importLeftBytes)
    if (bytes <= this.#importLeftBytes) return null
    return (
      'imports have used up their share of the log: half of PENNON_LOG_MAX_BYTES, or of the disk space above ' +
      'PENNON_MIN_FREE_BYTES if that is less; live events are still accepted'
    )
  }

  /** Counts written bytes; the bytes of imports also count toward the share of imports. */
  wrote(bytes: number): void {
    this.#logLeftBytes -= bytes
    this.#diskLeftBytes -= bytes
    this.#importLeftBytes -= bytes
  }

  #lookAgain(isShort: boolean): void {
    const sinceMs = performance.now() - this.#lookedAtMs
    if (sinceMs < (isShort ? lookAgainWhenFullAfterMs : lookAgainAfterMs)) return
    const { bytes, bytesMax, freeBytes, freeBytesMin, importBytes, importBytesMax } = measureLogSpace(this.#options)
    this.#logLeftBytes = bytesMax - bytes
    this.#diskLeftBytes = freeBytes - freeBytesMin
    this.#importLeftBytes = importBytesMax - importBytes
    this.#lookedAtMs = performance.now()
  }
}
