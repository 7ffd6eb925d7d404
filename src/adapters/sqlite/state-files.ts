// Checks that the state file still has its name. SQLite keeps using a file that was removed or replaced: all later writes
// to it are lost when the last process closes it.

import { statSync } from 'node:fs'
import type Database from 'better-sqlite3'

const lookMs = 1_000
/** The main file and its side files; the newest commits are in `-wal`. */
const suffixes = ['', '-wal', '-shm']

/**
 * Checks the state's files by name once a second, until `isOpen` is false: SQLite removes its side files with the last
 * connection.
 * @param report called on each change: with the path of a missing or replaced file, or null once all are as they were.
 * @returns the same, as of the last check.
 */
export function watchStateFiles(
  path: string,
  { isOpen, report }: { readonly isOpen: () => boolean; readonly report: (missing: string | null) => void },
): () => string | null {
  const inodes = suffixes.map(suffix => readInode(path + suffix) ?? 0)
  let missing: string | null = null
  const timer = setInterval(() => {
    if (!isOpen()) return clearInterval(timer)
    const found = findMissing()
    if (found === missing) return
    missing = found
    report(missing)
  }, lookMs)
  timer.unref()
  return () => missing

  function findMissing(): string | null {
    for (const [index, suffix] of suffixes.entries()) {
      const inode = readInode(path + suffix)
      // A disk that does not answer says nothing about names; callers that read or write get its error.
      if (inode === null) return missing
      // A side file that did not exist yet is accepted when it appears.
      inodes[index] ||= inode
      if (inode !== inodes[index]) return path + suffix
    }
    return null
  }
}

/** Makes a connection refuse writes while its files are missing; reads still work. */
export function refuseWritesWhileMissing(database: Database.Database): void {
  watchStateFiles(database.name, {
    isOpen: () => database.open,
    report: missing => database.pragma(`query_only = ${missing === null ? 'OFF' : 'ON'}`),
  })
}

/** The inode of a file; 0 when there is no such file, null when the disk does not say. */
function readInode(path: string): number | null {
  try {
    return statSync(path, { throwIfNoEntry: false })?.ino ?? 0
  } catch {
    return null // the disk does not answer; `findMissing` says what follows
  }
}
