// Opens the log of an instance from its configuration. Only this module knows which adapter the log has: currently, the
// segments in the data folder.

import { join, resolve } from 'node:path'
import { embeddedStreamNames } from '#adapters/sqlite-log/embedded-streams.ts'
import {
  hasLogSegments,
  readLogIdentity,
  removeOrphanFilesOfStreams,
  writeLogIdentity,
} from '#adapters/sqlite-log/log-identity.ts'
import { damagedSegmentLine } from '#adapters/sqlite-log/segment-file.ts'
import { openSqliteLogReader, type SqliteLogReader } from '#adapters/sqlite-log/sqlite-log-reader.ts'
import type { Config } from '#config.ts'
import type { BindLogDeps, FindBindingDeps } from '#services/progress/bind-log.ts'
import type { Logger } from '#telemetry/log.ts'

/**
 * Opens the log's reader and retention.
 * @param damageLogger passed only by the process that processes the log: damaged segments are then set aside and logged to this
 * logger.
 * @param isAsFound true to read a log from outside its instance, whether the instance runs or not.
 */
export function openLogReader(
  config: Config,
  { damageLogger, isAsFound = false }: { readonly damageLogger?: Logger; readonly isAsFound?: boolean } = {},
): SqliteLogReader {
  const { logBytesMax, freeBytesMin } = config
  return openSqliteLogReader({
    isAsFound,
    folder: getLogFolder(config),
    logBytesMax,
    minFreeBytes: freeBytesMin,
    ...(damageLogger && {
      onDamage: ({ stream, path, error }) => damageLogger.error({ stream, path, err: error }, damagedSegmentLine),
    }),
  })
}

/** The id of the log; null if the log does not exist yet. @throws LogIdentityError, system errors. */
export function readLogId(config: Config): string | null {
  return readLogIdentity(getLogFolder(config))
}

/** Whether the log has segments, so that records were appended to it, or could have been. */
export function hasLog(config: Config): boolean {
  return hasLogSegments(getLogFolder(config))
}

/** Id, streams and segments of the log as found; changes nothing. @throws LogIdentityError, system errors. */
export function readLogBinding(config: Config): FindBindingDeps['log'] {
  const folder = resolve(getLogFolder(config))
  return { id: readLogIdentity(folder), streams: embeddedStreamNames, hasSegments: hasLogSegments(folder) }
}

/** Prepares the log for a start, which binds it to the state. @throws LogIdentityError, system errors. */
export function prepareLog(config: Config): Pick<BindLogDeps, 'folder' | 'log'> {
  const folder = resolve(getLogFolder(config))
  removeOrphanFilesOfStreams(folder)
  return {
    folder,
    log: {
      ...readLogBinding(config),
      writeId: id => writeLogIdentity(folder, id),
    },
  }
}

/** The folder of the log, which has a folder for each stream. */
export function getLogFolder(config: Config): string {
  return join(config.dataFolder, 'log')
}
