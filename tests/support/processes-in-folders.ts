// Tracks which test processes work in which folder, so that they can be ended before a folder is removed. node:test
// runs `after` hooks in the order in which they were added, and skips the rest when one fails: a folder created first
// would be removed while an instance writes to it, and if the removal failed, nothing would end the instance.

import type { ChildProcess } from 'node:child_process'
import { sep } from 'node:path'

/** A process that takes longer to exit is killed. */
const endMsMax = 15_000

interface Working {
  readonly folder: string
  readonly end: () => Promise<void>
}

const working = new Set<Working>()

/**
 * Registers a process as working in a folder until it exits. A process that outlives all tests of its file keeps the
 * file's process alive; `scripts/outlived-tests.ts` then ends it and names the file.
 */
export function registerProcess(folder: string, child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): void {
  const entry: Working = { folder, end: () => endProcess(child, signal) }
  working.add(entry)
  child.once('exit', () => working.delete(entry))
}

/** Ends the processes registered for the folder or one below it. Resolves when all of them have exited. */
export async function endProcessesIn(folder: string): Promise<void> {
  const here = [...working].filter(each => each.folder === folder || each.folder.startsWith(folder + sep))
  await Promise.all(here.map(each => each.end()))
}

/** Sends the signal and waits for the exit; after `waitMs`, kills the process and the group that it leads, if any. */
export async function endProcess(child: ChildProcess, signal: NodeJS.Signals, waitMs = endMsMax): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise(resolve => child.once('exit', resolve))
  child.kill(signal)
  const deadline = setTimeout(() => killWithGroup(child), waitMs)
  await exited
  clearTimeout(deadline)
}

/** Kills (kill -9) the process and the group that it leads, if any. */
export function killWithGroup(child: ChildProcess): void {
  child.kill('SIGKILL')
  try {
    process.kill(-child.pid!, 'SIGKILL')
  } catch (cause) {
    if ((cause as { code?: string }).code !== 'ESRCH') throw cause // none leads a group of that id
  }
}
