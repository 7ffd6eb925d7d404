// One `pennon serve` per data folder. The promise is an operating-system lock on `lock.db`, which ends with its process
// however that dies; the text file `lock` beside it names the process ids for people and for the next start, which waits
// until the children of a killed predecessor are gone too.

import { execFileSync } from 'node:child_process'
import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { err, ok, type Result } from '#core/result.ts'

export interface DataLock {
  /** Names a child in the lock file, so that the next start can wait for it. */
  setChild(process: string, pid: number | null): void
  release(): void
}

interface LockText {
  readonly pid: number
  readonly children: Record<string, number>
}

/**
 * Takes the folder, creating it when missing. Waits up to `waitMsMax` for a holder that is going away.
 * @returns one line for a person when the folder cannot be written or stays in use.
 */
export async function acquireDataLock(
  dataFolder: string,
  options: { waitMsMax: number; onWaiting?: () => void },
): Promise<Result<DataLock, string>> {
  try {
    makeFolder(dataFolder)
    accessSync(dataFolder, constants.W_OK)
  } catch (cause) {
    return err(
      `The data folder ${dataFolder} cannot be written (${(cause as Error).message}). Make it writable or set PENNON_DATA.`,
    )
  }
  const textPath = join(dataFolder, 'lock')
  const deadline = Date.now() + options.waitMsMax
  let database: Database.Database | undefined
  for (let isWaiting = false; ; isWaiting = true) {
    try {
      database ??= takeSystemLock(join(dataFolder, 'lock.db'))
    } catch (cause) {
      const code = (cause as { code?: string }).code ?? ''
      if (!code.startsWith('SQLITE_BUSY')) {
        return err(
          `The data folder ${dataFolder} cannot be locked (${(cause as Error).message}). Make it writable or set PENNON_DATA.`,
        )
      }
    }
    const left = database === undefined ? null : livingChildren(textPath)
    if (database !== undefined && left!.length === 0) break
    if (Date.now() > deadline) {
      database?.close()
      const holders = left ?? [readLockText(textPath)?.pid ?? 'unknown']
      return err(
        `The data folder ${dataFolder} is in use by process ${holders.join(', ')}. Stop it, or set PENNON_DATA to another folder.`,
      )
    }
    if (!isWaiting) options.onWaiting?.()
    await sleep(50)
  }
  return ok(heldLock(textPath, database))
}

/** Folder by folder: Node's own recursive way never comes back from a file system that makes no folders. */
function makeFolder(path: string): void {
  if (existsSync(path)) return
  makeFolder(dirname(path))
  mkdirSync(path, { mode: 0o700 })
}

/** Who holds a folder right now, by its lock file; null when nobody living does. */
export function readLockHolder(dataFolder: string): { pid: number; children: Record<string, number> } | null {
  const text = readLockText(join(dataFolder, 'lock'))
  return text !== null && isPennon(text.pid) ? text : null
}

function heldLock(textPath: string, database: Database.Database): DataLock {
  const children: Record<string, number> = {}
  const write = () => writeFileSync(textPath, `${JSON.stringify({ pid: process.pid, children })}\n`, { mode: 0o600 })
  write()
  return {
    setChild: (name, pid) => {
      if (pid === null) delete children[name]
      else children[name] = pid
      write()
    },
    release: () => {
      rmSync(textPath, { force: true })
      database.close()
    },
  }
}

function takeSystemLock(path: string): Database.Database {
  const database = new Database(path, { timeout: 0 })
  try {
    database.pragma('journal_mode = DELETE')
    database.pragma('locking_mode = EXCLUSIVE')
    database.exec('BEGIN EXCLUSIVE')
    return database
  } catch (cause) {
    database.close()
    throw cause
  }
}

function livingChildren(textPath: string): number[] {
  return Object.values(readLockText(textPath)?.children ?? {}).filter(isPennon)
}

function readLockText(path: string): LockText | null {
  try {
    const value = JSON.parse(readFileSync(path, 'utf8')) as Partial<LockText>
    return typeof value.pid === 'number' ? { pid: value.pid, children: value.children ?? {} } : null
  } catch {
    return null // absent, or cut short by the crash that the system lock survives
  }
}

/** A process of ours, by the title that each sets: process ids are reused. */
function isPennon(pid: number): boolean {
  try {
    process.kill(pid, 0)
    const command = execFileSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' })
    return /pennon|main\.ts/.test(command)
  } catch {
    return false // no such process
  }
}
