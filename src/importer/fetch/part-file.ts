// Files of `raw/` during their download: `NAME.part` is renamed to `NAME` when all of it is synced. So a file with its
// final name is complete, no matter when the process was killed.

import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export interface PartFile {
  /** Path of the file while it is downloaded. */
  readonly path: string
  readonly finalPath: string
}

/** @param folder the job's folder. @param id the part's id. */
export function toPartFile(folder: string, id: string): PartFile {
  const finalPath = join(folder, 'raw', id)
  return { path: `${finalPath}.part`, finalPath }
}

/** Creates the folder of the file, and removes what an earlier try left. */
export async function preparePartFile({ path }: PartFile): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await rm(path, { force: true })
}

/** Syncs the file, and gives it its final name. */
export async function completePartFile({ path, finalPath }: PartFile): Promise<void> {
  await syncPath(path)
  await rename(path, finalPath)
  await syncPath(dirname(finalPath))
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
