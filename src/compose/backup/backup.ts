// Backs up an instance that may be running, into one file. The parts are copied at three moments, and only their order
// makes them consistent: first the state, then the event store, then the log. So everything before the state's positions is
// in the event store, everything in the event store is in the log or before those positions, and everything that was
// answered before the backup began is in the log or before those positions. A restored instance processes again from these
// positions, where each row replaces itself. Source: ours, docs/decisions/0033-a-backup-is-state-events-log.md.

import { existsSync, linkSync, rmSync, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { copyDatabase, openDatabaseForCopying } from '#adapters/backup-file/copy-database.ts'
import { syncFolder } from '#adapters/backup-file/sync-folder.ts'
import { UnfitNameError } from '#adapters/backup-file/tar-header.ts'
import { createBackupWriter } from '#adapters/backup-file/write-backup.ts'
import { type EventFiles, listFilesOfStoppedEngine } from '#adapters/clickhouse-embedded/event-files.ts'
import {
  countSqliteRows,
  findSqliteDamage,
  findSqliteLogPositions,
  findSqliteSchemaVersion,
} from '#adapters/sqlite/inspect-state-file.ts'
import { stateFilePath } from '#adapters/sqlite/open-sqlite.ts'
import type { Config } from '#config.ts'
import { err, ok, type Result } from '#core/result.ts'
import { PortError } from '#ports/port-error.ts'
import { acquireDataLock, type DataLock, readLockHolder } from '#processes/data-lock.ts'
import { version } from '#version.ts'
import { holdLogSegments } from '../log/held-segments.ts'
import { findAccessProblem } from '../stores/existing-state.ts'
import { findStateProblem } from '../stores/store-faults.ts'
import { type BackupDescription, backupFormat, descriptionName, encodeBackupDescription } from './backup-description.ts'
import { createDraftFolder } from './draft-folder.ts'
import { freezeEventStore, removeAbandonedFrozenFiles } from './freeze-event-store.ts'

export interface BackupReport {
  readonly bytes: number
  readonly isRunning: boolean
  readonly description: BackupDescription
  readonly hasEncryptionKey: boolean
  /** Lines for the operator about files that could not be copied properly. */
  readonly warnings: readonly string[]
}

export interface BackupOptions {
  readonly nowMs: () => number
  /** Throws if the backup must stop. */
  readonly checkStop: () => void
  readonly onProgress: (bytes: number, bytesInAll: number) => void
}

/** How long to wait for the engine: if it was restarted, it is back within seconds. */
const engineWait = { tries: 8, eachMs: 2_000 }
const keyFileName = 'encryption.key'

/** Nothing was written; the message is a line for the operator. */
class BackupRefused extends Error {}

/**
 * @param file must not exist yet.
 * @returns one line for the operator when no backup was made.
 * @throws errors other than those of files, stores or space.
 */
export async function backUpInstance(
  config: Config,
  file: string,
  options: BackupOptions,
): Promise<Result<BackupReport, string>> {
  const undo: (() => void)[] = []
  try {
    return ok(await backUpOrThrow(config, file, options, undo))
  } catch (cause) {
    if (cause instanceof BackupRefused) return err(cause.message)
    if (cause instanceof PortError) return err(`No backup was made: ${cause.message}.`)
    if (cause instanceof UnfitNameError)
      return err(`No backup was made: it ${cause.message}. Please report this with the version of Pennon.`)
    const { code = '' } = cause as { code?: string }
    if (code === 'ENOSPC') return err(`No backup was made: the disk of ${file} is full.`)
    if (/^E[A-Z]+$/.test(code) || code.startsWith('SQLITE_'))
      return err(`No backup was made: ${(cause as Error).message}.`)
    throw cause
  } finally {
    for (const step of undo.reverse()) step()
  }
}

async function backUpOrThrow(
  config: Config,
  file: string,
  options: BackupOptions,
  undo: (() => void)[],
): Promise<BackupReport> {
  const { dataFolder } = config
  if (existsSync(file)) throw new BackupRefused(`${file} already exists. Choose another file name.`)
  const unreadable = findAccessProblem(dataFolder)
  if (unreadable !== null) throw new BackupRefused(unreadable)
  if (config.databaseUrl === null && !existsSync(stateFilePath(dataFolder)))
    throw new BackupRefused(`There is no state in ${dataFolder}. Set PENNON_DATA to the data folder of the instance.`)
  const unfit = findStateProblem(config)
  if (unfit !== null) throw new BackupRefused(unfit)
  if (!existsSync(dirname(file))) throw new BackupRefused(`The folder ${dirname(file)} does not exist.`)
  const drafts = `${file}.partial`
  const removeDrafts = createDraftFolder(drafts)
  if (removeDrafts === null) throw new BackupRefused(`Another backup to ${file} is running.`)
  undo.push(removeDrafts)
  const lock = await acquireDataLock(dataFolder, { command: 'backup', waitMsMax: 0 })
  if (lock.ok) undo.push(lock.value.release)

  const segments = holdLogSegments(config)
  undo.push(() => segments.close())
  const state = config.databaseUrl === null ? await copyState(dataFolder, drafts) : null
  const events = config.clickhouseUrl === null ? await acquireEventFiles(dataFolder, lock) : null
  if (events !== null) undo.push(events.release)
  segments.holdNewer()
  if (state !== null) segments.releaseBefore(state.positions)

  const description: BackupDescription = {
    format: backupFormat,
    pennon: version,
    createdAt: new Date(options.nowMs()).toISOString(),
    schema: state?.schema ?? null,
    positions: Object.fromEntries(state?.positions ?? []),
    events: events !== null,
    rows: { state: state?.rows ?? {}, events: events?.rows ?? {} },
  }
  const eventBytes = (events?.files ?? []).reduce((sum, { bytes }) => sum + bytes, 0)
  const bytesInAll = eventBytes + segments.bytes + (state === null ? 0 : statSync(state.path).size)
  await requireSpace(config, file, { bytesInAll, draftBytes: segments.largestBytes })

  const tar = join(drafts, 'backup.tar')
  const writer = await createBackupWriter(tar, options)
  const progress = setInterval(() => options.onProgress(writer.bytes, bytesInAll), 500)
  const hasEncryptionKey = existsSync(join(dataFolder, keyFileName))
  try {
    await writer.addContent(descriptionName, encodeBackupDescription(description))
    if (hasEncryptionKey) await writer.addFile(keyFileName, join(dataFolder, keyFileName))
    if (state !== null) {
      await writer.addFile('state.db', state.path)
      rmSync(state.path)
    }
    await segments.addTo(writer, join(drafts, 'segment.db'))
    for (const { name, path } of events?.files ?? []) await writer.addFile(name, path)
    await writer.finish()
  } finally {
    clearInterval(progress)
    await writer.close()
  }
  linkSync(tar, file)
  await syncFolder(dirname(file))
  return { bytes: writer.bytes, isRunning: !lock.ok, description, hasEncryptionKey, warnings: segments.warnings }
}

async function copyState(dataFolder: string, drafts: string) {
  const path = stateFilePath(drafts)
  const database = openDatabaseForCopying(stateFilePath(dataFolder))
  try {
    await copyDatabase(database, path)
  } finally {
    database.close()
  }
  const damage = findSqliteDamage(drafts)
  if (damage !== null)
    throw new BackupRefused(
      `${stateFilePath(dataFolder)} is damaged, so its backup would be, too: ${damage}. Keep your older backups.`,
    )
  const rows = countSqliteRows(drafts)
  return { path, schema: findSqliteSchemaVersion(drafts), positions: findSqliteLogPositions(drafts), rows }
}

async function acquireEventFiles(dataFolder: string, lock: Result<DataLock, string>): Promise<EventFiles> {
  if (lock.ok) {
    removeAbandonedFrozenFiles(dataFolder)
    return listFilesOfStoppedEngine(dataFolder)
  }
  // Refuse if a backup or a restore holds the folder: the instance is stopped, so no engine answers.
  if ((readLockHolder(dataFolder)?.command ?? 'serve') !== 'serve')
    throw new BackupRefused(`No backup was made: ${lock.error}`)
  for (let attempt = 1; ; attempt++) {
    try {
      return await freezeEventStore(dataFolder)
    } catch (cause) {
      if (!(cause instanceof PortError) || !cause.retryable) throw cause
      if (attempt === engineWait.tries)
        throw new BackupRefused(
          `No backup was made: ${lock.error.split('.')[0]}, and its event store does not respond (${cause.message}). Try again when /_readiness reports processing as ok.`,
        )
      await sleep(engineWait.eachMs)
    }
  }
}

/** A backup on the disk of the data folder must leave the space that the instance needs. */
async function requireSpace(
  config: Config,
  file: string,
  needed: { bytesInAll: number; draftBytes: number },
): Promise<void> {
  const folder = dirname(file)
  const { bavail, bsize } = await statfs(folder)
  const kept = statSync(folder).dev === statSync(config.dataFolder).dev ? config.freeBytesMin : 0
  // The factor leaves ample space for headers and for the padding of small files.
  const bytes = Math.ceil(needed.bytesInAll * 1.02) + needed.draftBytes + 1024 * 1024
  if (bavail * bsize - kept >= bytes) return
  const beside = kept === 0 ? '' : `, in addition to the ${kept} bytes of PENNON_MIN_FREE_BYTES,`
  throw new BackupRefused(
    `No backup was made: it needs ${bytes} bytes in ${folder}${beside} and ${bavail * bsize} are free. Choose another disk.`,
  )
}
