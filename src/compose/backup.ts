// A backup of an instance that may be running, as one file. What is in it is of three moments, and their order is the
// whole of its consistency: first the state, then the event store, then the log. So whatever the state's positions say was
// processed is in the event store, whatever the event store has is in the log or behind those positions, and whatever was
// answered before the beginning is in the log. A restored instance processes again from the positions on, where each row
// replaces itself. Source: ours, docs/decisions/0033-a-backup-is-state-events-log.md.

import { existsSync, linkSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { copyDatabase, holdDatabase } from '#adapters/backup-file/copy-database.ts'
import { createBackup } from '#adapters/backup-file/write-backup.ts'
import { type EventFiles, stoppedEventFiles } from '#adapters/clickhouse-embedded/event-files.ts'
import { findSqliteDamage, findSqlitePositions, findSqliteSchema } from '#adapters/sqlite/find-schema.ts'
import { stateFileOf } from '#adapters/sqlite/open-sqlite.ts'
import { syncFolder } from '#adapters/sqlite-log/segment-file.ts'
import { err, ok, type Result } from '#core/result.ts'
import { PortError } from '#ports/port-error.ts'
import type { Config } from '../config.ts'
import { acquireDataLock, type DataLock, readLockHolder, tryFileLock } from '../processes/data-lock.ts'
import { version } from '../version.ts'
import { holdFreeze, removeAbandonedFreezes } from './held-freezes.ts'
import { HeldSegments } from './held-segments.ts'
import { logFolder } from './stores.ts'

/** What `backup.json` says, the first file of each backup. */
export interface BackupDescription {
  readonly format: 1
  readonly pennon: string
  readonly createdAt: string
  /** Migrations that the state has had; null when the state is in PostgreSQL, and so not in the backup. */
  readonly schema: number | null
  /** Where the worker stands in the state, by lane. */
  readonly positions: Readonly<Record<string, number>>
  /** False: events are in a ClickHouse of their own, and not in here. */
  readonly events: boolean
}

export interface BackupReport {
  readonly bytes: number
  readonly isRunning: boolean
  readonly description: BackupDescription
  readonly hasEncryptionKey: boolean
  /** Lines for people on what could not be copied as it should have been. */
  readonly warnings: readonly string[]
}

export interface BackupOptions {
  readonly nowMs: () => number
  /** Throws when the work is to be given up. */
  readonly checkStop: () => void
  readonly onProgress: (bytes: number, bytesInAll: number) => void
}

/** An engine that was started again a moment ago is back within seconds. */
const engineWait = { tries: 8, eachMs: 2_000 }
const keyFileName = 'encryption.key'
/** A lock in the folder of drafts says that its backup still runs: process ids are reused, in containers nearly always. */
const lockName = 'lock.db'

/** With a line for people: nothing was written. */
class BackupRefused extends Error {}

/**
 * @param file is not there yet.
 * @returns one line for a person when there is no backup.
 * @throws what is no failure of files, stores or room.
 */
export async function backUp(
  config: Config,
  file: string,
  options: BackupOptions,
): Promise<Result<BackupReport, string>> {
  const undo: (() => void)[] = []
  try {
    return ok(await backUpOrThrow(config, file, options, undo))
  } catch (cause) {
    if (cause instanceof BackupRefused) return err(cause.message)
    if (cause instanceof PortError) return err(`There is no backup: ${cause.message}.`)
    const { code = '' } = cause as { code?: string }
    if (code === 'ENOSPC') return err(`There is no backup: the disk of ${file} is full.`)
    if (/^E[A-Z]+$/.test(code) || code.startsWith('SQLITE_'))
      return err(`There is no backup: ${(cause as Error).message}.`)
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
  if (existsSync(file)) throw new BackupRefused(`${file} is there already. Give the backup a name of its own.`)
  if (config.databaseUrl === null && !existsSync(stateFileOf(dataFolder)))
    throw new BackupRefused(`There is no state in ${dataFolder}. Set PENNON_DATA as the instance has it.`)
  const drafts = takeDraftFolder(file, undo)
  const lock = await acquireDataLock(dataFolder, { command: 'backup', waitMsMax: 0 })
  if (lock.ok) undo.push(lock.value.release)

  const segments = new HeldSegments(logFolder(config))
  undo.push(() => segments.close())
  const state = config.databaseUrl === null ? await copyState(dataFolder, drafts) : null
  const events = config.clickhouseUrl === null ? await findEvents(dataFolder, lock) : null
  if (events !== null) undo.push(events.release)
  segments.holdNewer()
  if (state !== null) segments.forgetBehind(state.positions)

  const description: BackupDescription = {
    format: 1,
    pennon: version,
    createdAt: new Date(options.nowMs()).toISOString(),
    schema: state?.schema ?? null,
    positions: Object.fromEntries(state?.positions ?? []),
    events: events !== null,
  }
  const eventBytes = (events?.files ?? []).reduce((sum, { bytes }) => sum + bytes, 0)
  const bytesInAll = eventBytes + segments.bytes + (state === null ? 0 : statSync(state.path).size)
  await requireRoom(config, file, { bytesInAll, draftBytes: segments.largestBytes })

  const tar = join(drafts, 'backup.tar')
  const writer = await createBackup(tar, options)
  const progress = setInterval(() => options.onProgress(writer.bytes, bytesInAll), 500)
  const hasEncryptionKey = existsSync(join(dataFolder, keyFileName))
  try {
    await writer.addContent('backup.json', `${JSON.stringify(description, null, 2)}\n`)
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
  syncFolder(dirname(file))
  return { bytes: writer.bytes, isRunning: !lock.ok, description, hasEncryptionKey, warnings: segments.warnings }
}

/** What is not finished lies beside the file, on the same disk. What a killed backup left is removed. */
function takeDraftFolder(file: string, undo: (() => void)[]): string {
  if (!existsSync(dirname(file))) throw new BackupRefused(`The folder ${dirname(file)} does not exist.`)
  const folder = `${file}.partial`
  if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 })
  const release = tryFileLock(join(folder, lockName))
  if (release === null) throw new BackupRefused(`Another backup to ${file} is under way.`)
  undo.push(() => {
    rmSync(folder, { recursive: true, force: true })
    release()
  })
  for (const name of readdirSync(folder))
    if (name !== lockName) rmSync(join(folder, name), { recursive: true, force: true })
  return folder
}

async function copyState(dataFolder: string, drafts: string) {
  const path = stateFileOf(drafts)
  const database = holdDatabase(stateFileOf(dataFolder))
  try {
    await copyDatabase(database, path)
  } finally {
    database.close()
  }
  const damage = findSqliteDamage(drafts)
  if (damage !== null)
    throw new BackupRefused(
      `${stateFileOf(dataFolder)} is damaged, and so would be its backup: ${damage}. Keep your older backups.`,
    )
  return { path, schema: findSqliteSchema(drafts), positions: findSqlitePositions(drafts) }
}

async function findEvents(dataFolder: string, lock: Result<DataLock, string>): Promise<EventFiles> {
  if (lock.ok) {
    removeAbandonedFreezes(dataFolder)
    return stoppedEventFiles(dataFolder)
  }
  // No engine answers beside another backup or a restore of a stopped instance.
  if ((readLockHolder(dataFolder)?.command ?? 'serve') !== 'serve')
    throw new BackupRefused(`There is no backup: ${lock.error}`)
  for (let attempt = 1; ; attempt++) {
    try {
      return await holdFreeze(dataFolder)
    } catch (cause) {
      if (!(cause instanceof PortError) || !cause.retryable) throw cause
      if (attempt === engineWait.tries)
        throw new BackupRefused(
          `There is no backup: ${lock.error.split('.')[0]}, and its event store does not answer (${cause.message}). Try again when /_readiness says that processing is ok.`,
        )
      await sleep(engineWait.eachMs)
    }
  }
}

/** On the disk of the data folder the instance has to keep what it needs to go on. */
async function requireRoom(
  config: Config,
  file: string,
  needed: { bytesInAll: number; draftBytes: number },
): Promise<void> {
  const folder = dirname(file)
  const { bavail, bsize } = await statfs(folder)
  const kept = statSync(folder).dev === statSync(config.dataFolder).dev ? config.freeBytesMin : 0
  // Headers and padding of small files, generously.
  const bytes = Math.ceil(needed.bytesInAll * 1.02) + needed.draftBytes + 1024 * 1024
  if (bavail * bsize - kept >= bytes) return
  const beside = kept === 0 ? '' : `, beside the ${kept} bytes of PENNON_MIN_FREE_BYTES,`
  throw new BackupRefused(
    `There is no backup: it needs ${bytes} bytes in ${folder}${beside} and ${bavail * bsize} are free. Choose another disk.`,
  )
}
