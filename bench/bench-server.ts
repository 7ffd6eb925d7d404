// A server of its own for a benchmark: empty data folder, known keys, pinned to the server's core.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cores, spawnPinned } from './processes.ts'

export const projectKey = 'phc_bench000000000000000000000000000000000000000'
export const personalKey = 'phx_bench000000000000000000000000000000000000000'

export interface BenchServer {
  readonly url: string
  readonly port: number
  readonly pid: number
  readonly startToReadyMs: number
  childPids(): Record<string, number>
  api<T>(method: string, path: string, body?: unknown): Promise<T>
  /** Resolves when the worker has processed all that was appended. */
  caughtUp(): Promise<void>
  stop(): Promise<void>
}

export async function startBenchServer(settings: Record<string, string> = {}): Promise<BenchServer> {
  const dataFolder = mkdtempSync(join(tmpdir(), 'pennon-bench-'))
  const startedAt = performance.now()
  const child = spawnPinned('server', ['src/main.ts', 'serve'], {
    ...process.env,
    PORT: '0',
    PENNON_DATA: dataFolder,
    PENNON_PROJECT_KEY: projectKey,
    PENNON_PERSONAL_KEY: personalKey,
    PENNON_LOG_LEVEL: 'warn',
    ...settings,
  })
  const url = await new Promise<string>((resolve, reject) => {
    let output = ''
    child.stdout!.on('data', chunk => {
      output += chunk
      const match = /serving on (http:\S+)/.exec(output)
      if (match) resolve(match[1]!)
    })
    child.once('exit', code => reject(new Error(`the server ended with ${code}: ${output}`)))
  })
  let startToReadyMs = 0
  const api = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${personalKey}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as T
  }
  for (;;) {
    const readiness = (await (await fetch(`${url}/_readiness`)).json()) as Record<string, string>
    if (startToReadyMs === 0 && readiness.flags === 'ok' && readiness.capture === 'ok')
      startToReadyMs = performance.now() - startedAt
    if (readiness.processing === 'ok') break
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  const childPids = () =>
    (JSON.parse(readFileSync(join(dataFolder, 'lock'), 'utf8')) as { children: Record<string, number> }).children
  return {
    url,
    port: Number(new URL(url).port),
    pid: child.pid!,
    startToReadyMs,
    childPids,
    api,
    caughtUp: async () => {
      for (;;) {
        const { lanes } = await api<{ lanes: Record<string, { appended: number; processed: number }> }>(
          'GET',
          '/api/projects/@current/ingestion_status/',
        )
        if (Object.values(lanes).every(lane => lane.processed >= lane.appended)) return
        await new Promise(resolve => setTimeout(resolve, 25))
      }
    },
    stop: async () => {
      child.removeAllListeners('exit')
      const ended = new Promise(resolve => child.once('exit', resolve))
      child.kill('SIGTERM')
      await ended
      rmSync(dataFolder, { recursive: true, force: true })
    },
  }
}

/** Moves a running process, all its threads, to one of the two cores. */
export function movePinned(pid: number, core: 'server' | 'load'): void {
  if (cores !== null) execFileSync('taskset', ['-a', '-p', '-c', cores[core], String(pid)], { stdio: 'ignore' })
}
