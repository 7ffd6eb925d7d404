// Identifies the log by an id in a file next to the streams, so that a state knows which log its positions refer to.
// Callers decide what a mismatch means.

import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { embeddedStreamNames } from './embedded-streams.ts'
import { ensureFolder, listSegments, removeOrphanSideFiles, syncFile, syncSegmentFolder } from './segment-file.ts'
import { removeStreamMark } from './stream-mark.ts'

const fileName = 'identity'
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The identity file exists but has no id. The message is a line for operators. */
export class LogIdentityError extends Error {
  constructor(path: string) {
    super(`${path} does not contain the id of a log; restore it from a backup`)
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

/**
 * Writes the id durably and atomically, replacing any other. Only for a log without segments that was never read.
 * @throws system errors.
 */
export function writeLogIdentity(folder: string, id: string): void {
  // Marks that another log left in this folder do not apply to this log.
  for (const stream of embeddedStreamNames) removeStreamMark(join(folder, stream))
  ensureFolder(folder)
  const path = join(folder, fileName)
  const draft = `${path}.${process.pid}.draft`
  try {
    rmSync(draft, { force: true })
    writeFileSync(draft, `${id}\n`, { flag: 'wx', mode: 0o600 })
    syncFile(draft)
    renameSync(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
  syncSegmentFolder(folder)
}

/** Removes side files of segments that were removed manually. Call it before a stream is opened. @throws system errors. */
export function removeOrphanFilesOfStreams(folder: string): void {
  for (const stream of embeddedStreamNames) removeOrphanSideFiles(join(folder, stream))
}

/** Whether anything was, or could have been, appended to a log. */
export function hasLogSegments(folder: string): boolean {
  return embeddedStreamNames.some(stream => listSegments(join(folder, stream)).length > 0)
}
