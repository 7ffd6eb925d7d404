// Who may take away the frozen event files of a backup: nobody while a backup runs. Backups share a lock of the operating
// system, which ends with their process however that dies; its number would say nothing, since numbers are given again, in
// containers nearly always.

import { join } from 'node:path'
import {
  type EventFiles,
  freezeEventFiles,
  hasFreezes,
  removeFreezes,
} from '#adapters/clickhouse-embedded/event-files.ts'
import { shareFileLock, tryFileLock } from '../processes/data-lock.ts'

/** In the data folder. */
const lockName = 'backups.db'

/** Freezes the event store until the files are released. @throws PortError `unavailable` when the engine does not answer. */
export async function holdFreeze(dataFolder: string): Promise<EventFiles> {
  removeAbandonedFreezes(dataFolder)
  const unlock = shareFileLock(join(dataFolder, lockName))
  try {
    const { files, release } = await freezeEventFiles(dataFolder)
    return {
      files,
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

/** Links of backups that were killed, which keep the room of parts that the engine has merged away. Not while a backup runs. */
export function removeAbandonedFreezes(dataFolder: string): void {
  if (!hasFreezes(dataFolder)) return
  const unlock = tryFileLock(join(dataFolder, lockName))
  if (unlock === null) return
  try {
    removeFreezes(dataFolder)
  } finally {
    unlock()
  }
}
