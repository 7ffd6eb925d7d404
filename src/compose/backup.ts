// A backup of an instance that may be running, as one file. What is in it is of three moments, and their order is the
// whole of its consistency: first the state, then the event store, then the log. So whatever the state's positions say was
// processed is in the event store, whatever the event store has is in the log or behind those positions, and whatever was
// answered before the beginning is in the log. A restored instance processes again from the positions on, where each row
// replaces itself. Source: ours, docs/decisions/0033-a-backup-is-state-events-log.md.

import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { copyDatabase, type HeldDatabase, holdDatabase } from '#adapters/backup-file/copy-database.ts'
import { type BackupWriter, createBackup } from '#adapters/backup-file/write-backup.ts'
import { type EventFiles, freezeEventFiles, stoppedEventFiles } from '#adapters/clickhouse-embedded/event-files.ts'
import { findSqliteDamage, findSqlitePositions, findSqliteSchema } from '#adapters/sqlite/find-schema.ts'
import { stateFileOf } from '#adapters/sqlite/open-sqlite.ts'
import { listSegments, type SegmentName, syncFolder } from '#adapters/sqlite-log/segment-file.ts'
import { logLanes } from '#core/events/captured-event.ts'
import { err, ok, type Result } from '#core/result.ts'
import { PortError } from '#ports/port-error.ts'
import type { Config } from '../config.ts'
import { acquireDataLock, type DataLock } from '../processes/data-lock.ts'
import { version } from '../version.ts'
import { logFolder } from './stores.ts'

/** What `backup.json` says, the first file of each backup. */
export interface BackupDescription {
  readonly format: 1
  readonly pennon: string
  readonly createdAt: string
  /** Migrations that the state has had; null: the state is in PostgreSQL, and not in here. */
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
  const drafts = takeDraftFolder(file)
  undo.push(() => rmSync(drafts, { recursive: true, force: true }))
  const lock = await acquireDataLock(dataFolder, { waitMsMax: 0 })
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
    await writer.addText('backup.json', `${JSON.stringify(description, null, 2)}\n`)
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

/** What is not finished lies beside the file, on the same disk. One that a killed backup left is removed. */
function takeDraftFolder(file: string): string {
  const folder = `${file}.partial`
  const pidFile = join(folder, 'pid')
  if (existsSync(pidFile) && isAlive(Number(readFileSync(pidFile, 'utf8'))))
    throw new BackupRefused(`Another backup to ${file} is under way.`)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { mode: 0o700 })
  writeFileSync(pidFile, String(process.pid))
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
  if (lock.ok) return stoppedEventFiles(dataFolder)
  for (let attempt = 1; ; attempt++) {
    try {
      return await freezeEventFiles(dataFolder)
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

interface HeldSegment {
  readonly segment: SegmentName
  /** Null: damaged, and copied as it is. */
  readonly database: HeldDatabase | null
}

/**
 * Segments of the log, open from before the state is copied: what retention deletes or packs meanwhile is still there.
 */
class HeldSegments {
  readonly warnings: string[] = []
  readonly #folder: string
  readonly #held = new Map<string, HeldSegment[]>()

  constructor(folder: string) {
    this.#folder = folder
    this.holdNewer()
  }

  holdNewer(): void {
    for (const lane of logLanes) {
      const known = this.#held.get(lane) ?? []
      const newest = known.at(-1)?.segment.firstOffset ?? -1
      const added = listSegments(join(this.#folder, lane)).filter(({ firstOffset }) => firstOffset > newest)
      this.#held.set(lane, [...known, ...added.map(segment => this.#hold(segment))])
    }
  }

  /** Keeps the segment that a position is in, and what comes after it. */
  forgetBehind(positions: ReadonlyMap<string, number>): void {
    for (const [lane, held] of this.#held) {
      const position = positions.get(lane) ?? 0
      const first = Math.max(
        held.findLastIndex(({ segment }) => segment.firstOffset <= position),
        0,
      )
      for (const { database } of held.splice(0, first)) database?.close()
    }
  }

  get bytes(): number {
    return this.#sizes().reduce((sum, size) => sum + size, 0)
  }

  get largestBytes(): number {
    return Math.max(0, ...this.#sizes())
  }

  /** What tells of the segments before they themselves: it may know of less than they hold, never of more. */
  async addTo(writer: BackupWriter, draft: string): Promise<void> {
    for (const place of ['', ...logLanes])
      for (const name of filesIn(join(this.#folder, place)).filter(isBesideSegments))
        await writer.addFile(join('log', place, name), join(this.#folder, place, name))
    for (const [lane, held] of this.#held)
      for (const { segment, database } of held) {
        const name = join('log', lane, basename(segment.path))
        if (database === null) {
          // With its side file, which may hold what it lacks.
          for (const suffix of ['', '-wal'])
            if (existsSync(segment.path + suffix)) await writer.addFile(name + suffix, segment.path + suffix)
          continue
        }
        await copyDatabase(database, draft)
        await writer.addFile(name, draft)
        rmSync(draft)
      }
  }

  close(): void {
    for (const held of this.#held.values()) for (const { database } of held) database?.close()
  }

  #hold(segment: SegmentName): HeldSegment {
    let why = 'it was set aside'
    try {
      if (segment.form !== 'damaged') return { segment, database: holdDatabase(segment.path) }
    } catch (cause) {
      if (!String((cause as { code?: string }).code).startsWith('SQLITE_')) throw cause
      why = (cause as Error).message
    }
    this.warnings.push(`${segment.path} is damaged (${why}) and was copied as it is.`)
    return { segment, database: null }
  }

  #sizes(): number[] {
    return [...this.#held.values()].flat().map(({ segment, database }) => {
      if (database === null) return statSync(segment.path, { throwIfNoEntry: false })?.size ?? 0
      return (
        Number(database.pragma('page_count', { simple: true })) * Number(database.pragma('page_size', { simple: true }))
      )
    })
  }
}

function filesIn(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => entry.name)
}

function isBesideSegments(name: string): boolean {
  return !/\.db(-wal|-shm|-journal)?$|\.draft/.test(name)
}

function isAlive(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0)
  } catch (cause) {
    return (cause as { code?: string }).code === 'EPERM'
  }
}
