// Checks that the data folder can be written and that its disk has space.

import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Config } from '#config.ts'
import { readableBytes } from '../readable-bytes.ts'
import { badFinding, type Finding, goodFinding } from './finding.ts'

export function checkFolder(config: Config): Finding {
  const folder = nearestExisting(config.dataFolder)
  if (!statSync(folder).isDirectory())
    return badFinding(
      'data folder',
      `${folder} is not a folder`,
      'set PENNON_DATA to a folder, or to a path where one can be created',
    )
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    const isThere = existsSync(config.dataFolder)
    return goodFinding('data folder', isThere ? config.dataFolder : `${config.dataFolder} (created on first start)`)
  } catch {
    return badFinding(
      'data folder',
      `${folder} is not writable by this user`,
      'change its owner, or set PENNON_DATA to a writable folder',
    )
  }
}

export async function checkDiskSpace(config: Config): Promise<Finding> {
  const { bavail, bsize } = await statfs(nearestExisting(config.dataFolder))
  const freeBytes = bavail * bsize
  const found = `${readableBytes(freeBytes)} free; events are refused below ${readableBytes(config.freeBytesMin)}`
  return freeBytes >= config.freeBytesMin
    ? goodFinding('disk', found)
    : badFinding('disk', found, 'free disk space, move PENNON_DATA to a larger disk, or lower PENNON_MIN_FREE_BYTES')
}

/** The folder itself, or its nearest ancestor that exists. */
function nearestExisting(path: string): string {
  return existsSync(path) ? path : nearestExisting(dirname(path))
}
