import { open } from 'node:fs/promises'

/** Syncs a folder, so that the names of new or renamed files in it survive a power cut. @throws system errors. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
