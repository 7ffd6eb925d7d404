// The body of `pennon events`: the embedded ClickHouse in its own process. The call into the engine never returns, so
// it runs in a thread; the main thread watches the parent. A signal to the process group reaches every process at once,
// so while there is a parent, only the parent decides when to stop. This process also ends when its parent does, so
// that a killed parent leaves no orphan that holds the folder. start-engine.ts makes files and passwords.

import { dlopen } from 'node:ffi'
import { writeSync } from 'node:fs'
import { get, request } from 'node:http'
import { dirname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { ProvingAgent } from '../clickhouse/connection/proving-agent.ts'
import { buildSqlUserLogin, sqlScopes } from '../clickhouse/connection/sql-users.ts'
import { type EngineEndpoint, readEngineEndpoint } from './engine-endpoint.ts'
import { findEngineLibraryPath } from './engine-library.ts'
import type { EngineThreadData } from './engine-thread.ts'

/** Messages to the parent: `ready` once HTTP answers, then `alive` every 2 s as long as HTTP answers. */
export type EngineMessage = { readonly type: 'ready' | 'alive' }

const reportEveryMs = 2_000

/**
 * Runs the engine until the parent sends `{type: 'shutdown'}` or its channel closes; without such a channel, until SIGTERM,
 * SIGINT or SIGHUP. Sends `{type: 'ready'}` once HTTP answers, and `{type: 'alive'}` as long as HTTP answers. The exit code
 * is 0 when the process was asked to end. It is 1, with a line on stderr after the engine's own lines, when the engine
 * could not start or failed, or when a user query can be ended in no other way.
 * @param options.folder `<data>/events`, prepared by `prepareEngineStart`.
 * @param options.runawayMs how far beyond its time limit a user query may run; 130 s when absent.
 */
export function runEngineProcess(options: { folder: string; httpPort: number; runawayMs?: number }): void {
  process.title = 'pennon events'
  process.chdir(options.folder) // the engine reads a config.xml of its working directory too
  process.umask(0o077)
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (!process.connected) endNow(0)
    })
  }
  process.on('disconnect', () => endNow(0))
  if (process.send !== undefined && !process.connected) endNow(0) // the parent died while this process was starting
  process.on('message', message => {
    if (isShutdown(message)) endNow(0)
  })
  const endWithFailure = (reason: string) => {
    // Writes synchronously: the engine's clean-up continues in its thread, and may crash the process before a callback
    // would run.
    writeSync(2, `pennon events: the engine ended: ${reason.split('\n', 1)[0]}\n`)
    endNow(1)
  }
  const libraryPath = findEngineLibraryPath()
  if (libraryPath === null) {
    endWithFailure('its library is not installed')
    return
  }
  const thread = new Worker(new URL('./engine-thread.ts', import.meta.url), {
    workerData: { libraryPath, args: buildEngineArgs(options.folder) } satisfies EngineThreadData,
    stdin: false,
  })
  thread.once('message', (reason: string) => endWithFailure(reason === '' ? 'see the reason above' : reason))
  thread.once('error', (error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error)
    const isUnloaded = reason.startsWith('dlopen failed')
    endWithFailure(isUnloaded ? `its library cannot be loaded (${reason}); run \`pennon doctor\`` : reason)
  })
  reportWhileAnswering(options.httpPort)
  const endpoint = readEngineEndpoint(dirname(options.folder))
  if (endpoint === null) return
  watchRunawayQueries({
    endpoint,
    runawayMs: options.runawayMs ?? runawayDefaultMs,
    onRunaway: seconds => {
      writeSync(2, `pennon events: a user's SQL query has run for ${seconds} s and cannot be stopped; restarting\n`)
      endNow(1)
    },
  })
}

/**
 * `clickhouse local` opens its HTTP listener by a statement and exits after its last statement, so that statement never
 * ends.
 */
function buildEngineArgs(folder: string): string[] {
  const statements = [
    'SYSTEM START LISTEN HTTP',
    'SELECT sleepEachRow(60) FROM system.numbers ' +
      'SETTINGS max_block_size=1, function_sleep_max_microseconds_per_block=0 FORMAT Null',
  ]
  return ['--config-file', join(folder, 'config.xml'), '--query', statements.join('; ')]
}

/**
 * Checks over a new connection each time that HTTP answers, since a listener that accepts no new connections is useless.
 * After a request that gets no answer, it sends no further requests.
 */
function reportWhileAnswering(httpPort: number): void {
  let type: EngineMessage['type'] = 'ready'
  const ask = () => {
    const request = get({ host: '127.0.0.1', port: httpPort, path: '/ping', agent: false }, response => {
      response.resume()
      response.once('end', () => {
        if (response.statusCode === 200 && process.connected) {
          process.send!({ type } satisfies EngineMessage)
          type = 'alive'
        }
        setTimeout(ask, reportEveryMs)
      })
    })
    request.once('error', () => setTimeout(ask, type === 'ready' ? 10 : reportEveryMs)) // not listening yet
  }
  ask()
}

/**
 * Ends the process without running the engine's destructors, which crash while its threads run. Nothing is lost:
 * whatever was acknowledged is synced (tests/faults/engine-kill.ci.ts).
 */
function endNow(exitCode: number): void {
  dlopen(null, { _exit: { arguments: ['int32'], return: 'void' } }).functions._exit(exitCode)
}

function isShutdown(message: unknown): boolean {
  return typeof message === 'object' && message !== null && 'type' in message && message.type === 'shutdown'
}

/** Longer than the dashboard port's limit for downloads, since a slow reader may keep a query open for that long. */
const runawayDefaultMs = 130_000

/**
 * Finds user queries that run far beyond their time limit. The engine checks a query's limits only between two blocks of
 * rows; for one block, a single function call, such as the edit distance between long texts, may take hours, and nothing in
 * the engine stops the call. Until the query ends, it holds cores, memory and a query slot that no project can use.
 *
 * Calls `onRunaway` once, when a query of the analyst is `runawayMs` over its limit, with the seconds that the query has
 * run. A failed or unanswered request for the list of queries is repeated; an engine that does not answer at all is
 * detected elsewhere.
 */
function watchRunawayQueries(options: {
  readonly endpoint: EngineEndpoint
  readonly runawayMs: number
  readonly onRunaway: (seconds: number) => void
}): void {
  const { runawayMs, onRunaway } = options
  const { url, secret, writer, analyst } = options.endpoint
  const users = sqlScopes.map(scope => `'${buildSqlUserLogin(analyst, scope).username}'`)
  const sql = `SELECT toUInt32(maxIf(elapsed, elapsed > toFloat64OrZero(Settings['max_execution_time']) + ${runawayMs / 1000}))
    FROM system.processes WHERE user IN (${users.join(', ')})`
  const everyMs = Math.min(10_000, runawayMs)
  const agent = new ProvingAgent(secret, 1)
  const askLater = () => void setTimeout(ask, everyMs)
  const ask = () => {
    const auth = `${writer.username}:${writer.password}`
    const asked = request(url, { method: 'POST', agent, auth, timeout: everyMs })
    asked.once('timeout', () => asked.destroy())
    let text = ''
    let isAnswered = false
    asked.once('response', response => {
      isAnswered = response.statusCode === 200
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      response.on('error', () => undefined) // the request closes with it
    })
    asked.on('error', () => {
      isAnswered = false
    })
    asked.once('close', () => {
      if (isAnswered && Number(text) > 0) onRunaway(Number(text))
      else askLater()
    })
    asked.end(sql)
  }
  askLater()
}
