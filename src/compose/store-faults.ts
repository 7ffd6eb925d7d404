// What is wrong with the stores in a data folder, each fault with its file and a way out: for a start, which is refused
// before it makes anything, and for `pennon doctor`, which reads them through.

import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { engineFolder } from '#adapters/clickhouse-embedded/engine-endpoint.ts'
import { findSqliteDamage, findSqliteSchema } from '#adapters/sqlite/find-schema.ts'
import { stateFileOf } from '#adapters/sqlite/open-sqlite.ts'
import { hasLogSegments, LogIdentityError, readLogIdentity } from '#adapters/sqlite-log/log-identity.ts'
import { openReadable, readError } from '#adapters/sqlite-log/readable-segment.ts'
import { listSegments } from '#adapters/sqlite-log/segment-file.ts'
import { logLanes } from '#core/events/captured-event.ts'
import { PortError } from '#ports/port-error.ts'
import type { Config } from '../config.ts'
import { logFolder } from './stores.ts'

export interface StoreFault {
  /** Without a full stop. */
  readonly found: string
  readonly remedy: string
}

const restore = 'restore the data folder from a backup, as a whole, or set PENNON_DATA to a new folder'
/** What takes longer to read than somebody waits: a larger state is opened, and not read through. */
const readThroughBytesMax = 1024 ** 3

/**
 * Whether `state.db` is damaged, as far as opening it tells, or is missing from a folder that was in use.
 * @throws PortError when it cannot be opened for another reason.
 */
export function findStateFault(config: Config): StoreFault | null {
  if (config.databaseUrl !== null) return null
  const { dataFolder } = config
  const path = stateFileOf(dataFolder)
  try {
    if (findSqliteSchema(dataFolder) !== null) return null
  } catch (cause) {
    return stateDamage(config, cause)
  }
  // As nothing but a start leaves them, each of which makes its state first.
  const others = [
    ...(hasLogSegments(logFolder(config)) ? ['log/'] : []),
    ...(existsSync(join(engineFolder(dataFolder), 'endpoint.json')) ? ['events/'] : []),
  ]
  if (others.length === 0) return null
  return {
    found: `${path} is ${existsSync(path) ? 'empty' : 'missing'}, and ${others.join(' and ')} beside it ${others.length > 1 ? 'belong' : 'belongs'} to another state`,
    remedy: `If that is in PostgreSQL, set DATABASE_URL to it; else ${restore}`,
  }
}

/** @throws `cause` when it is about something else. */
export function stateDamage({ dataFolder }: Pick<Config, 'dataFolder'>, cause: unknown): StoreFault {
  if (!(cause instanceof PortError && cause.port === 'state' && cause.code === 'corrupt')) throw cause
  return damaged(stateFileOf(dataFolder), cause)
}

function damaged(path: string, cause: PortError): StoreFault {
  let origin: Error = cause
  while (origin.cause instanceof Error) origin = origin.cause
  return { found: `${path} is damaged (${origin.message.replace(/^.*corrupt: /, '')})`, remedy: upperCased(restore) }
}

/** Reads the state through, unless it is large. @returns how far it was read; a fault. @throws PortError */
export function readStateThrough(config: Config): StoreFault | 'read' | 'opened' | null {
  const path = stateFileOf(config.dataFolder)
  const { size } = statSync(path, { throwIfNoEntry: false }) ?? { size: 0 }
  if (size === 0) return null
  if (size > readThroughBytesMax) return 'opened'
  try {
    const damage = findSqliteDamage(config.dataFolder)
    if (damage === null) return 'read'
    return { found: `${path} is damaged (${damage.replaceAll(/\s*\n\s*/g, ' ')})`, remedy: upperCased(restore) }
  } catch (cause) {
    return stateDamage(config, cause)
  }
}

/** Opens every segment of the log. @returns a fault for each damaged file. @throws any error that is no damage. */
export function findLogFaults(config: Config): readonly StoreFault[] {
  const folder = logFolder(config)
  const faults: StoreFault[] = []
  try {
    readLogIdentity(folder)
  } catch (cause) {
    if (!(cause instanceof LogIdentityError)) throw cause
    faults.push({ found: cause.message.split(';')[0]!, remedy: upperCased(restore) })
  }
  for (const segment of logLanes.flatMap(lane => listSegments(join(folder, lane)))) {
    if (segment.form === 'damaged') {
      faults.push({ found: `${segment.path} was damaged, and is set aside`, remedy: segmentRemedy })
      continue
    }
    try {
      const opened = openReadable(segment)
      try {
        opened.endOffset()
      } finally {
        opened.close()
      }
    } catch (cause) {
      const failure = readError(cause, segment.path)
      if (!(failure instanceof PortError)) throw failure
      // A segment that goes away meanwhile was processed, and one that is busy can be read.
      if (failure.code === 'corrupt') faults.push({ ...damaged(segment.path, failure), remedy: segmentRemedy })
    }
  }
  return faults
}

const segmentRemedy =
  'What is whole in it is processed by itself; the rest comes back only from a backup (docs/operating/monitoring.md)'

function upperCased(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
