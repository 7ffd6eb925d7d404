// Writes files of an import. Their names are fixed, so an existing link could redirect a write anywhere; links are
// never followed.

import { appendFileSync, closeSync, constants, fsyncSync, ftruncateSync, openSync, rmSync } from 'node:fs'

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR, O_WRONLY } = constants

/** Flags for opening a file; they refuse a link as the last component of its path. */
export const ownFile = {
  /** Fails if the path exists; remove it first. */
  create: O_WRONLY | O_CREAT | O_EXCL,
  /** Fails if the file does not exist. */
  change: O_RDWR | O_NOFOLLOW,
} as const
const append = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW

/** Opens a new file, which replaces any existing one. @returns its descriptor. */
export function openNewFile(path: string): number {
  rmSync(path, { force: true })
  return openSync(path, ownFile.create, 0o600)
}

/** @param isSynced whether to sync the file to disk before returning. */
export function appendToFile(path: string, data: string | Uint8Array, isSynced = false): void {
  useFile(path, append, file => {
    appendFileSync(file, data)
    if (isSynced) fsyncSync(file)
  })
}

/** @param bytes new size. */
export function cutFile(path: string, bytes: number): void {
  useFile(path, ownFile.change, file => ftruncateSync(file, bytes))
}

function useFile(path: string, flags: number, use: (file: number) => void): void {
  const file = openSync(path, flags, 0o600)
  try {
    use(file)
  } finally {
    closeSync(file)
  }
}
