// Finds faults of the stores in a data folder, each with its file and a remedy: for a start, which is refused before it
// changes anything, and for `pennon doctor`, which reads the stores completely.

import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { engineFolderOf } from '#adapters/clickhouse-embedded/engine-endpoint.ts'
import {
  findEngineLibraryPath,
  findLibraryProblem,
  hasEnginePackageForMachine,
} from '#adapters/clickhouse-embedded/engine-library.ts'
import { findSchemaProblem, isNewestSchema } from '#adapters/sql/known-migrations.ts'
import {
  findSchemaVersionWithoutWal,
  findSqliteDamage,
  findSqliteSchemaVersion,
} from '#adapters/sqlite/inspect-state-file.ts'
import { stateFilePath } from '#adapters/sqlite/open-sqlite.ts'
import type { Config } from '#config.ts'
import { howToInstall, inDocs, missingPackage, reinstall } from '#distribution.ts'
import { PortError } from '#ports/port-error.ts'
import { findBindingRefusal } from '#services/progress/bind-log.ts'
import { getLogFolder, hasLog, readLogBinding } from '../log/log.ts'
import { findLogDamage, type LogDamage } from '../log/log-damage.ts'

export interface StoreFault {
  /** The fault in words, without a full stop. */
  readonly found: string
  readonly remedy: string
}

const restore = 'restore the whole data folder from a backup, or set PENNON_DATA to a new folder'
/** A state larger than this is only opened, since reading it completely would take longer than an operator waits. */
const readThroughBytesMax = 1024 ** 3

/** The folder into which a restore unpacks. It is removed at the end, so if it exists, a restore was interrupted. */
export function getRestoreFolder(dataFolder: string): string {
  return join(dataFolder, 'restoring')
}

/**
 * Called before locking or opening the data folder: a folder that is refused here is unchanged.
 * @returns one line for the operator if this version cannot follow the version that wrote the state; null otherwise.
 */
export function findStateProblem({ databaseUrl, dataFolder }: Config): string | null {
  const schema = databaseUrl === null ? findSchemaVersionWithoutWal(dataFolder) : null
  return schema === null ? null : findSchemaProblem(schema)
}

/**
 * Checks whether `state.db` is damaged (as far as opening it shows), is of another version, or is missing from a folder
 * that was in use or in which a restore did not finish. To be called after `findStateProblem`, which does not see
 * migrations that a killed process left only in the `-wal` file.
 * @throws PortError if it cannot be opened for another reason.
 */
export function findStateFault(config: Config): StoreFault | null {
  const { dataFolder } = config
  if (config.databaseUrl !== null) return findInterruptedRestore(dataFolder)
  const path = stateFilePath(dataFolder)
  if (existsSync(path) && !statSync(path).isFile())
    return { found: `${path} is not a file`, remedy: `Move it away, and ${restore}` }
  try {
    const schema = findSqliteSchemaVersion(dataFolder)
    const unfit = findSchemaProblem(schema ?? 0)
    if (unfit !== null) return parseFaultLine(unfit)
    if (schema !== null) return null
  } catch (cause) {
    return toStateFault(config, cause)
  }
  const interrupted = findInterruptedRestore(dataFolder)
  if (interrupted !== null) return interrupted
  // Only the start of an instance creates these files, and only after the state, so there must have been a state.
  const others = [
    ...(hasLog(config) ? ['log/'] : []),
    ...(existsSync(join(engineFolderOf(dataFolder), 'endpoint.json')) ? ['events/'] : []),
  ]
  if (others.length === 0) return null
  return {
    found: `${path} is ${existsSync(path) ? 'empty' : 'missing'}, and ${others.join(' and ')} beside it ${others.length > 1 ? 'belong' : 'belongs'} to another state`,
    remedy: `If that state is in PostgreSQL, set DATABASE_URL to it; otherwise ${restore}`,
  }
}

/** To be called if there is no `state.db`, which a restore puts into place last. */
function findInterruptedRestore(dataFolder: string): StoreFault | null {
  const unpacked = getRestoreFolder(dataFolder)
  if (!existsSync(unpacked)) return null
  return {
    found: `A restore into ${dataFolder} did not finish`,
    remedy: `Run \`pennon restore\` again; or, to start without the backup, remove ${unpacked}`,
  }
}

/**
 * Checks whether a start would refuse the log because it belongs to another state. Changes nothing. Finds nothing unless the
 * state is in the data folder and of this version.
 * @throws PortError, LogIdentityError
 */
export async function findForeignLogFault(config: Config): Promise<StoreFault | null> {
  if (config.databaseUrl !== null) return null
  const schema = findSqliteSchemaVersion(config.dataFolder)
  if (schema === null || !isNewestSchema(schema)) return null
  const { openSqliteManagementStore } = await import('#adapters/sqlite/sqlite-management-store.ts')
  const management = openSqliteManagementStore({ dataFolder: config.dataFolder, access: 'read' })
  try {
    const log = { folder: getLogFolder(config), log: readLogBinding(config) }
    const refusal = await findBindingRefusal({ management, ...log, statePlace: null })
    return refusal === null ? null : parseFaultLine(refusal)
  } finally {
    await management.close()
  }
}

/** @param line for people, with the fault in its first sentence and the remedy in the rest. */
export function parseFaultLine(line: string): StoreFault {
  const [found, ...remedy] = line.replace(/\.$/, '').split('. ')
  return { found: found!, remedy: remedy.join('. ') }
}

/** @throws `cause` if it is not damage of the state. */
export function toStateFault({ dataFolder }: Pick<Config, 'dataFolder'>, cause: unknown): StoreFault {
  if (!(cause instanceof PortError && cause.port === 'state' && cause.code === 'corrupt')) throw cause
  return toDamageFault(stateFilePath(dataFolder), cause)
}

function toDamageFault(path: string, cause: PortError): StoreFault {
  let origin: Error = cause
  while (origin.cause instanceof Error) origin = origin.cause
  return { found: `${path} is damaged (${origin.message.replace(/^.*corrupt: /, '')})`, remedy: capitalize(restore) }
}

/** Returns a fault if the embedded event store is configured but not installed. */
export function findEngineFault({ clickhouseUrl }: Pick<Config, 'clickhouseUrl'>): StoreFault | null {
  if (clickhouseUrl !== null || findEngineLibraryPath() !== null) return null
  if (!hasEnginePackageForMachine())
    return {
      found: `There is no embedded event store for this system (${process.platform} on ${process.arch}): it runs on Linux with glibc and on macOS, x64 and arm64`,
      remedy: 'Set CLICKHOUSE_URL to a ClickHouse server',
    }
  return {
    found: missingPackage('chdb'),
    remedy: `Set CLICKHOUSE_URL to a ClickHouse server, or ${howToInstall('chdb')}`,
  }
}

/** Returns a fault if the embedded event store is installed but cannot be loaded. Loads it in a short-lived process. */
export async function findEngineDamage({ clickhouseUrl }: Config): Promise<StoreFault | null> {
  const path = findEngineLibraryPath()
  if (clickhouseUrl !== null || path === null) return null
  const reason = await findLibraryProblem(path)
  if (reason === null) return null
  return {
    found: `The embedded event store is installed but cannot be loaded (${reason})`,
    remedy: `${capitalize(reinstall)}, or set CLICKHOUSE_URL to a ClickHouse server`,
  }
}

/**
 * Reads the whole state unless it is large.
 * @returns a fault, `read` or `opened` for how much of the state was checked, or null if there is no state file.
 * @throws PortError
 */
export function checkWholeState(config: Config): StoreFault | 'read' | 'opened' | null {
  const path = stateFilePath(config.dataFolder)
  const { size } = statSync(path, { throwIfNoEntry: false }) ?? { size: 0 }
  if (size === 0) return null
  if (size > readThroughBytesMax) return 'opened'
  try {
    const damage = findSqliteDamage(config.dataFolder)
    if (damage === null) return 'read'
    return { found: `${path} is damaged (${damage.replaceAll(/\s*\n\s*/g, ' ')})`, remedy: capitalize(restore) }
  } catch (cause) {
    return toStateFault(config, cause)
  }
}

/** Opens every segment of the log. @returns a fault for each damaged file. @throws any error that is not damage. */
export function findLogFaults(config: Config): readonly StoreFault[] {
  return findLogDamage(config).map(toLogFault)
}

function toLogFault(damage: LogDamage): StoreFault {
  switch (damage.kind) {
    case 'identity':
      return { found: damage.message.split(';')[0]!, remedy: capitalize(restore) }
    case 'set_aside':
      return { found: `${damage.path} was damaged and has been set aside`, remedy: segmentRemedy }
    case 'segment':
      return { ...toDamageFault(damage.path, damage.cause), remedy: segmentRemedy }
  }
}

const segmentRemedy = `Its intact records are processed automatically; the others can only be restored from a backup${inDocs('operating/monitoring.md')}`

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
