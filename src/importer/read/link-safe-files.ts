// Writes files of an import. The names are predictable, so that somebody could place a link there to redirect a write;
// links are never followed.

import { appendFileSync, closeSync, constants, openSync, rmSync } from 'node:fs'

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR, O_WRONLY } = constants

/** Flags for opening a file; opening fails if the last component of its path is a link. */
export const openFlags = {
  /** Fails if the path exists; remove it first. */
  create: O_WRONLY | O_CREAT | O_EXCL,
  /** Fails if the file does not exist. */
  change: O_RDWR | O_NOFOLLOW,
} as const

/** Opens a new file, which replaces any existing one. @returns its descriptor. */
export function createNewFile(path: string): number {
  rmSync(path, { force: true })
  return openSync(path, openFlags.create, 0o600)
}

export function appendToFile(path: string, data: string | Uint8Array): void {
  const file = openSync(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600)
  try {
    appendFileSync(file, data)
  } finally {
    closeSync(file)
  }
}
