// Which log this is: an id in a file beside the lanes, by which a state knows the log that its positions belong to. What
// follows from one that does not fit is decided elsewhere.

import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { logLanes } from '#core/events/captured-event.ts'
import { removeLaneMark } from './lane-mark.ts'
import { ensureFolder, listSegments, removeOrphans, syncFile, syncFolder } from './segment-file.ts'

const fileName = 'identity'
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The file of the id is there and holds none. The message is a line for people. */
export class LogIdentityError extends Error {
  constructor(path: string) {
    super(`${path} does not hold the id of a log; restore it from a backup`)
    this.name = 'LogIdentityError'
  }
}

/**
 * The id of the log in a folder; null when it has none yet.
 * @throws LogIdentityError, system errors.
 */
export function readLogIdentity(folder: string): string | null {
  const path = join(folder, fileName)
  let text: string
  try {
    text = readFileSync(path, 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  if (!uuid.test(text)) throw new LogIdentityError(path)
  return text
}

/** Durably, and never over another one. @throws system errors, `EEXIST` when the log has an id. */
export function writeLogIdentity(folder: string, id: string): void {
  putIdentity(folder, id, linkSync)
}

/**
 * Replaces the id durably and in one step. Only for a log without segments, of which nothing was read.
 * @throws system errors.
 */
export function replaceLogIdentity(folder: string, id: string): void {
  // How far another log had come says nothing of this one.
  for (const lane of logLanes) removeLaneMark(join(folder, lane))
  putIdentity(folder, id, renameSync)
}

function putIdentity(folder: string, id: string, put: (draft: string, path: string) => void): void {
  ensureFolder(folder)
  const path = join(folder, fileName)
  const draft = `${path}.${process.pid}.draft`
  try {
    writeFileSync(draft, `${id}\n`, { mode: 0o600 })
    syncFile(draft)
    put(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
  syncFolder(dirname(path))
}

/** Removes what is left of segments that were removed by hand. Call it before a lane is opened. @throws system errors. */
export function tidyLanes(folder: string): void {
  for (const lane of logLanes) removeOrphans(join(folder, lane))
}

/** Whether anything was ever appended to a log, or could have been. */
export function hasLogSegments(folder: string): boolean {
  return logLanes.some(lane => listSegments(join(folder, lane)).length > 0)
}
