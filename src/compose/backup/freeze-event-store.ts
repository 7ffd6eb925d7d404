// Protects the frozen event files (hard links) of a backup from removal while the backup runs. Running backups share a lock
// of the operating system, which is released when a process ends, however it dies. Process ids would prove nothing, since
// they are reused, in containers nearly always.

import { join } from 'node:path'
import {
  type EventFiles,
  freezeEventFiles,
  hasFrozenFiles,
  removeFrozenFiles,
} from '#adapters/clickhouse-embedded/event-files.ts'
import { acquireSharedFileLock, tryFileLock } from '#processes/data-lock.ts'

/** The lock's file in the data folder. */
const lockName = 'backups.db'

/** Freezes the event store until the files are released. @throws PortError `unavailable` if the engine does not answer. */
export async function freezeEventStore(dataFolder: string): Promise<EventFiles> {
  removeAbandonedFrozenFiles(dataFolder)
  const unlock = acquireSharedFileLock(join(dataFolder, lockName))
  try {
    const { files, rows, release } = await freezeEventFiles(dataFolder)
    return {
      files,
      rows,
      release: () => {
        release()
        unlock()
      },
    }
  } catch (error) {
    unlock()
    throw error
  }
}

/**
 * Removes the hard links of killed backups: they keep files on disk that the engine has merged and deleted. Does nothing
 * while a backup runs.
 */
export function removeAbandonedFrozenFiles(dataFolder: string): void {
  if (!hasFrozenFiles(dataFolder)) return
  const unlock = tryFileLock(join(dataFolder, lockName))
  if (unlock === null) return
  try {
    removeFrozenFiles(dataFolder)
  } finally {
    unlock()
  }
}
