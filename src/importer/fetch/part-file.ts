// Files of `raw/` while they come: `NAME.part`, which gets its name once all of it is on the disk. So a file under its
// own name is whole, whenever the process is killed.

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export interface PartFile {
  /** The file that grows. */
  readonly path: string
  /** Its last name. */
  readonly finalPath: string
}

export interface FileHash {
  readonly sha256: string
  readonly bytes: number
}

/** @param object its last name, relative to the folder of the job. */
export function partFileOf(folder: string, object: string): PartFile {
  const finalPath = join(folder, object)
  return { path: `${finalPath}.part`, finalPath }
}

/** Removes what an earlier try left. */
export async function beginPart({ path }: PartFile): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await rm(path, { force: true })
}

/** Syncs the file, hashes it and gives it its name. */
export async function completePart({ path, finalPath }: PartFile): Promise<FileHash> {
  await sync(path)
  const hash = await hashFile(path)
  await rename(path, finalPath)
  await sync(dirname(finalPath))
  return hash
}

export async function hashFile(path: string): Promise<FileHash> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    hash.update(chunk)
    bytes += chunk.length
  }
  return { sha256: hash.digest('hex'), bytes }
}

/** @returns null when there is no such file. */
export async function bytesOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).size
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw cause
  }
}

/** Also of a folder, which makes the new names in it durable. */
async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
