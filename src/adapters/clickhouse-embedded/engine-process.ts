// The body of `pennon events`: the embedded ClickHouse as a process of its own. The engine's call never comes back, so
// it has a thread; the main thread watches the parent. A signal to the process group reaches every process at once, so
// this one leaves stopping to its parent while it has one, and ends with it: a killed parent leaves no orphan that
// holds the folder. Files and passwords are made by start-engine.ts.

import { dlopen } from 'node:ffi'
import { writeSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { engineLibraryPath } from './engine-library.ts'
import type { EngineThreadData } from './engine-thread.ts'

/** What the process tells its parent: once that it answers, and every 2 s that it still does. */
export type EngineMessage = { readonly type: 'ready' | 'alive' }

const tellEveryMs = 2_000

/**
 * Runs the engine until the parent says `{type: 'shutdown'}` or its channel closes; without a parent's channel until
 * SIGTERM, SIGINT or SIGHUP. Sends `{type: 'ready'}` once HTTP answers, and `{type: 'alive'}` as long as it does. Exit code 0 when asked to end; 1 with a line
 * on stderr, below the engine's own, when it could not start or failed.
 * @param options.folder `<data>/events`, prepared by `prepareEngine`.
 */
export function runEngineProcess(options: { folder: string; httpPort: number }): void {
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
  const failed = (why: string) => {
    // At once: the engine's own clean-up goes on in its thread, and may crash before a callback would come.
    writeSync(2, `pennon events: the engine ended: ${why.split('\n', 1)[0]}\n`)
    endNow(1)
  }
  const thread = new Worker(new URL('./engine-thread.ts', import.meta.url), {
    workerData: { libraryPath: engineLibraryPath(), args: engineArgs(options.folder) } satisfies EngineThreadData,
    stdin: false,
  })
  thread.once('message', (why: string) => failed(why === '' ? 'its reason stands above' : why))
  thread.once('error', (error: unknown) => failed(error instanceof Error ? error.message : String(error)))
  tellWhileAnswering(options.httpPort)
}

/**
 * `clickhouse local` opens its HTTP listener by a statement and lives as long as a statement runs: the last one
 * sleeps.
 */
function engineArgs(folder: string): string[] {
  const statements = [
    'SYSTEM START LISTEN HTTP',
    'SELECT sleepEachRow(60) FROM system.numbers ' +
      'SETTINGS max_block_size=1, function_sleep_max_microseconds_per_block=0 FORMAT Null',
  ]
  return ['--config-file', join(folder, 'config.xml'), '--query', statements.join('; ')]
}

/**
 * Over a connection of its own each time: a listener that takes none any more is of no use, whatever this process does.
 * A question that is never answered is the last one.
 */
function tellWhileAnswering(httpPort: number): void {
  let type: EngineMessage['type'] = 'ready'
  const ask = () => {
    const request = get({ host: '127.0.0.1', port: httpPort, path: '/ping', agent: false }, response => {
      response.resume()
      response.once('end', () => {
        if (response.statusCode === 200 && process.connected) {
          process.send!({ type } satisfies EngineMessage)
          type = 'alive'
        }
        setTimeout(ask, tellEveryMs)
      })
    })
    request.once('error', () => setTimeout(ask, type === 'ready' ? 10 : tellEveryMs)) // not listening yet
  }
  ask()
}

/**
 * Ends the process without running the engine's destructors, which crash while its threads run. Nothing is lost:
 * whatever was acknowledged is synced (tests/faults/engine-kill.test.ts).
 */
function endNow(exitCode: number): void {
  dlopen(null, { _exit: { arguments: ['int32'], return: 'void' } }).functions._exit(exitCode)
}

function isShutdown(message: unknown): boolean {
  return typeof message === 'object' && message !== null && 'type' in message && message.type === 'shutdown'
}
