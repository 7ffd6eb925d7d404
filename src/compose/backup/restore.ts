// Restores a backup into a data folder that has no instance yet. Everything is first unpacked in a subfolder and checked,
// then renamed into place, the state last, so that no start takes an interrupted restore for an instance.

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { open, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder } from '#adapters/backup-file/sync-folder.ts'
import { BackupDamagedError, unpackBackup } from '#adapters/backup-file/unpack-backup.ts'
import { isNewestSchema } from '#adapters/sql/known-migrations.ts'
import type { Config } from '#config.ts'
import { err, ok, type Result } from '#core/result.ts'
import { UnfitSchemaError } from '#ports/port-error.ts'
import { acquireDataLock } from '#processes/data-lock.ts'
import { getRestoreFolder } from '../stores/store-faults.ts'
import { type BackupDescription, decodeBackupDescription, descriptionName } from './backup-description.ts'

export interface RestoreReport {
  readonly description: BackupDescription
  readonly fileCount: number
}

/** The files and folders of an instance, in the order in which they are put into place. */
const ownNames = ['encryption.key', 'log', 'events', 'state.db']

export interface RestoreOptions {
  readonly onProgress: (bytes: number, bytesInAll: number) => void
  /** Throws if the restore must stop. */
  readonly checkStop: () => void
  /** Whether to ignore the database servers in the settings, since no instance will be started on the restored folder. */
  readonly isForVerifying?: boolean
}

/**
 * @returns one line for the operator if nothing was restored; then the folder is unchanged.
 * @throws what `checkStop` throws; then the folder is unchanged, too.
 */
export async function restoreFromBackup(
  config: Config,
  file: string,
  { onProgress, checkStop, isForVerifying = false }: RestoreOptions,
): Promise<Result<RestoreReport, string>> {
  const { dataFolder } = config
  const bytesInAll = statSync(file, { throwIfNoEntry: false })?.size
  if (bytesInAll === undefined) return err(`${file} does not exist.`)
  // Check the file before the data folder is created.
  if (!(await isBackup(file))) return err(`${file} is not a backup made by \`pennon backup\`. Nothing was changed.`)
  const locked = await acquireDataLock(dataFolder, { command: 'restore', waitMsMax: 0 })
  if (!locked.ok) return locked
  // If a restore was interrupted, leave its unpacked files: they keep a start from taking the files already in place for an
  // instance.
  const taken = ownNames.filter(name => existsSync(join(dataFolder, name)))
  if (taken.length > 0) {
    locked.value.abandon()
    return err(
      `${dataFolder} already contains ${taken.join(', ')}. Set PENNON_DATA to an empty folder, or move these away.`,
    )
  }
  const unpacked = getRestoreFolder(dataFolder)
  let isRestored = false
  try {
    rmSync(unpacked, { recursive: true, force: true })
    const { bavail, bsize } = await statfs(dataFolder)
    if (bavail * bsize < bytesInAll)
      return err(`${file} needs ${bytesInAll} bytes in ${dataFolder}, but ${bavail * bsize} are free.`)
    mkdirSync(unpacked, { mode: 0o700 })
    const names = await unpackBackup(file, unpacked, bytes => {
      checkStop()
      onProgress(bytes, bytesInAll)
    })
    const description = decodeBackupDescription(readFileSync(join(unpacked, descriptionName), 'utf8'))
    if (typeof description === 'string')
      return err(`${file} cannot be restored: ${descriptionName} in it ${description}. Nothing was changed.`)
    const unfit = isForVerifying ? null : findBackupProblem(description, config)
    if (description.schema !== null) isNewestSchema(description.schema)
    if (unfit !== null) return err(unfit)
    for (const folder of listFolders(unpacked)) await syncFolder(folder)
    for (const name of ownNames)
      if (existsSync(join(unpacked, name))) {
        renameSync(join(unpacked, name), join(dataFolder, name))
        await syncFolder(dataFolder)
      }
    isRestored = true
    return ok({ description, fileCount: names.length })
  } catch (cause) {
    if (cause instanceof BackupDamagedError)
      return err(`${file} cannot be restored: ${cause.message}. Nothing was changed.`)
    if (cause instanceof UnfitSchemaError) return err(cause.message)
    if (/^E[A-Z]+$/.test((cause as { code?: string }).code ?? ''))
      return err(`${file} could not be restored: ${(cause as Error).message}.`)
    throw cause
  } finally {
    rmSync(unpacked, { recursive: true, force: true })
    if (isRestored) locked.value.release()
    else locked.value.abandon()
  }
}

/** A backup is a tar whose first file describes it. */
async function isBackup(file: string): Promise<boolean> {
  const handle = await open(file)
  try {
    const name = Buffer.from(descriptionName)
    const { buffer } = await handle.read(Buffer.alloc(name.length), 0, name.length, 0)
    return buffer.equals(name)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EISDIR') return false
    throw cause
  } finally {
    await handle.close()
  }
}

function findBackupProblem({ schema, events }: BackupDescription, config: Config): string | null {
  if (schema === null && config.databaseUrl === null)
    return 'The state of this backup is in PostgreSQL: restore the database, and set DATABASE_URL to it.'
  if (schema !== null && config.databaseUrl !== null)
    return 'This backup contains the state, but DATABASE_URL puts the state in PostgreSQL. Unset DATABASE_URL.'
  if (!events && config.clickhouseUrl === null)
    return 'The events of this backup are in an external ClickHouse: set CLICKHOUSE_URL to it.'
  if (events && config.clickhouseUrl !== null)
    return 'This backup contains the events, but CLICKHOUSE_URL puts them in an external ClickHouse. Unset CLICKHOUSE_URL.'
  return null
}

function listFolders(folder: string): string[] {
  const below = readdirSync(folder, { recursive: true, withFileTypes: true })
  return [folder, ...below.filter(entry => entry.isDirectory()).map(entry => join(entry.parentPath, entry.name))]
}
