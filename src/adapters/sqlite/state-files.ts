// Whether the state file still has its name. SQLite goes on with one that was removed or replaced: whatever is written to
// it from then on is gone with the last process that has it open.

import { statSync } from 'node:fs'
import type Database from 'better-sqlite3'

const lookMs = 1_000
/** The newest commits are in the side file. */
const suffixes = ['', '-wal', '-shm']

/**
 * Looks once a second at the files that the name stands for now. Only for as long as a connection is open, since SQLite
 * removes its side files with the last one.
 * @param tell gets each change: the path of a file that is not there or is another, null once all are as they were.
 * @returns the same, as of the last look.
 */
export function watchStateFiles(
  path: string,
  { isOpen, tell }: { readonly isOpen: () => boolean; readonly tell: (missing: string | null) => void },
): () => string | null {
  const inodes = suffixes.map(suffix => inodeAt(path + suffix) ?? 0)
  let missing: string | null = null
  const timer = setInterval(() => {
    if (!isOpen()) return clearInterval(timer)
    const found = findMissing()
    if (found === missing) return
    missing = found
    tell(missing)
  }, lookMs)
  timer.unref()
  return () => missing

  function findMissing(): string | null {
    for (const [index, suffix] of suffixes.entries()) {
      const inode = inodeAt(path + suffix)
      // A disk that does not answer says nothing of names; whoever reads or writes gets its error.
      if (inode === null) return missing
      // A side file that was not there yet is taken as it comes.
      inodes[index] ||= inode
      if (inode !== inodes[index]) return path + suffix
    }
    return null
  }
}

/** A connection that takes no writes while its files are missing; what it reads is still answered. */
export function refuseWritesWhileMissing(database: Database.Database): void {
  watchStateFiles(database.name, {
    isOpen: () => database.open,
    tell: missing => database.pragma(`query_only = ${missing === null ? 'OFF' : 'ON'}`),
  })
}

/** The inode of a file; 0 when there is no such file, null when that cannot be found out. */
function inodeAt(path: string): number | null {
  try {
    return statSync(path, { throwIfNoEntry: false })?.ino ?? 0
  } catch {
    return null // the disk does not answer; `findMissing` says what follows
  }
}
