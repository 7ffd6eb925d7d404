// Starts a separate server for a benchmark, with an empty data folder and known keys, pinned to the server's core.

import { execFileSync } from 'node:child_process'
import { loopPrecisionMs } from '../src/telemetry/metrics.ts'
import { type Pennon, startPennon, testProjectKey } from '../tests/support/pennon.ts'
import { startPostgres } from '../tests/support/postgres.ts'
import { cores } from './processes.ts'

export const projectKey = testProjectKey

/** The settings that place the state in the data folder, or in a PostgreSQL that this run started. */
let stateSettings: () => Promise<Record<string, string>> = async () => ({})

/** From now on, each server has its own database. @returns a function that stops PostgreSQL, after the servers. */
export async function keepStateInPostgres(): Promise<() => Promise<void>> {
  const postgres = await startPostgres()
  if (cores !== null) movePinned(postgres.pid, 'load')
  stateSettings = async () => ({ DATABASE_URL: await postgres.createDatabase() })
  return () => postgres.stop()
}

/** @param tree the root of the tree whose sources run; this one when absent. */
export async function startBenchServer(settings: Record<string, string> = {}, tree?: string): Promise<Pennon> {
  return startPennon({
    ...(tree !== undefined && { tree }),
    settings: { ...(await stateSettings()), ...settings },
    ...(cores !== null && { launcher: ['taskset', '-c', cores.server] }),
  })
}

/** Moves a running process with all its threads to one of the two cores. */
export function movePinned(pid: number, core: 'server' | 'load'): void {
  if (cores !== null) execFileSync('taskset', ['-a', '-p', '-c', cores[core], String(pid)], { stdio: 'ignore' })
}

/** The longest time, in ms, that `work` blocked a server's event loop: the monitor's largest gap minus its interval. */
export async function loopHeldMs<T>(server: Pennon, work: () => Promise<T>): Promise<{ result: T; heldMs: number }> {
  await (await fetch(`${server.url}/metrics`)).text() // reading the figures starts them anew
  const result = await work()
  const text = await (await fetch(`${server.url}/metrics`)).text()
  const seconds = Number(/^nodejs_eventloop_lag_max_seconds\{process="serve"\} (\S+)/m.exec(text)?.[1])
  return { result, heldMs: Math.max(0, seconds * 1000 - loopPrecisionMs) }
}
