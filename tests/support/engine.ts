// A real embedded engine for tests: one per test file, in a folder of its own, ended and removed afterwards.

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { EngineLimits } from '../../src/adapters/clickhouse-embedded/engine-config.ts'
import { type EngineEndpoint, readEngineEndpoint } from '../../src/adapters/clickhouse-embedded/engine-endpoint.ts'
import { prepareEngine } from '../../src/adapters/clickhouse-embedded/start-engine.ts'
import { endProcess, worksIn } from './processes-in-folders.ts'
import { removeFolder } from './temp-dir.ts'

export interface TestEngine {
  readonly dataFolder: string
  readonly child: ChildProcess
  /** As in the endpoint file now. */
  endpoint(): EngineEndpoint
  /** kill -9, and waits until it is gone. */
  kill(): Promise<void>
  /** Starts it again on the same folder, with other limits when they are given; resolves when it is ready. */
  restart(limits?: Partial<EngineLimits>): Promise<void>
  /** Ends it and removes its folder. */
  stop(): Promise<void>
}

/** Resolves when the engine is ready; `stop` it in an `after` hook. */
export async function startEngine(limits: Partial<EngineLimits> = {}): Promise<TestEngine> {
  const dataFolder = mkdtempSync(join(tmpdir(), 'pennon-engine-'))
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

/** One engine for the whole test file, ended after its last test. */
export async function startEngineForTests(t: { after: (done: () => Promise<void>) => void }): Promise<TestEngine> {
  const engine = await startEngine()
  t.after(() => engine.stop())
  return engine
}

async function spawnEngine(dataFolder: string, limits: Partial<EngineLimits>): Promise<ChildProcess> {
  const { args } = await prepareEngine(dataFolder, limits)
  const script = fileURLToPath(new URL('./engine-child.ts', import.meta.url))
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', script, args[2]!, args[4]!], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  worksIn(dataFolder, child, 'SIGKILL')
  await new Promise<void>((ready, failed) => {
    child.once('message', () => ready())
    child.once('exit', code => failed(new Error(`the engine ended with code ${code} before it was ready`)))
  })
  return child
}
