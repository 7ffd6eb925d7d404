// Writing files of an import that have fixed names: never through a link that lies there, which may lead anywhere.

import { appendFileSync, closeSync, constants, fsyncSync, ftruncateSync, openSync, rmSync } from 'node:fs'

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR, O_WRONLY } = constants

/** How a file is opened; the last component of its path is no link. */
export const ownFile = {
  /** Fails where something is in its place: remove that first. */
  create: O_WRONLY | O_CREAT | O_EXCL,
  /** Fails where there is none. */
  change: O_RDWR | O_NOFOLLOW,
} as const
const append = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW

/** Opens a new file in place of whatever has its name. @returns its descriptor. */
export function openNewFile(path: string): number {
  rmSync(path, { force: true })
  return openSync(path, ownFile.create, 0o600)
}

/** @param isSynced whether it is on the disk when this returns. */
export function appendToFile(path: string, data: string | Uint8Array, isSynced = false): void {
  const file = openSync(path, append, 0o600)
  try {
    appendFileSync(file, data)
    if (isSynced) fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** @param bytes that are left of it. */
export function cutFile(path: string, bytes: number): void {
  const file = openSync(path, ownFile.change)
  try {
    ftruncateSync(file, bytes)
  } finally {
    closeSync(file)
  }
}
