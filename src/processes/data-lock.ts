// Allows one `pennon serve` per data folder, by locks of the operating system, which are released when their process ends,
// however it dies. An instance holds `lock.db` exclusively. Its children share `children.db`, which a start must lock
// exclusively once, so a start waits for the children of a killed instance. The text file `lock` only names processes for
// people: it cannot decide, because process ids are reused, and a zombie process has an id too.

import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { err, ok, type Result } from '#core/result.ts'

export interface DataLock {
  /** Names a child in the lock file, for messages. */
  setChild(process: string, pid: number | null): void
  /** Notes in the lock file where the instance answers, for commands on the same machine. */
  setUrl(url: string): void
  /**
   * Checks once a second that the lock file is still in place, since a start would create and lock a new file.
   * @param on.retaken gets a line for people when the file was gone and has been locked again.
   * @param on.lost gets a line, once, when another process was faster, so that this process has no right to the folder any
   * more.
   */
  watch(on: { retaken: (line: string) => void; lost: (line: string) => void }): void
  release(): void
  /**
   * Like `release`, for a command that is refused: leaves the folder as it was. Removes the locks and folders that this
   * lock created and, if the folder was empty or missing, everything of an instance that is in it now.
   */
  abandon(): void
}

/** The commands that lock the folder exclusively: an instance, or a command that needs an unchanged folder. */
export type LockCommand = 'serve' | 'backup' | 'restore'

/** The content of the lock file. Process ids are as the holder sees them, possibly those within a container. */
export interface LockHolder {
  readonly pid: number
  readonly host: string | null
  readonly command: LockCommand
  readonly children: Record<string, number>
  /** Where an instance answers; null for a command, or before the instance listens. */
  readonly url: string | null
}

/** Longer than a start takes to check the children's lock, which it holds for that time. */
const childWaitMs = 5_000
const lookMs = 1_000
/** How often to check whether a backup or restore has ended; these take minutes. */
const copyLookMs = 250

export interface AcquireOptions {
  readonly command: LockCommand
  /** How long to wait for a holder that is about to end; children of a killed holder are awaited three times as long. */
  readonly waitMsMax: number
  readonly onWaiting?: () => void
  /**
   * If given, waits for the end of a backup or a restore that holds the folder; called with a line that names the command.
   */
  readonly onCopying?: (line: string) => void
}

/**
 * Locks the folder, creating it if missing.
 * @returns a one-line message for people if the folder cannot be written or stays in use.
 */
export async function acquireDataLock(
  dataFolder: string,
  { command, waitMsMax, onWaiting, onCopying }: AcquireOptions,
): Promise<Result<DataLock, string>> {
  const found: FoundFolder = { madeFolders: [], madeLocks: [], isEmpty: false }
  try {
    makeFolder(dataFolder, found.madeFolders)
    if (!statSync(dataFolder).isDirectory())
      return err(`The data folder ${dataFolder} is a file. Set PENNON_DATA to a folder.`)
    accessSync(dataFolder, constants.W_OK)
    found.isEmpty = readdirSync(dataFolder).length === 0
  } catch (cause) {
    removeFolders(found)
    return err(
      `The data folder ${dataFolder} is not writable (${(cause as Error).message}). Make it writable or set PENNON_DATA.`,
    )
  }
  let deadline = performance.now() + waitMsMax
  let instance: Database.Database | null = null
  try {
    for (let [isWaiting, isCopying] = [false, false]; ; ) {
      for (const path of [getInstanceLockPath(dataFolder), getChildrenLockPath(dataFolder)])
        if (!existsSync(path)) found.madeLocks.push(path)
      instance ??= tryLock(getInstanceLockPath(dataFolder), exclude)
      // The holder removed the lock file with its folder after we opened the file and before we locked it.
      if (instance !== null && readInode(getInstanceLockPath(dataFolder)) === 0) {
        instance.close()
        instance = null
        continue
      }
      const children = instance && tryLock(getChildrenLockPath(dataFolder), exclude)
      if (instance !== null && children !== null) {
        children.close()
        return ok(createDataLock(dataFolder, instance, command, found))
      }
      const holder = instance === null ? readLockFile(dataFolder) : null
      if (onCopying !== undefined && holder !== null && holder.command !== 'serve') {
        if (!isCopying) onCopying(`the data folder is in use by ${describeProcess(holder)}; waiting until it ends`)
        isCopying = true
        await sleep(copyLookMs)
        deadline = performance.now() + waitMsMax
        continue
      }
      // Waits longer for a killed instance's children: the engine releases gigabytes of memory, which can take seconds.
      if (performance.now() > deadline + (instance === null ? 0 : 2 * waitMsMax)) break
      if (!isWaiting) onWaiting?.()
      isWaiting = true
      await sleep(50)
    }
  } catch (cause) {
    instance?.close()
    return err(
      `The data folder ${dataFolder} cannot be locked (${(cause as Error).message}). Make it writable or set PENNON_DATA.`,
    )
  }
  instance?.close()
  const named = readLockFile(dataFolder)
  const who = instance === null ? describeHolder(named) : describeChildren(named)
  return err(`The data folder ${dataFolder} is in use by ${who}, or set PENNON_DATA to another folder.`)
}

/**
 * For a child of `serve`: prevents the next start from taking the folder until this process has ended. Ends this process at
 * once, with exit code 0, if its parent (`PENNON_SERVE_PID`) is already gone and therefore no longer protects the folder.
 * @throws if the lock cannot be taken.
 */
export function acquireSharedDataLock(dataFolder: string): void {
  const path = getChildrenLockPath(dataFolder)
  let database = takeLock(path, share, { timeout: childWaitMs })
  let inode = readInode(path)
  // Locks the lock file again if it was removed: otherwise, the next start would run at the same time as this process.
  setInterval(() => {
    try {
      if (readInode(path) === inode) return
      const again = takeLock(path, share, { timeout: 0 })
      database.close()
      database = again
      inode = readInode(path)
    } catch {
      // A start is checking the lock, or the disk does not answer: tried again in a second.
    }
  }, lookMs).unref()
  const parent = process.env.PENNON_SERVE_PID
  if (parent !== undefined && Number(parent) !== process.ppid) process.exit(0)
}

/** The current holder of a folder; null if there is none. Changes nothing. @throws if it cannot be determined. */
export function readLockHolder(dataFolder: string): LockHolder | null {
  const path = getInstanceLockPath(dataFolder)
  if (!existsSync(path)) return null
  const free = tryLock(path, share, { readonly: true })
  free?.close()
  return free === null
    ? (readLockFile(dataFolder) ?? { pid: 0, host: null, command: 'serve', children: {}, url: null })
    : null
}

/** Locks another file, creating it if missing. @returns a function that unlocks it; null if another process has it. */
export function tryFileLock(path: string): (() => void) | null {
  const database = tryLock(path, exclude)
  return database && (() => void database.close())
}

/** Whether another process holds a lock of `tryFileLock`. Checking does not affect the holder. */
export function isFileLocked(path: string): boolean {
  if (!existsSync(path)) return false
  const free = tryLock(path, share, { readonly: true })
  free?.close()
  return free === null
}

/**
 * Locks a file like `tryFileLock`, but shares the lock with other processes. @returns a function that unlocks it. @throws
 * if the lock cannot be acquired in time.
 */
export function acquireSharedFileLock(path: string): () => void {
  const database = takeLock(path, share, { timeout: childWaitMs })
  return () => void database.close()
}

function getInstanceLockPath(dataFolder: string): string {
  return join(dataFolder, 'lock.db')
}

function getChildrenLockPath(dataFolder: string): string {
  return join(dataFolder, 'children.db')
}

/** What a lock found and created, for `abandon`. */
interface FoundFolder {
  /** Created folders, from the outermost to the data folder. */
  readonly madeFolders: string[]
  readonly madeLocks: string[]
  isEmpty: boolean
}

/** Names of the files and folders that an instance creates in its folder, except locks. */
const instanceNames = /^(state\.db(-\w+)?|log|events|encryption\.key|backups\.db|restoring)$/

/** Folder by folder: Node's recursive `mkdir` never returns on a file system that refuses to create folders. */
function makeFolder(path: string, made: string[]): void {
  if (existsSync(path)) return
  makeFolder(dirname(path), made)
  mkdirSync(path, { mode: 0o700 })
  made.push(path)
}

function createDataLock(
  dataFolder: string,
  taken: Database.Database,
  command: LockCommand,
  found: FoundFolder,
): DataLock {
  const path = join(dataFolder, 'lock')
  const lockPath = getInstanceLockPath(dataFolder)
  let database = taken
  let inode = readInode(lockPath)
  let isLost = false
  let timer: NodeJS.Timeout | undefined
  const children: Record<string, number> = {}
  let url: string | null = null
  const writeLockFile = () => {
    if (isLost) return // the file names another process
    const holder: LockHolder = { pid: process.pid, host: hostname(), command, children, url }
    try {
      writeFileSync(path, `${JSON.stringify(holder)}\n`, { mode: 0o600 })
    } catch {
      // The disk is full or read-only. The lock is in another file and still effective, but messages cannot name its
      // holder.
    }
  }
  writeLockFile()
  const release = () => {
    clearInterval(timer)
    try {
      if (!isLost) rmSync(path, { force: true })
    } catch {
      // The disk is read-only. The file still names this process, but a start checks the lock, not this file.
    }
    database.close()
  }
  return {
    setChild: (name, pid) => {
      if (pid === null) delete children[name]
      else children[name] = pid
      writeLockFile()
    },
    setUrl: listensAt => {
      url = listensAt
      writeLockFile()
    },
    watch: ({ retaken, lost }) => {
      timer = setInterval(() => {
        try {
          if (readInode(lockPath) === inode) return
          const again = tryLock(lockPath, exclude)
          if (again === null) {
            isLost = true
            clearInterval(timer)
            lost(describeLoss(dataFolder))
            return
          }
          database.close()
          database = again
          inode = readInode(lockPath)
        } catch {
          return // the folder is away, or the disk does not answer: tried again in a second
        }
        writeLockFile()
        retaken(`${lockPath} was removed or replaced while in use; locked it again`)
      }, lookMs)
      timer.unref()
    },
    release,
    abandon: () => {
      try {
        if (!isLost) removeCreatedFiles(dataFolder, found)
      } catch {
        // Another process has put a file there, or the disk is read-only. The folder then stays.
      }
      release()
      if (!isLost) removeFolders(found)
    },
  }
}

/** Removes only empty folders. */
function removeFolders({ madeFolders }: FoundFolder): void {
  try {
    for (const folder of madeFolders.toReversed()) rmdirSync(folder)
  } catch {
    // The folder stays: another process has put something there.
  }
}

function removeCreatedFiles(dataFolder: string, { isEmpty, madeLocks }: FoundFolder): void {
  if (isEmpty)
    for (const name of readdirSync(dataFolder).filter(each => instanceNames.test(each)))
      rmSync(join(dataFolder, name), { recursive: true, force: true })
  for (const path of madeLocks) for (const file of [path, `${path}-journal`]) rmSync(file, { force: true })
}

/** A lock is held by an open transaction on a database that stays empty. */
const exclude = 'PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE'
const share = 'BEGIN; SELECT count(*) FROM sqlite_master'

/** @returns null if another process has the lock. @throws if anything else prevents taking it. */
function tryLock(path: string, statement: string, options: Database.Options = {}): Database.Database | null {
  try {
    return takeLock(path, statement, { ...options, timeout: 0 })
  } catch (cause) {
    if ((cause as { code?: string }).code?.startsWith('SQLITE_BUSY')) return null
    throw cause
  }
}

/** Held until the connection is closed. */
function takeLock(path: string, statement: string, options: Database.Options): Database.Database {
  const database = new Database(path, options)
  try {
    database.exec(statement)
    return database
  } catch (cause) {
    database.close()
    throw cause
  }
}

/** @returns 0 if there is no such file. @throws if that cannot be determined. */
function readInode(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.ino ?? 0
}

function describeLoss(dataFolder: string): string {
  const holder = readLockFile(dataFolder)
  const who = holder === null || holder.pid === process.pid ? 'another process' : describeProcess(holder)
  return `${getInstanceLockPath(dataFolder)} was removed while in use, and ${who} now uses the data folder; this instance exits, since two instances on one folder lose events`
}

function readLockFile(dataFolder: string): LockHolder | null {
  try {
    const value = JSON.parse(readFileSync(join(dataFolder, 'lock'), 'utf8')) as Partial<LockHolder>
    if (typeof value.pid !== 'number') return null
    const { pid, host = null, command = 'serve', children = {}, url = null } = value
    return { pid, host, command, children, url }
  } catch {
    return null // absent, or cut short by a crash
  }
}

function describeHolder(holder: LockHolder | null): string {
  if (holder === null) return 'another instance. Stop it'
  if (holder.command !== 'serve') return `${describeProcess(holder)}. Wait until it ends, or stop it`
  return `${describeProcess(holder)}. Stop ${isVisibleProcess(holder.pid) ? 'it' : 'that'}`
}

function describeProcess({ pid, host, command }: LockHolder): string {
  if (isVisibleProcess(pid)) return `process ${pid} (pennon ${command})`
  const what = command === 'serve' ? '' : `pennon ${command}, `
  return `${what}process ${pid} of another container or host${host === null ? '' : ` (${host})`}`
}

function describeChildren(holder: LockHolder | null): string {
  const seen = Object.entries(holder?.children ?? {}).filter(([, pid]) => isVisibleProcess(pid))
  const names = seen.map(([name, pid]) => `process ${pid} (${name})`).join(' and ')
  return `child processes of a killed instance${names === '' ? '' : `: ${names}`}. End them`
}

/** For messages only: any program may have this process id by now. */
function isVisibleProcess(pid: number): boolean {
  if (pid === process.pid) return false
  try {
    return process.kill(pid, 0)
  } catch (cause) {
    return (cause as { code?: string }).code === 'EPERM'
  }
}
