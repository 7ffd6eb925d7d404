// Who goes first when a machine has fewer processors than threads with work.

import { readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'
import { basename } from 'node:path'

/** A third of the share of a usual thread, and a thread that wakes up never waits for it. */
const behindOthers = 5
const lowest = 19

/**
 * Lets the calling thread run behind the others of the machine. It is for threads that work for long on what nobody waits
 * for to the millisecond: with equals, the event loop would lose its processor whenever it hands something to one of them.
 * Only Linux has priorities of threads; elsewhere, or where it is not allowed, nothing changes.
 */
export function runBehindOthers(): void {
  if (process.platform !== 'linux') return
  try {
    const thread = Number(basename(readlinkSync('/proc/thread-self')))
    setPriority(thread, Math.min(lowest, getPriority(thread) + behindOthers))
  } catch {
    // Without /proc, or forbidden by a sandbox: it works the same, only less smoothly.
  }
}
