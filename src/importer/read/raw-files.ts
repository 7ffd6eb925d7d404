// Finds the files of an import on this machine: those that are named, and all that folders hold.

import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { RawFile } from './read-record.ts'
import { isHidden } from './unpacked-files.ts'

/**
 * @param paths files and folders. A hidden file that is named is read; those in folders are left out.
 * @returns the files of each path in the order of their names, whatever order the disk has, and each file once.
 * @throws the error of Node for a path that cannot be read.
 */
export async function findRawFiles(paths: readonly string[]): Promise<RawFile[]> {
  const found = new Map<string, RawFile>()
  for (const path of paths)
    for (const file of (await stat(path)).isDirectory() ? await filesIn(path) : [path])
      found.set(file, { path: file, object: file })
  return [...found.values()]
}

async function filesIn(folder: string): Promise<string[]> {
  const files: string[] = []
  for (const name of (await readdir(folder)).toSorted()) {
    if (isHidden(name)) continue
    const path = join(folder, name)
    const kind = await stat(path)
    if (kind.isDirectory()) files.push(...(await filesIn(path)))
    else if (kind.isFile()) files.push(path)
  }
  return files
}
