// A disk that a test can fill: a separate tmpfs, which only root on Linux may mount.

import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** @returns the reason why it is impossible, for `skip`, or false. */
export function noSmallDisk(): string | false {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'only root can mount a tmpfs'
  try {
    mountSmallDisk(2 ** 20).remove()
    return false
  } catch (error) {
    return `a tmpfs cannot be mounted: ${(error as Error).message}`
  }
}

export function mountSmallDisk(bytes: number): { readonly path: string; readonly remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'pennon-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', path], { stdio: 'pipe' })
  } catch (error) {
    rmSync(path, { recursive: true })
    throw error
  }
  return {
    path,
    remove: () => {
      execFileSync('umount', ['-l', path])
      rmSync(path, { recursive: true, force: true })
    },
  }
}

/** Fills a disk. @returns a function that frees space again. */
export function fillDisk(path: string): () => void {
  const ballast = join(path, 'ballast')
  for (const bytes of [2 ** 20, 2 ** 12])
    try {
      for (;;) appendFileSync(ballast, Buffer.alloc(bytes))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  return () => rmSync(ballast)
}
