// A real embedded engine for tests: one per test file, in a separate folder, stopped and removed afterwards.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { EngineLimits } from '../../src/adapters/clickhouse-embedded/engine-config.ts'
import { type EngineEndpoint, readEngineEndpoint } from '../../src/adapters/clickhouse-embedded/engine-endpoint.ts'
import { type PreparedEngine, prepareEngineStart } from '../../src/adapters/clickhouse-embedded/start-engine.ts'
import { endProcess, registerProcess } from './processes-in-folders.ts'
import { removeFolder } from './temp-dir.ts'

const engineChild = fileURLToPath(new URL('./engine-child.ts', import.meta.url))
const engineStartsMax = 3

export interface StartedEngine {
  readonly child: ChildProcess
  readonly endpoint: EngineEndpoint
}

export interface TestEngine {
  readonly dataFolder: string
  readonly child: ChildProcess
  /** The endpoint currently in the endpoint file. */
  endpoint(): EngineEndpoint
  /** Kills the engine (kill -9) and waits until it has exited. */
  kill(): Promise<void>
  /** Restarts it on the same folder, with other limits if given; resolves when it is ready. */
  restart(limits?: Partial<EngineLimits>): Promise<void>
  /** Stops it and removes its folder. */
  stop(): Promise<void>
}

/**
 * Resolves when the engine is ready; `stop` it in an `after` hook. @param folder parent of the folder made for its
 * data.
 */
export async function startEngine(limits: Partial<EngineLimits> = {}, folder = tmpdir()): Promise<TestEngine> {
  const dataFolder = mkdtempSync(join(folder, 'pennon-engine-'))
  let child = await spawnEngine(dataFolder, limits)
  const kill = () => endProcess(child, 'SIGKILL')
  return {
    dataFolder,
    get child() {
      return child
    },
    endpoint: () => readEngineEndpoint(dataFolder)!,
    kill,
    restart: async (otherLimits = limits) => {
      await kill()
      child = await spawnEngine(dataFolder, otherLimits)
    },
    stop: async () => {
      await kill()
      await removeFolder(dataFolder)
    },
  }
}

/** Starts one engine for the whole test file, ended after its last test. */
export async function startEngineForTests(t: { after: (done: () => Promise<void>) => void }): Promise<TestEngine> {
  const engine = await startEngine()
  t.after(() => engine.stop())
  return engine
}

/**
 * Starts the engine on what `prepare` wrote. Its port is chosen before it listens and may be taken by another test's
 * connection; the engine is then prepared and started again, as the supervisor does.
 */
export async function spawnPreparedEngine(
  dataFolder: string,
  prepare: () => Promise<PreparedEngine>,
): Promise<StartedEngine> {
  for (let start = 1; ; start++) {
    const prepared = await prepare()
    const child = spawn(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', engineChild, prepared.args[2]!, prepared.args[4]!],
      { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] },
    )
    registerProcess(dataFolder, child, 'SIGKILL')
    const [event, code] = await Promise.race([
      once(child, 'message').then(() => ['ready', null] as const),
      once(child, 'exit').then(([exitCode]) => ['exit', exitCode as number | null] as const),
    ])
    if (event === 'ready') return { child, endpoint: prepared.endpoint }
    if (start === engineStartsMax) throw new Error(`the engine ended with code ${code} before it was ready`)
  }
}

async function spawnEngine(dataFolder: string, limits: Partial<EngineLimits>): Promise<ChildProcess> {
  const { child } = await spawnPreparedEngine(dataFolder, () => prepareEngineStart(dataFolder, limits))
  return child
}
