// A segment that SQLite cannot read any more gets another name: no process appends to it again, what can still be read of it
// is read page by page, and people see which file it is. Any process that meets the damage does this, at any time.
//
// A process that has the file open looks for it before each commit, and goes on in the newest segment where it lost its
// name, also when the file was processed and deleted since. It may still be renamed under a commit. So the process writes
// its mark (`lane-mark.ts`), and looks whether the file has its name once more, before it acknowledges: either it
// acknowledges nothing, or the mark that the next segment begins at covers what it did.

import { existsSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'
import { type SegmentName, segmentPath, syncFolder } from './segment-file.ts'

/** @returns the new path; null when another process was first. @throws system errors. */
export function setAside(segment: SegmentName): string | null {
  const laneFolder = dirname(segment.path)
  const path = freePath(laneFolder, segment.firstOffset)
  try {
    renameSync(segment.path, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  try {
    renameSync(`${segment.path}-wal`, `${path}-wal`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  syncFolder(laneFolder)
  return path
}

function freePath(laneFolder: string, firstOffset: number): string {
  for (let count = 1; ; count++) {
    const path = segmentPath(laneFolder, firstOffset, `.damaged${count === 1 ? '' : count}`)
    if (!existsSync(path)) return path
  }
}
