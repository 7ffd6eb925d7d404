import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { tryFileLock } from '#processes/data-lock.ts'

/** A lock in the folder shows that the command that created it still runs. A process id would not, since ids are reused. */
const lockName = 'lock.db'

/**
 * Creates a folder for unfinished files inside an existing folder. Removes what a killed command left there. @returns a
 * function that removes the new folder; null if another process uses it.
 */
export function createDraftFolder(folder: string): (() => void) | null {
  if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 })
  const release = tryFileLock(join(folder, lockName))
  if (release === null) return null
  for (const name of readdirSync(folder))
    if (name !== lockName) rmSync(join(folder, name), { recursive: true, force: true })
  return () => {
    rmSync(folder, { recursive: true, force: true })
    release()
  }
}
