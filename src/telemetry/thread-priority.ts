// Priorities of threads, for machines with fewer processors than busy threads.

import { readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'
import { basename } from 'node:path'

/** Gives a third of the share of a usual thread, and a thread that wakes up never waits for it. */
const priorityStep = 5
const lowest = 19

/**
 * Lowers the priority of the calling thread. For threads with long work that no request waits for to the millisecond: with
 * equal priorities, the event loop would lose its processor whenever it passes work to one of them. Only Linux has
 * priorities of threads; elsewhere, or if it is not allowed, nothing changes.
 */
export function lowerThreadPriority(): void {
  if (process.platform !== 'linux') return
  try {
    const thread = Number(basename(readlinkSync('/proc/thread-self')))
    setPriority(thread, Math.min(lowest, getPriority(thread) + priorityStep))
  } catch {
    // Without /proc, or forbidden by a sandbox: it works the same, only less smoothly.
  }
}
