// Whether the log may grow: its own limit and what is free on the disk. Looked up at most once a second, because several
// processes fill and empty the same folder, and counted along in between.

import { statfsSync } from 'node:fs'
import { join } from 'node:path'
import { logLanes } from '#core/events/captured-event.ts'
import type { LogRoom } from '#ports/event-log.ts'
import { folderBytes } from './segment-file.ts'

export interface RoomLimits {
  /** The folder of all lanes. */
  readonly folder: string
  /** All lanes together, as files on the disk. */
  readonly logBytesMax: number
  /** What has to stay free on the disk. */
  readonly minFreeBytes: number
}

const lookAgainAfterMs = 1_000
/** Sooner while there is no room, so that it is noticed when there is some again. */
const lookAgainWhenFullAfterMs = 200

/** The share of each limit that is kept free for what is written before the next look. */
const headroomShare = 1 / 8

/** @throws system errors. */
export function lookAtRoom({ folder, logBytesMax, minFreeBytes }: RoomLimits): LogRoom {
  let bytes = 0
  for (const lane of logLanes) bytes += folderBytes(join(folder, lane))
  const disk = statfsSync(folder)
  const freeBytes = disk.bavail * disk.bsize
  const isShort = bytes > logBytesMax * (1 - headroomShare) || freeBytes < minFreeBytes * (1 + headroomShare)
  return { bytes, bytesMax: logBytesMax, freeBytes, freeBytesMin: minFreeBytes, isShort }
}

export class DiskRoom {
  readonly #options: RoomLimits
  #lookedAtMs = Number.NEGATIVE_INFINITY
  /** What is left of the log's own limit. */
  #logLeftBytes = 0
  /** What the disk has free above `minFreeBytes`. */
  #diskLeftBytes = 0

  constructor(options: RoomLimits) {
    this.#options = options
  }

  /** Null when so many bytes may be written, else what stands against it. */
  refusal(bytes: number): string | null {
    const sinceMs = performance.now() - this.#lookedAtMs
    if (sinceMs >= (bytes > this.#leftBytes ? lookAgainWhenFullAfterMs : lookAgainAfterMs)) this.#look()
    if (bytes <= this.#leftBytes) return null
    const { logBytesMax, minFreeBytes } = this.#options
    const isLogFull = bytes > this.#logLeftBytes
    const isDiskFull = bytes > this.#diskLeftBytes
    const log = `the log has reached its limit, PENNON_LOG_MAX_BYTES, of ${logBytesMax} bytes`
    const disk = `fewer than PENNON_MIN_FREE_BYTES, ${minFreeBytes} bytes, are free on the disk`
    return isLogFull && isDiskFull ? `${log}, and ${disk}` : isLogFull ? log : disk
  }

  wrote(bytes: number): void {
    this.#logLeftBytes -= bytes
    this.#diskLeftBytes -= bytes
  }

  get #leftBytes(): number {
    return Math.min(this.#logLeftBytes, this.#diskLeftBytes)
  }

  #look(): void {
    const { bytes, bytesMax, freeBytes, freeBytesMin } = lookAtRoom(this.#options)
    this.#logLeftBytes = bytesMax - bytes
    this.#diskLeftBytes = freeBytes - freeBytesMin
    this.#lookedAtMs = performance.now()
  }
}
