// Opens the state that an earlier start created, for commands that run next to an instance; creates and migrates nothing.

import { opendirSync } from 'node:fs'
import { resolve } from 'node:path'
import { isNewestSchema } from '#adapters/sql/known-migrations.ts'
import { findSqliteSchemaVersion } from '#adapters/sqlite/inspect-state-file.ts'
import type { Config } from '#config.ts'
import { err, ok, type Result } from '#core/result.ts'
import { PortError, UnfitSchemaError } from '#ports/port-error.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { openMigratedManagementStore, readStateUrls } from './state.ts'
import { findStateProblem } from './store-faults.ts'

/** @returns one line for the operator if there is no state, or the state cannot be used or is not of this version. */
export async function openExistingManagementStore(
  config: Config,
  logger: Logger,
): Promise<Result<ManagementStore, string>> {
  let place = `the data folder ${resolve(config.dataFolder)}`
  let management: ManagementStore | undefined
  try {
    let version: number | null
    const url = readStateUrls(config)?.url ?? null
    if (url === null) {
      const unreadable = findAccessProblem(config.dataFolder)
      if (unreadable !== null) return err(unreadable)
      const unfit = findStateProblem(config)
      if (unfit !== null) return err(unfit)
      version = findSqliteSchemaVersion(config.dataFolder)
    } else {
      const { checkPostgres, findPostgresSchemaVersion } = await import('#adapters/postgres/check-postgres.ts')
      const checked = await checkPostgres(url)
      if (!checked.ok) return err(checked.error.message)
      place = `PostgreSQL at ${checked.value.place}`
      if (checked.value.isReplica) return err(`${place} is a replica; set DATABASE_URL to its primary.`)
      const { state } = checked.value
      if ('refusal' in state) return err(`${place} cannot be used: ${state.refusal}.`)
      version = state.hasState ? await findPostgresSchemaVersion(url) : null
    }
    if (version === null) return err(describeMissingState(place))
    if (!isNewestSchema(version))
      return err(
        `The state in ${place} lacks migrations of this version. Start the instance once to migrate the state.`,
      )
    management = await openMigratedManagementStore(config, logger)
    if (await isUntouched(management)) {
      await management.close()
      return err(describeMissingState(place))
    }
    return ok(management)
  } catch (cause) {
    await management?.close()
    if (cause instanceof UnfitSchemaError) return err(cause.message)
    if (cause instanceof PortError) return err(`The state in ${place} cannot be used: ${cause.message}`)
    throw cause
  }
}

/**
 * Whether the first start ended before it created keys. A key created now would keep the next start from creating the
 * project.
 */
async function isUntouched(management: ManagementStore): Promise<boolean> {
  if ((await management.listPersonalKeys({ limit: 1, offset: 0 })).count > 0) return false
  return (await management.listProjects({ limit: 1, offset: 0 })).count === 0
}

/** A line for people if this user may not read the folder, in which everything would seem to be missing; otherwise null. */
export function findAccessProblem(dataFolder: string): string | null {
  try {
    opendirSync(dataFolder).closeSync()
    return null
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    // The caller reports a missing folder, or a file in its place.
    if (code !== 'EACCES' && code !== 'EPERM') return null
    return `The data folder ${dataFolder} is not readable by user ${process.geteuid?.()} (${code}). Run this as the user of the instance.`
  }
}

function describeMissingState(place: string): string {
  return `There is no state in ${place}. Set PENNON_DATA (such as PENNON_DATA=/var/lib/pennon) or DATABASE_URL as for the instance. For a new instance, start it first: the first start prints a key.`
}
