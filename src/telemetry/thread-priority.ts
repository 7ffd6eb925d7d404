// Priorities of threads, for machines with fewer processors than busy threads.

import { readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'
import { basename } from 'node:path'

/**
 * A thread with this priority gets a third of a usual thread's share, and a usual thread that wakes up never waits for it.
 */
const priorityStep = 5
const lowest = 19

/**
 * Lowers the priority of the calling thread. For threads with long work whose exact duration matters to no request: with
 * equal priorities, the event loop would lose its processor whenever it passes work to such a thread. Only Linux has
 * priorities of threads; elsewhere, or if it is not allowed, nothing changes.
 */
export function lowerThreadPriority(): void {
  if (process.platform !== 'linux') return
  try {
    const thread = Number(basename(readlinkSync('/proc/thread-self')))
    setPriority(thread, Math.min(lowest, getPriority(thread) + priorityStep))
  } catch {
    // There is no /proc, or a sandbox forbids this. Everything works the same, only less smoothly.
  }
}
