// Starts a real instance as users do: `pennon serve` as a process with its children, on a free port.

import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { collectText } from './child-processes.ts'
import { eventually } from './eventually.ts'
import { endProcess, killWithGroup, registerProcess } from './processes-in-folders.ts'
import { removeFolder, type Scope } from './temp-dir.ts'

export const testProjectKey = 'phc_test0000000000000000000000000000000000000001'
export const testPersonalKey = 'phx_test0000000000000000000000000000000000000001'

export interface Pennon {
  readonly url: string
  readonly port: number
  readonly pid: number
  readonly dataFolder: string
  readonly startToReadyMs: number
  /** Everything it has printed so far. */
  output(): string
  /** Pids of `work` and `events`, from the lock file. */
  childPids(): Record<string, number>
  /** Calls the private API; throws for any status but 2xx. */
  api<T>(method: string, path: string, body?: unknown): Promise<T>
  /** Posts JSON to a public path. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>
  /** Sends one event, with the status of the answer. */
  capture(event: string, distinctId?: string): Promise<Response>
  /** Asks which flags are on for `ada`. */
  decide(): Promise<{ readonly status: number; readonly featureFlags: Record<string, unknown> }>
  /** The status of `/_readiness` and its parts. */
  readiness(query?: string): Promise<Record<string, string> & { readonly status: number }>
  /** The sorted names of all stored events. */
  eventNames(): Promise<string[]>
  /** Resolves when the worker has processed everything appended so far. */
  caughtUp(timeoutMs?: number): Promise<void>
  /** Kills (kill -9) every process at once. */
  killTree(): Promise<void>
  /** Sends SIGTERM and resolves with the exit code. */
  stop(): Promise<number | null>
}

export interface StartOptions {
  readonly settings?: Readonly<Record<string, string>>
  /** A folder to keep. By default, a new one is used and removed by `stop`. */
  readonly dataFolder?: string
  /** The command that runs Node, for example `['taskset', '-c', '0']`. */
  readonly launcher?: readonly string[]
  /** By default also waits until events are processed. */
  readonly waitForProcessing?: boolean
  readonly arguments?: readonly string[]
  /** Root of the source tree to run; this one by default. */
  readonly tree?: string
}

/** Starts an instance that is killed after the test. */
export async function startPennonFor(t: Scope, options: StartOptions = {}): Promise<Pennon> {
  const pennon = await startPennon(options)
  t.after(async () => {
    await pennon.killTree()
    if (options.dataFolder === undefined) await removeFolder(pennon.dataFolder)
  })
  return pennon
}

export async function startPennon(options: StartOptions = {}): Promise<Pennon> {
  const dataFolder = options.dataFolder ?? mkdtempSync(join(tmpdir(), 'pennon-test-'))
  const startedAt = performance.now()
  const launched = [
    ...(options.launcher ?? []),
    process.execPath,
    // The options that `npm start` gives.
    ...['--disable-warning=ExperimentalWarning', '--max-semi-space-size=8', '--import', './bin/preload.js'],
    'src/main.ts',
    ...(options.arguments ?? ['serve']),
  ]
  const child = spawn(launched[0]!, launched.slice(1), {
    cwd: options.tree,
    env: {
      ...process.env,
      NODE_TEST_CONTEXT: undefined,
      PORT: '0',
      PENNON_DATA: dataFolder,
      PENNON_PROJECT_KEY: testProjectKey,
      PENNON_PERSONAL_KEY: testPersonalKey,
      PENNON_LOG_LEVEL: 'warn',
      ...options.settings,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // a process group of its own, so that the whole tree can be killed at once
  })
  const output = collectText(child.stdout, child.stderr)
  const exited = new Promise<number | null>(resolve => child.once('exit', code => resolve(code)))

  registerProcess(dataFolder, child)
  let url: string
  let startToReadyMs: number
  try {
    const hasEnded = () => child.exitCode !== null || child.signalCode !== null
    const shown = await eventually(
      () => /serving on (http:\S+)/.exec(output())?.[1] ?? (hasEnded() ? 'its end' : null),
      {
        what: 'the start',
      },
    )
    if (shown === 'its end') throw new Error(`pennon ended with ${await exited}: ${output()}`)
    url = shown
    await eventually(() => isReady(url, 'flags'), { what: 'readiness' })
    startToReadyMs = performance.now() - startedAt
    if (options.waitForProcessing !== false)
      await eventually(() => isReady(url, 'processing'), { what: `processing (${output()})` })
  } catch (error) {
    killWithGroup(child)
    await exited
    if (options.dataFolder === undefined) await removeFolder(dataFolder)
    throw error
  }

  const pennon: Pennon = {
    url,
    port: Number(new URL(url).port),
    pid: child.pid!,
    dataFolder,
    startToReadyMs,
    output,
    childPids: () =>
      (JSON.parse(readFileSync(join(dataFolder, 'lock'), 'utf8')) as { children: Record<string, number> }).children,
    api: privateApi(url),
    post: (path, body, headers = {}) =>
      fetch(url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }),
    capture: async (event, distinctId = 'ada') => {
      const response = await pennon.post('/e/', { api_key: testProjectKey, event, distinct_id: distinctId })
      await response.arrayBuffer()
      return response
    },
    decide: async () => {
      const response = await pennon.post('/decide?v=3', { api_key: testProjectKey, distinct_id: 'ada' })
      const { featureFlags } = (await response.json()) as { featureFlags: Record<string, unknown> }
      return { status: response.status, featureFlags }
    },
    readiness: async (query = '') => {
      const response = await fetch(`${url}/_readiness${query}`)
      return Object.assign((await response.json()) as Record<string, string>, { status: response.status })
    },
    eventNames: async () => {
      const path = '/api/projects/@current/events/?limit=1000'
      const { results } = await pennon.api<{ results: { event: string }[] }>('GET', path)
      return results.map(({ event }) => event).sort()
    },
    caughtUp: async timeoutMs => {
      await eventually(
        async () => {
          const { lanes } = await pennon.api<{ lanes: Lanes }>('GET', '/api/projects/@current/ingestion_status/')
          return Object.values(lanes).every(lane => lane.processed >= lane.appended)
        },
        { what: 'the worker', ...(timeoutMs !== undefined && { timeoutMs }) },
      )
    },
    killTree: async () => {
      killWithGroup(child)
      await exited
    },
    stop: async () => {
      await endProcess(child, 'SIGTERM', stopMsMax)
      const code = await exited
      if (options.dataFolder === undefined) await removeFolder(dataFolder)
      return code
    },
  }
  return pennon
}

/** Calls the private API with all scopes. @throws for any status but 2xx. */
export function privateApi(url: string): Pennon['api'] {
  return async (method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${testPersonalKey}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === '' ? null : JSON.parse(text)
  }
}

/** An instance that takes longer to stop is killed, so that its test fails instead of waiting forever. */
const stopMsMax = 60_000

type Lanes = Record<string, { appended: number; processed: number }>

async function isReady(url: string, what: 'flags' | 'processing'): Promise<boolean> {
  const response = await fetch(`${url}/_readiness`)
  return ((await response.json()) as Record<string, string>)[what] === 'ok'
}
