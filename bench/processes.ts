// Starts, pins and measures processes for the benchmarks.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { processCpuMs } from '../tests/support/cpu-time.ts'
import type { LoadOptions, LoadResult } from './load-generator.ts'

export const cores = availableParallelism() >= 2 ? ({ server: '0', load: '1' } as const) : null

/** Starts Node with a file and an IPC channel, pinned to a core if there are at least two. */
export function spawnPinned(
  core: 'server' | 'load',
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): ChildProcess {
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', ...args]
  const command = cores === null ? node : ['taskset', '-c', cores[core], ...node]
  return spawn(command[0]!, command.slice(1), { env, stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
}

/** User and system CPU seconds of a process, all threads. */
export function cpuSeconds(pid: number): number {
  return processCpuMs(pid) / 1_000
}

export function residentMiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
}

export async function load(options: LoadOptions): Promise<LoadResult> {
  const child = spawnPinned('load', ['--single-threaded', 'bench/load-process.ts'])
  child.send({ ...options, requests: options.requests.map(request => request.toString('base64')) })
  const [result] = (await once(child, 'message')) as [LoadResult]
  return result
}

/** Performs a load run and measures the server's CPU time per answer. */
export async function measured(pid: number, options: LoadOptions): Promise<LoadResult & { cpuMicros: number }> {
  await load({ ...options, durationMs: Math.min(3_000, options.durationMs) }) // until the compiler has settled
  const before = cpuSeconds(pid)
  const result = await load(options)
  return { ...result, cpuMicros: ((cpuSeconds(pid) - before) / result.answerCount) * 1e6 }
}
