// How every command about a job begins, with its folder and plan, and how it ends when it cannot continue.

import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { exitAfterOutput } from '#commands/client/exit-after-output.ts'
import { refuse } from '#commands/refuse.ts'
import { toPrintable } from '#core/printable.ts'
import { type FetchedParts, fetchLockFile, readFetchedParts } from '#importer/fetch/fetch-state.ts'
import { jobDatabaseFile } from '#importer/job/job-database.ts'
import { JobFolder } from '#importer/job/job-folder.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { checkJobState, stateFile } from '#importer/job/job-state.ts'
import { readPlan } from '#importer/job/plan.ts'
import { isSqliteDamage, isSqliteDiskFull, isSqliteNotWritable } from '#importer/job/sqlite-file.ts'
import { ImportConfigError, type ImportSource } from '#importer/records/import-source.ts'
import { findSource, sourceNames } from '#importer/sources/sources.ts'
import { isFileLocked, readLockHolder, tryFileLock } from '#processes/data-lock.ts'
import { formatNextStep, type NextStep, quotePath } from '../messages/print.ts'
import type { JobOfFolder } from '../service/target-api.ts'

const lockFile = 'lock.db'
/** Locking is retried, since `status` in another terminal holds the lock for a moment to check whether it is free. */
const lockTriesMax = 10
const lockTryEveryMs = 50

export interface Job extends JobOfFolder {
  readonly source: ImportSource
  /** The folder as the user wrote it, for messages. In commands to type, use `at`: the folder quoted for a shell. */
  readonly path: string
  readonly at: string
}

/** @param path as the user gave it, for messages. */
export function openJob(path: string): Job {
  refuseNonFolderPath(path, `pennon import plan FOLDER ${quotePath(path)}`)
  const folder = new JobFolder(resolve(path))
  const plan = refuseIfStopped(() => readPlan(folder))
  if (plan === null) refuse(describeMissingImport(path, readFetchedPartsOfJob(folder)))
  return { folder, plan, source: findSourceOrRefuse(plan.source), path, at: quotePath(path) }
}

export function createFolderOrRefuse(path: string, mode = 0o777): void {
  try {
    createFolders(path, mode)
  } catch (error) {
    refuse(toPrintable(`${path} cannot be created (${(error as Error).message}). Use a folder that you can write to`))
  }
}

/** Folder by folder: Node's recursive `mkdir` never returns on a file system that refuses to create folders. */
function createFolders(path: string, mode: number): void {
  if (existsSync(path)) return
  createFolders(dirname(path), mode)
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error // otherwise another process was faster
  }
}

/** Refuses a path at which there can be no folder. @param begin the command that begins an import, for the remedy. */
export function refuseNonFolderPath(path: string, begin: string): void {
  // The nearest existing parent of the path must be a folder too.
  for (let at = resolve(path); ; at = dirname(at)) {
    const found = statSync(at, { throwIfNoEntry: false })
    if (found?.isDirectory()) return
    if (found !== undefined)
      refuse(
        `${at === resolve(path) ? path : at} is a file, but an import needs a folder. Pass the folder of the import, or start a new one: ${begin}`,
      )
    if (at === dirname(at)) return
  }
}

/** What `pennon import fetch` put into a folder in which no import is planned yet; null if it put nothing there. */
export function readFetchWithoutPlan(path: string): FetchedParts | null {
  const folder = new JobFolder(resolve(path))
  return refuseIfStopped(() => readPlan(folder)) === null ? readFetchedPartsOfJob(folder) : null
}

/** What was fetched into an existing folder, whether or not an import is planned in it. */
export function readFetchedPartsOfJob({ path }: JobFolder): FetchedParts | null {
  return refuseIfStopped(() => readFetchedParts(path))
}

function describeMissingImport(path: string, fetched: FetchedParts | null): string {
  const at = quotePath(path)
  if (fetched === null) return `${path} contains no import. Start one: pennon import plan ${at} FILES --source NAME`
  return `${path} contains a download, but no import is planned yet. ${formatNextStep(findNextStepAfterFetch(path, fetched))}`
}

/** The next step for a folder that has fetched files and no plan. */
export function findNextStepAfterFetch(path: string, { isComplete }: Pick<FetchedParts, 'isComplete'>): NextStep {
  return isComplete
    ? { command: `pennon import plan ${quotePath(path)}`, why: 'the download is complete; plan the import' }
    : { command: `pennon import fetch ${quotePath(path)}`, why: 'download the missing parts' }
}

function refuseIfStopped<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof JobStopped) refuse(toPrintable(error.message))
    refuseUnusableFile(error)
    throw error
  }
}

export function refuseMissingRehearsal({ at }: Job): never {
  refuse(`nothing has been rehearsed yet: pennon import run ${at}`)
}

export function findSourceOrRefuse(name: string): ImportSource {
  return (
    findSource(name) ??
    refuse(`there is no source ${JSON.stringify(name)}; --source is one of ${sourceNames.join(', ')}`)
  )
}

/**
 * Locks the folder for this process. The operating system releases the lock however the process dies, so it does not matter
 * if another process gets the same process id. @returns a function that unlocks the folder.
 */
export function lockJob(folder: JobFolder): () => void {
  for (let tries = 1; ; tries++) {
    const unlock = useLock(folder, lockFile, tryFileLock)
    if (unlock !== null) return unlock
    if (tries === lockTriesMax)
      refuse(
        `another pennon import is using ${folder.path}. Wait until it ends, or stop it; to see its state: pennon import status`,
      )
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lockTryEveryMs)
  }
}

function useLock<T>(folder: JobFolder, name: string, use: (path: string) => T): T {
  try {
    return use(folder.file(name))
  } catch (error) {
    if (isSqliteDamage(error)) refuse(toPrintable(folder.damaged(name).message))
    refuseUnusableFile(error, folder, name)
    if (isSqliteNotWritable(error)) refuse(describeWriteFailure(folder, error))
    throw error
  }
}

/**
 * Refuses if a file cannot be used because it is a folder, or belongs to another user. @param names of SQLite files that
 * may have caused the error, since SQLite names no file.
 */
function refuseUnusableFile(error: unknown, folder?: JobFolder, ...names: readonly string[]): void {
  const { code = '', path } = error as NodeJS.ErrnoException
  const isOfSqlite = code.startsWith('SQLITE_')
  for (const name of isOfSqlite ? names : [])
    if (statSync(folder!.file(name), { throwIfNoEntry: false })?.isDirectory())
      refuse(toPrintable(folder!.damaged(name, 'is a folder').message))
  const denied = isOfSqlite ? names.map(name => folder!.file(name)).find(isAccessDenied) : path
  if (denied !== undefined && (isOfSqlite || code === 'EACCES' || code === 'EPERM'))
    refuse(
      toPrintable(
        `${denied} cannot be used by this user (permission denied). Run the command as the owner of the file, or change its permissions: chmod u+rw, or chown`,
      ),
    )
}

function isAccessDenied(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES'
  }
}

function describeWriteFailure({ path }: JobFolder, error: unknown): string {
  return toPrintable(`the files in ${path} cannot be written (${(error as Error).message}). Make the folder writable`)
}

export function isJobRunning(folder: JobFolder): boolean {
  return useLock(folder, lockFile, lock => existsSync(lock) && readLockHolder(folder.path) !== null)
}

export function isFetchRunning(path: string): boolean {
  return useLock(new JobFolder(resolve(path)), fetchLockFile, isFileLocked)
}

/** Runs a command. If it cannot continue, prints one line on stderr and exits with code 2, or 1 for a full disk. */
export async function runJobOrRefuse<T>(folder: JobFolder, command: () => Promise<T>): Promise<T> {
  try {
    return await command()
  } catch (error) {
    if (error instanceof ImportConfigError || error instanceof JobStopped) refuse(toPrintable(error.message))
    if (isSqliteDamage(error)) refuse(toPrintable(folder.damaged(jobDatabaseFile).message))
    refuseUnusableFile(error, folder, jobDatabaseFile, stateFile)
    if (isSqliteNotWritable(error) || (error as NodeJS.ErrnoException).code === 'EROFS')
      refuse(describeWriteFailure(folder, error))
    if (!isDiskFull(error)) throw error
    process.stderr.write(`pennon: ${toPrintable(describeFullDisk(folder))}\n`)
    process.exit(1)
  }
}

function checkState({ folder, plan }: Job): void {
  try {
    checkJobState(folder, plan.jobId)
  } catch (error) {
    // Ignore the error if another process has planned another job in this folder: the state is intact, but of that job.
    if (readPlan(folder)?.jobId === plan.jobId) throw error
  }
}

/** Runs a command that only looks at a job, and refuses like `runJobOrRefuse`. */
export async function runReadOnlyOnJob(path: string, command: (job: Job) => Promise<void> | void): Promise<void> {
  exitAfterOutput()
  const job = openJob(path)
  await runJobOrRefuse(job.folder, async () => {
    checkState(job)
    await command(job)
  })
}

/** Runs a command that changes a job. Refuses like `runJobOrRefuse`, and also while another command works on the job. */
export async function runExclusivelyOnJob<T>(path: string, command: (job: Job) => Promise<T>): Promise<T> {
  exitAfterOutput()
  process.umask(0o077)
  const job = openJob(path)
  const unlock = lockJob(job.folder)
  try {
    return await runJobOrRefuse(job.folder, () => {
      checkState(job)
      return command(job)
    })
  } finally {
    unlock()
  }
}

export function isDiskFull(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return code === 'ENOSPC' || code === 'EDQUOT' || isSqliteDiskFull(error)
}

function describeFullDisk({ path }: JobFolder): string {
  return `the disk of ${path} is full. No progress is lost: free disk space, then repeat the command`
}
