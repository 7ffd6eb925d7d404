// The space that an import leaves free on its disk: a service on the same disk answers 503 to all capture once less than
// PENNON_MIN_FREE_BYTES is free. Source: ours; `pennon backup` leaves the same space.

import { statfsSync } from 'node:fs'
import { readableBytes } from '#commands/readable-bytes.ts'
import { readSetting } from '#config.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import type { FindSpaceProblem } from '#importer/read/disk-space.ts'

export interface DiskSize {
  readonly freeBytes: number
  readonly totalBytes: number
}

/** Leaves more than the limit, at which capture stops, so that the service can still write while the import waits. */
const reserveShare = 1.25

/** @throws JobStopped for an invalid setting. */
export function reserveOf(path: string): FindSpaceProblem {
  const read = readSetting('freeBytesMin', process.env)
  if (!read.ok) throw new JobStopped(read.error)
  return diskReserve(path, read.value)
}

/**
 * @param path of a folder that exists when the result is called.
 * @param freeBytesMin the value of PENNON_MIN_FREE_BYTES; 0 for no reserve.
 */
export function diskReserve(path: string, freeBytesMin: number, look = diskOf): FindSpaceProblem {
  const keptBytes = Math.ceil(freeBytesMin * reserveShare)
  if (keptBytes === 0) return () => null
  const kept = `${readableBytes(keptBytes)} (PENNON_MIN_FREE_BYTES and a quarter)`
  return bytes => {
    const { freeBytes, totalBytes } = look(path)
    if (totalBytes < keptBytes)
      throw new JobStopped(
        `the disk of ${path} has ${readableBytes(totalBytes)} in total, but an import leaves ${kept} free for a service on the same disk. ` +
          'Use a folder on a larger disk, or lower PENNON_MIN_FREE_BYTES for this command (0 if there is no service)',
      )
    if (freeBytes >= keptBytes + bytes) return null
    const next = bytes === 0 ? '' : `, and incoming files need ${readableBytes(bytes)}`
    return (
      `WARNING: the disk of ${path} is full except for a reserve: ${readableBytes(freeBytes)} are free${next}; ${kept} stay free for a service on the same disk. ` +
      'No progress is lost: free disk space, and the command continues. Or stop it, lower PENNON_MIN_FREE_BYTES for this command, and run it again.'
    )
  }
}

function diskOf(path: string): DiskSize {
  const { bavail, blocks, bsize } = statfsSync(path)
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
}
