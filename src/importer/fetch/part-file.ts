// Files of `raw/` during their download: `NAME.part` is renamed to `NAME` when all of it is synced. So a file under its
// final name is complete, whenever the process is killed.

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export interface PartFile {
  /** Path of the file while it is downloaded. */
  readonly path: string
  readonly finalPath: string
}

export interface FileHash {
  readonly sha256: string
  readonly bytes: number
}

/** @param folder of the job. @param id of the part. */
export function toPartFile(folder: string, id: string): PartFile {
  const finalPath = join(folder, 'raw', id)
  return { path: `${finalPath}.part`, finalPath }
}

/** Creates the folder of the file, and removes what an earlier try left. */
export async function preparePartFile({ path }: PartFile): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await rm(path, { force: true })
}

/** Syncs and hashes the file, and gives it its final name. */
export async function completePartFile({ path, finalPath }: PartFile): Promise<FileHash> {
  await syncPath(path)
  const hash = await hashFile(path)
  await rename(path, finalPath)
  await syncPath(dirname(finalPath))
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

/** Syncing a folder makes the new names in it durable. */
async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
