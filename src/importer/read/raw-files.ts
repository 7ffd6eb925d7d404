// Finds the files of an import on this machine: those that are named, and all that folders hold.

import type { Stats } from 'node:fs'
import { lstat, readdir, realpath, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { RawFile } from './read-record.ts'
import { isHidden } from './unpacked-files.ts'

/** What folders hold that is not read, each asked of or told of with its path. */
export interface FolderRules {
  /** Asked of each folder inside of those that are named. */
  readonly isLeftOut?: (folder: string) => boolean
  /** A link in a folder that leads nowhere or in a circle, and so holds no records. */
  readonly onDeadLink?: (link: string) => void
  /** Another name, by a link, of a file that is read under the first one. */
  readonly onOtherName?: (path: string, first: string) => void
}

/**
 * @param paths files and folders. A hidden file that is named is read; those in folders are left out.
 * @returns the files of each path in the order of their names, whatever order the disk has, and each file once, however
 *   many names it has.
 * @throws the error of Node for a path that cannot be read.
 */
export async function findRawFiles(paths: readonly string[], rules: FolderRules = {}): Promise<RawFile[]> {
  const found = new Map<string, RawFile>()
  for (const path of paths)
    for (const file of (await isFolder(path)) ? await filesIn(path, rules, new Set()) : [path]) {
      const identity = await identityOf(file)
      const first = found.get(identity)?.path
      if (first === undefined) found.set(identity, { path: file, object: file })
      else if (resolve(first) !== resolve(file)) rules.onOtherName?.(file, first)
    }
  return [...found.values()]
}

/** @throws Error for a pipe and the like, whose bytes come once only: each stage would wait for them or find none. */
async function isFolder(path: string): Promise<boolean> {
  const kind = await stat(path)
  if (!kind.isDirectory() && !kind.isFile())
    throw new Error(`${path} is neither a file nor a folder: put what comes out of it into a file, and name that`)
  return kind.isDirectory()
}

/** The same for all names of a file, be they links or hard links. */
async function identityOf(path: string): Promise<string> {
  const { dev, ino } = await stat(path, { bigint: true })
  // Some network disks number no files.
  return ino === 0n ? await realpath(path) : `${dev}:${ino}`
}

/** @param visited real paths, since links among folders would give the same files again under ever longer names. */
async function filesIn(folder: string, rules: FolderRules, visited: Set<string>): Promise<string[]> {
  const real = await realpath(folder)
  if (visited.has(real)) return []
  visited.add(real)
  const files: string[] = []
  for (const name of (await readdir(folder)).toSorted()) {
    if (isHidden(name)) continue
    const path = join(folder, name)
    const kind = await kindOf(path)
    if (kind === null) rules.onDeadLink?.(path)
    else if (kind.isDirectory()) {
      if (rules.isLeftOut?.(path) !== true) for (const file of await filesIn(path, rules, visited)) files.push(file)
    } else if (kind.isFile()) files.push(path)
  }
  return files
}

/** @returns null for a link that leads to nothing that is there. */
async function kindOf(path: string): Promise<Stats | null> {
  try {
    return await stat(path)
  } catch (error) {
    if (!(await lstat(path)).isSymbolicLink()) throw error
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ELOOP') return null
    throw error
  }
}
