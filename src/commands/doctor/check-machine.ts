// Checks Pennon's surroundings: the version of Node, the limit on open files, the data folder and its disk, and the clock
// that stamps every event.

import { accessSync, constants, existsSync, readdirSync, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { readOpenFilesMax } from '#compose/instance/machine.ts'
import type { Config } from '#config.ts'
import { dayMs } from '#core/time.ts'
import { howToInstall, optionalPackageNames, packageFolder, packageVersion, pennonCommand } from '#distribution.ts'
import { computeConnectionsMax } from '#http/connections.ts'
import { formatBytes } from '../format-bytes.ts'
import { createBadFinding, createGoodFinding, type Finding } from './finding.ts'

/** Files may be dated up to a minute ahead, since the clock may just have been set back a little. */
const toleranceMs = 60_000

export function checkNodeVersion(): Finding {
  const major = Number(process.versions.node.split('.')[0])
  const wrong = `${process.versions.node}, but Pennon needs Node 26 or newer`
  return major >= 26
    ? createGoodFinding('node', process.versions.node)
    : createBadFinding('node', wrong, `start it by \`${pennonCommand('serve')}\``)
}

/** Idle connections of SDKs would soon use up a lower limit. */
const openFilesMin = 1_024

/** @param openFilesMax null means no limit. */
export function checkOpenFiles(openFilesMax: number | null = readOpenFilesMax()): Finding {
  const limit = openFilesMax === null ? 'no limit' : `at most ${openFilesMax}`
  const found = `${limit}; ${computeConnectionsMax(openFilesMax)} connections for each front`
  if (openFilesMax === null || openFilesMax >= openFilesMin) return createGoodFinding('open files', found)
  const remedy = 'raise it: `ulimit -n 65536`, LimitNOFILE=65536 of a systemd unit, --ulimit nofile=65536 of Docker'
  return createBadFinding('open files', found, remedy)
}

/** Reports optional packages. A missing package is not a problem here: the feature that needs it says so. */
export function checkPackages(): Finding {
  const folders = optionalPackageNames.map(name => [name, packageFolder(name)] as const)
  const installed = folders.flatMap(([name, folder]) => (folder === null ? [] : `${name} ${packageVersion(folder)}`))
  const missing = folders.flatMap(([name, folder]) => (folder === null ? `${name} (${howToInstall(name)})` : []))
  const parts = [installed.join(', '), missing.length === 0 ? '' : `not installed: ${missing.join(', ')}`]
  return createGoodFinding('optional packages', parts.filter(part => part !== '').join('; '))
}

export function checkDataFolder(config: Config): Finding {
  const folder = findNearestExisting(config.dataFolder)
  if (!statSync(folder).isDirectory())
    return createBadFinding(
      'data folder',
      `${folder} is not a folder`,
      'set PENNON_DATA to a folder, or to a path where one can be created',
    )
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    const isThere = existsSync(config.dataFolder)
    return createGoodFinding(
      'data folder',
      isThere ? config.dataFolder : `${config.dataFolder} (created on first start)`,
    )
  } catch {
    return createBadFinding(
      'data folder',
      `${folder} is not writable by this user`,
      'change its owner, or set PENNON_DATA to a writable folder',
    )
  }
}

export async function checkDiskSpace(config: Config): Promise<Finding> {
  const { bavail, bsize } = await statfs(findNearestExisting(config.dataFolder))
  const freeBytes = bavail * bsize
  const found = `${formatBytes(freeBytes)} free; events are refused below ${formatBytes(config.freeBytesMin)}`
  return freeBytes >= config.freeBytesMin
    ? createGoodFinding('disk', found)
    : createBadFinding(
        'disk',
        found,
        'free disk space, move PENNON_DATA to a larger disk, or lower PENNON_MIN_FREE_BYTES',
      )
}

/** The folder itself, or its nearest ancestor that exists. */
function findNearestExisting(path: string): string {
  return existsSync(path) ? path : findNearestExisting(dirname(path))
}

/** @param now given only by tests. */
export function checkClock(config: Config, now: Date = new Date()): Finding {
  const remedy = 'set the clock and synchronize it with NTP: its error is stored with every event'
  const installedAtMs = statSync(new URL(import.meta.url)).mtimeMs
  if (now.getTime() < installedAtMs - dayMs)
    return createBadFinding('clock', `${now.toISOString()} is earlier than the installation of this program`, remedy)
  const writtenAtMs = findLastWrittenMs(config.dataFolder)
  if (now.getTime() < writtenAtMs - toleranceMs) {
    const written = new Date(writtenAtMs).toISOString()
    return createBadFinding('clock', `${now.toISOString()}, but the data folder was last written at ${written}`, remedy)
  }
  return createGoodFinding('clock', now.toISOString())
}

/** When a file of the state or of the log was last written, epoch ms; 0 before the first start. */
function findLastWrittenMs(dataFolder: string): number {
  let latest = 0
  for (const folder of ['.', ...listNames(join(dataFolder, 'log')).map(name => join('log', name))]) {
    for (const name of listNames(join(dataFolder, folder))) {
      const entry = statSync(join(dataFolder, folder, name), { throwIfNoEntry: false })
      if (entry?.isFile()) latest = Math.max(latest, entry.mtimeMs)
    }
  }
  return latest
}

function listNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return [] // missing or unreadable, which the check of the folder reports
  }
}
