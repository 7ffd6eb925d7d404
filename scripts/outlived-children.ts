// Finds and kills processes that tests started and that outlive the process of their test file, because they would hold
// ports, folders and the output of the run. Recognises them by their environment, which children inherit (on Linux;
// elsewhere it finds none).

import { readdirSync, readFileSync } from 'node:fs'

export interface Outlived {
  readonly pid: number
  /** The test file, or the file that imports several test files that run together. */
  readonly file: string
  readonly command: string
}

/** How long a child may take to end by itself once the tests have ended. */
export const outliveGraceMs = Number(process.env.TESTS_GRACE_MS ?? 20_000)

/** Suffix of files in the run's folder with the CPU time of a test file. */
export const cpuSuffix = '.cpu'

const orphanedAtMs = new Map<number, number>()

/** Kills children whose test file's process ended longer than `graceMs` ago. @returns those it killed. */
export function endOutlivedChildren(run: string, graceMs: number): Outlived[] {
  const ended: Outlived[] = []
  const orphans = childrenOfRun(run).filter(({ parent }) => !isRunning(parent))
  for (const { pid, file } of orphans) {
    const sinceMs = orphanedAtMs.get(pid) ?? performance.now()
    orphanedAtMs.set(pid, sinceMs)
    if (performance.now() - sinceMs < graceMs) continue
    const command = (readText(`/proc/${pid}/cmdline`) ?? '').replaceAll('\0', ' ').trim()
    if (end(pid)) ended.push({ pid, file, command })
    orphanedAtMs.delete(pid)
  }
  return ended
}

/** Kills the processes of test files that still run. @returns the files. */
export function endTestFiles(run: string): string[] {
  return processesOf(run).flatMap(({ pid, environment }) => {
    if (testProcessIn(environment) > 0) return [] // children of tests end once the process of their test file is gone
    const file = (readText(`/proc/${pid}/cmdline`) ?? '').split('\0').at(-2) ?? 'a test file'
    return end(pid) ? [file] : []
  })
}

/** Whether any process that the run's tests started still runs. */
export function isAnyChildRunning(run: string): boolean {
  return childrenOfRun(run).length > 0
}

function childrenOfRun(run: string): { pid: number; parent: number; file: string }[] {
  return processesOf(run).flatMap(({ pid, environment }) => {
    const parent = testProcessIn(environment)
    // The test files' own processes were started without TESTS_PROCESS.
    if (!(parent > 0) || !isRunning(pid)) return []
    return [{ pid, parent, file: /(?:^|\0)TESTS_FILE=([^\0]*)/.exec(environment)?.[1] ?? 'a test file' }]
  })
}

/** The processes of test files, and the processes that tests started. */
function processesOf(run: string): { pid: number; environment: string }[] {
  return pids().flatMap(pid => {
    const environment = readText(`/proc/${pid}/environ`)
    return environment?.includes(`TESTS_RUN=${run}\0`) ? [{ pid, environment }] : []
  })
}

/** Id of the test file's process that started this one; NaN if there is none. */
function testProcessIn(environment: string): number {
  return Number(/(?:^|\0)TESTS_PROCESS=(\d+)\0/.exec(environment)?.[1])
}

/** @returns false if the process has already ended by itself. */
function end(pid: number): boolean {
  try {
    process.kill(pid, 'SIGKILL')
    return true
  } catch (error) {
    if ((error as { code?: string }).code !== 'ESRCH') throw error
    return false
  }
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

/** False for a process that has ended, even if its parent has not reaped it yet. */
function isRunning(pid: number): boolean {
  const state = /^State:\s*(\w)/m.exec(readText(`/proc/${pid}/status`) ?? '')?.[1]
  return state !== undefined && state !== 'Z' && state !== 'X'
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return null // the process has ended, or is another user's
  }
}
