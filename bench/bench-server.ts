// A server of its own for a benchmark: empty data folder, known keys, pinned to the server's core.

import { execFileSync } from 'node:child_process'
import { type Pennon, startPennon, testProjectKey } from '../tests/support/pennon.ts'
import { cores } from './processes.ts'

export const projectKey = testProjectKey

export function startBenchServer(settings: Record<string, string> = {}): Promise<Pennon> {
  return startPennon({ settings, ...(cores !== null && { launcher: ['taskset', '-c', cores.server] }) })
}

/** Moves a running process, all its threads, to one of the two cores. */
export function movePinned(pid: number, core: 'server' | 'load'): void {
  if (cores !== null) execFileSync('taskset', ['-a', '-p', '-c', cores[core], String(pid)], { stdio: 'ignore' })
}
