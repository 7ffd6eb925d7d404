// Renames a segment that SQLite can no longer read, or whose end SQLite does not see: no process appends to it again, its
// remaining records are read page by page, and operators see which file it is. Any process that finds the damage does this,
// at any time.
//
// A process that has the file open checks its name before each commit. If the name is gone, even because the file was
// since processed and deleted, the process continues in the newest segment. The rename may still happen during a
// commit. So before acknowledging, the process writes its mark (`stream-mark.ts`) and then checks the name again:
// either it acknowledges nothing, or the next segment begins at a mark that covers the acknowledged records.

import { existsSync, linkSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { type SegmentName, segmentPath, syncSegmentFolder } from './segment-file.ts'

/** @returns the new path; null when another process was first. @throws system errors. */
export function moveDamagedSegmentAside(segment: SegmentName): string | null {
  const streamFolder = dirname(segment.path)
  const path = findFreePath(streamFolder, segment.firstOffset)
  const side = `${segment.path}-wal`
  // Links the side file first: after a crash between the rename and a later link, a start would remove the side file.
  ignoreErrorCode('ENOENT', () => ignoreErrorCode('EEXIST', () => linkSync(side, `${path}-wal`)))
  if (!ignoreErrorCode('ENOENT', () => renameSync(segment.path, path))) return null
  rmSync(side, { force: true })
  syncSegmentFolder(streamFolder)
  return path
}

function findFreePath(streamFolder: string, firstOffset: number): string {
  for (let count = 1; ; count++) {
    const path = segmentPath(streamFolder, firstOffset, `.damaged${count === 1 ? '' : count}`)
    if (!existsSync(path)) return path
  }
}

/** @returns false when the system refused with this code, which means that another process was first. */
function ignoreErrorCode(code: string, act: () => void): boolean {
  try {
    act()
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === code) return false
    throw error
  }
}
