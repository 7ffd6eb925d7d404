// Finds the files of an import on this machine: named files, and all files in named folders.

import type { Stats } from 'node:fs'
import { lstat, readdir, realpath, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { RawFile } from './read-record.ts'
import { isHiddenFile } from './unpacked-files.ts'

/** Decides which folders are not read, and receives the paths that are skipped. */
export interface FolderRules {
  /** Whether to skip a folder within the named folders. */
  readonly isLeftOut?: (folder: string) => boolean
  /** Called for a broken or circular link in a folder. */
  readonly onDeadLink?: (link: string) => void
  /** Called when a link gives another name to a file that is read as `first`. */
  readonly onOtherName?: (path: string, first: string) => void
}

/**
 * @param paths files and folders. A hidden file is read if `paths` names it, but skipped within a folder.
 * @returns the files of each path, sorted by name; each file once, however many names it has.
 * @throws Node's error for a path that cannot be read.
 */
export async function findRawFiles(paths: readonly string[], rules: FolderRules = {}): Promise<RawFile[]> {
  const found = new Map<string, RawFile>()
  for (const path of paths)
    for (const file of (await isFolder(path)) ? await listFiles(path, rules, new Set()) : [path]) {
      const identity = await findFileIdentity(file)
      const first = found.get(identity)?.path
      if (first === undefined) found.set(identity, { path: file, object: file })
      else if (resolve(first) !== resolve(file)) rules.onOtherName?.(file, first)
    }
  return [...found.values()]
}

/** @throws Error for a pipe or device, which may be readable only once, whereas every stage reads the file again. */
async function isFolder(path: string): Promise<boolean> {
  const kind = await stat(path)
  if (!kind.isDirectory() && !kind.isFile())
    throw new Error(`${path} is neither a file nor a folder: put what comes out of it into a file, and name that`)
  return kind.isDirectory()
}

/** Returns a text that is equal for all names of a file, whether symbolic or hard links. */
async function findFileIdentity(path: string): Promise<string> {
  const { dev, ino } = await stat(path, { bigint: true })
  // Some network file systems have no inode numbers.
  return ino === 0n ? await realpath(path) : `${dev}:${ino}`
}

/** @param visited real paths, since circular links would yield the same files again under ever longer names. */
async function listFiles(folder: string, rules: FolderRules, visited: Set<string>): Promise<string[]> {
  const real = await realpath(folder)
  if (visited.has(real)) return []
  visited.add(real)
  const files: string[] = []
  for (const name of (await readdir(folder)).toSorted()) {
    if (isHiddenFile(name)) continue
    const path = join(folder, name)
    const kind = await statUnlessBroken(path)
    if (kind === null) rules.onDeadLink?.(path)
    else if (kind.isDirectory()) {
      if (rules.isLeftOut?.(path) !== true) for (const file of await listFiles(path, rules, visited)) files.push(file)
    } else if (kind.isFile()) files.push(path)
  }
  return files
}

/** @returns null for a broken or circular link. */
async function statUnlessBroken(path: string): Promise<Stats | null> {
  try {
    return await stat(path)
  } catch (error) {
    if (!(await lstat(path)).isSymbolicLink()) throw error
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ELOOP') return null
    throw error
  }
}
