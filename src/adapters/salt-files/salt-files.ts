// The salts of an instance with its state in the data folder: one file per day in a separate folder. In the state file, the
// salts would get into backups, into copies of the state and into its write-ahead log, and stay there.

import { randomBytes } from 'node:crypto'
import { link, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type DayRange, isDayInRange } from '#core/cookieless/visitor-day.ts'
import { PortError } from '#ports/port-error.ts'
import type { CookielessSalts } from '#ports/state/cookieless-visitors.ts'

const saltBytes = 16
/** The file name of a salt, or of a draft of a salt. */
const saltName = /^\.?(\d{4}-\d\d-\d\d)/

/** Opens the store of salts, which touches no file before the first call. */
export function openSaltFiles(dataFolder: string): CookielessSalts {
  const folder = join(dataFolder, 'salts')
  return {
    findOrCreateSalt: (day, fresh) => rethrowAsPortErrors(() => readOrCreateSalt(folder, day, fresh)),
    deleteSaltsExcept: kept => rethrowAsPortErrors(() => deleteSaltsExcept(folder, kept)),
    close: async () => undefined,
  }
}

async function readOrCreateSalt(folder: string, day: string, fresh: Uint8Array): Promise<Uint8Array> {
  const file = join(folder, day)
  const known = await readSalt(file)
  if (known !== null && known.length === saltBytes) return known
  // Replaces a damaged file: without a salt, the day's visitors would be refused; with a new salt, they are only counted
  // twice.
  if (known !== null) await overwriteAndRemove(folder, day, day)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await makeFile(draftPath(folder, day), file, fresh)
  const kept = await readSalt(file)
  if (kept?.length !== saltBytes) throw new Error(`${file} has been deleted: the clock of a worker is ahead`)
  return kept
}

/** @returns the bytes of the file, which may be any number in a damaged file; null when there is no file. */
async function readSalt(file: string): Promise<Uint8Array | null> {
  try {
    return new Uint8Array(await readFile(file))
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw cause
  }
}

/** The file is complete and synced before it gets its name, which only the first of several processes can give it. */
async function makeFile(draft: string, path: string, content: Uint8Array): Promise<void> {
  const file = await open(draft, 'wx', 0o600)
  try {
    await file.writeFile(content)
    await file.sync()
    await link(draft, path)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
  } finally {
    await file.close()
    await rm(draft, { force: true })
  }
}

/**
 * Removes the salts of other days, and drafts that killed processes left for those days. A draft for a kept day may be
 * about to be renamed, so it stays.
 */
async function deleteSaltsExcept(folder: string, kept: DayRange): Promise<string[]> {
  const deleted: string[] = []
  const failures: unknown[] = []
  for (const name of await listNames(folder)) {
    const day = saltName.exec(name)?.[1]
    if (day === undefined || isDayInRange(kept, day)) continue
    await overwriteAndRemove(folder, name, day).catch(cause => failures.push(cause))
    if (name === day) deleted.push(day)
  }
  if (failures.length > 0) throw failures[0]
  return deleted
}

/** Renames the file before it is overwritten: another process must never read a salt that is half overwritten. */
async function overwriteAndRemove(folder: string, name: string, day: string): Promise<void> {
  const draft = draftPath(folder, day)
  await rename(join(folder, name), draft)
  await overwriteWithZeros(draft)
  await rm(draft, { force: true })
}

function draftPath(folder: string, day: string): string {
  return join(folder, `.${day}-${randomBytes(8).toString('hex')}`)
}

async function listNames(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw cause
  }
}

/** Overwrites a file before its removal, so that what the disk keeps of the file is not a salt. */
async function overwriteWithZeros(path: string): Promise<void> {
  const file = await open(path, 'r+')
  try {
    await file.write(Buffer.alloc(saltBytes), 0, saltBytes, 0)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function rethrowAsPortErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new PortError('state', code === 'ENOSPC' ? 'full' : 'unavailable', cause)
  }
}
