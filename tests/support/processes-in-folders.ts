// Which processes of the tests work in which folder. node:test runs `after` hooks in the order in which they were added and
// leaves out the rest when one of them fails: a folder that is made first would be removed under the instance that writes in
// it, and where the removal fails, nothing would end the instance. So the removal itself ends what works there.

import type { ChildProcess } from 'node:child_process'
import { sep } from 'node:path'

/** A process that does not end after so long is killed. */
const endMsMax = 15_000

interface Working {
  readonly folder: string
  readonly end: () => Promise<void>
}

const working = new Set<Working>()

/**
 * Says that a process works in a folder, until it exits. What still works there when every test of its file is over keeps the
 * file's process; `scripts/outlived-tests.ts` then ends it and names the file.
 */
export function worksIn(folder: string, child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): void {
  const entry: Working = { folder, end: () => endProcess(child, signal) }
  working.add(entry)
  child.once('exit', () => working.delete(entry))
}

/** Resolves when no process that was said to work in the folder, or below it, is there any more. */
export async function endProcessesIn(folder: string): Promise<void> {
  const here = [...working].filter(each => each.folder === folder || each.folder.startsWith(folder + sep))
  await Promise.all(here.map(each => each.end()))
}

/** Sends the signal and waits for the exit; after `waitMs`, kills the process, and its group where it leads one. */
export async function endProcess(child: ChildProcess, signal: NodeJS.Signals, waitMs = endMsMax): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise(resolve => child.once('exit', resolve))
  child.kill(signal)
  const deadline = setTimeout(() => killWithGroup(child), waitMs)
  await exited
  clearTimeout(deadline)
}

/** kill -9 of the process and of all in the group that it leads, if it leads one. */
export function killWithGroup(child: ChildProcess): void {
  child.kill('SIGKILL')
  try {
    process.kill(-child.pid!, 'SIGKILL')
  } catch (cause) {
    if ((cause as { code?: string }).code !== 'ESRCH') throw cause // none leads a group of that number
  }
}
