// Finds the files of an import on this machine: those that are named, and all that folders hold.

import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { RawFile } from './read-record.ts'
import { isHidden } from './unpacked-files.ts'

/**
 * @param paths files and folders. A hidden file that is named is read; those in folders are left out.
 * @param isLeftOut asked of each folder inside of those that are named.
 * @returns the files of each path in the order of their names, whatever order the disk has, and each file once.
 * @throws the error of Node for a path that cannot be read.
 */
export async function findRawFiles(
  paths: readonly string[],
  isLeftOut: (folder: string) => boolean = () => false,
): Promise<RawFile[]> {
  const found = new Map<string, RawFile>()
  for (const path of paths)
    for (const file of (await stat(path)).isDirectory() ? await filesIn(path, isLeftOut) : [path])
      found.set(file, { path: file, object: file })
  return [...found.values()]
}

async function filesIn(folder: string, isLeftOut: (folder: string) => boolean): Promise<string[]> {
  const files: string[] = []
  for (const name of (await readdir(folder)).toSorted()) {
    if (isHidden(name)) continue
    const path = join(folder, name)
    const kind = await stat(path)
    if (kind.isDirectory()) {
      if (!isLeftOut(path)) for (const file of await filesIn(path, isLeftOut)) files.push(file)
    } else if (kind.isFile()) files.push(path)
  }
  return files
}
