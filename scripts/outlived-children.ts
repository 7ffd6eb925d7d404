// Processes that tests started and that are there after the process of their test file: they would keep ports, folders and
// the output of the run. They are known by their environment, which children inherit (Linux; elsewhere none is found).

import { readdirSync, readFileSync } from 'node:fs'

export interface Outlived {
  readonly pid: number
  /** The test file, or the file that imports those that run together. */
  readonly file: string
  readonly command: string
}

/** How long a child may take to end by itself once the tests are over. */
export const outliveGraceMs = Number(process.env.TESTS_GRACE_MS ?? 20_000)

const orphanedAtMs = new Map<number, number>()

/** Kills those whose test file ended longer than `graceMs` ago, and says which they were. */
export function endOutlivedChildren(run: string, graceMs: number): Outlived[] {
  const ended: Outlived[] = []
  const orphans = childrenOfRun(run).filter(({ parent }) => !isRunning(parent))
  for (const { pid, file } of orphans) {
    const sinceMs = orphanedAtMs.get(pid) ?? performance.now()
    orphanedAtMs.set(pid, sinceMs)
    if (performance.now() - sinceMs < graceMs) continue
    const command = (textOf(`/proc/${pid}/cmdline`) ?? '').replaceAll('\0', ' ').trim()
    try {
      process.kill(pid, 'SIGKILL')
      ended.push({ pid, file, command })
    } catch (error) {
      if ((error as { code?: string }).code !== 'ESRCH') throw error // it ended meanwhile
    }
    orphanedAtMs.delete(pid)
  }
  return ended
}

/** Whether any process that the run's tests started is there. */
export function isAnyLeft(run: string): boolean {
  return childrenOfRun(run).length > 0
}

function childrenOfRun(run: string): { pid: number; parent: number; file: string }[] {
  return pids().flatMap(pid => {
    const environment = textOf(`/proc/${pid}/environ`)
    if (environment === null || !environment.includes(`TESTS_RUN=${run}\0`)) return []
    const parent = Number(/(?:^|\0)TESTS_PROCESS=(\d+)\0/.exec(environment)?.[1])
    // Test files and the runner itself have no number of a test file's process from their start.
    if (!(parent > 0) || !isRunning(pid)) return []
    return [{ pid, parent, file: /(?:^|\0)TESTS_FILE=([^\0]*)/.exec(environment)?.[1] ?? 'a test file' }]
  })
}

function pids(): number[] {
  try {
    return readdirSync('/proc')
      .filter(name => /^\d+$/.test(name))
      .map(Number)
  } catch {
    return [] // no such view of processes on this system
  }
}

/** False of a process that ended, whether its parent took note of that or not. */
function isRunning(pid: number): boolean {
  const state = /^State:\s*(\w)/m.exec(textOf(`/proc/${pid}/status`) ?? '')?.[1]
  return state !== undefined && state !== 'Z' && state !== 'X'
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return null // ended meanwhile, or another user's
  }
}
