// Faults of a running instance, each under load and as long as the caller says. Every scenario repairs its fault;
// `checked-load.ts` checks the result.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { eventually } from '../support/eventually.ts'
import type { Pennon } from '../support/pennon.ts'
import type { CheckedLoad } from './checked-load.ts'

/** An instance under load, with a flag that is on for everyone. */
export interface Scene {
  readonly pennon: Pennon
  readonly load: CheckedLoad
  /** Limit for the median answer time of flags, ms, on an otherwise idle machine. */
  readonly flagsMsMax?: number
}

export const flagOfScene = { key: 'on', filters: { groups: [{ rollout_percentage: 100 }] } }

/** Stops the worker: the log is not read, but events are accepted and flags served, and readiness reports it. */
export async function stopWorker(scene: Scene, seconds: number): Promise<void> {
  const { pennon } = scene
  const pid = pennon.childPids().work!
  process.kill(pid, 'SIGSTOP')
  try {
    await whileServing(scene, seconds)
  } finally {
    process.kill(pid, 'SIGCONT')
  }
}

/** Kills the engine again whenever it has restarted. */
export async function killEngine(scene: Scene, seconds: number): Promise<void> {
  const { pennon } = scene
  const untilMs = performance.now() + seconds * 1_000
  const killing = (async () => {
    while (performance.now() < untilMs) {
      const pid = pennon.childPids().events
      try {
        if (pid !== undefined) process.kill(pid, 'SIGKILL')
      } catch (cause) {
        if ((cause as NodeJS.ErrnoException).code !== 'ESRCH') throw cause
      }
      await sleep(200)
    }
  })()
  await Promise.all([killing, whileServing(scene, seconds)])
}

/** Another process holds the state's write lock all the time, so neither the worker nor the private API can write. */
export async function lockState(scene: Scene, seconds: number): Promise<void> {
  await withLock(join(scene.pennon.dataFolder, 'state.db'), () => whileServing(scene, seconds))
}

/**
 * The log refuses events for longer than a commit waits: captures get 503 with Retry-After, and flags are answered.
 * @param seconds more than 5, the time that a commit waits.
 */
export async function lockLog(scene: Scene, seconds: number): Promise<void> {
  const { pennon, load } = scene
  const streamFolder = join(pennon.dataFolder, 'log', 'main')
  const newest = readdirSync(streamFolder)
    .filter(name => name.endsWith('.db'))
    .sort()
    .at(-1)!
  const refusedBefore = load.answers.get(503) ?? 0
  await withLock(join(streamFolder, newest), async () => {
    const probe = pennon.capture('probe')
    await whileServingFlags(scene, seconds)
    const answer = await probe
    assert.equal(answer.status, 503)
    assert.match(answer.headers.get('retry-after') ?? '', /^([1-9]|[12]\d|30)$/)
    await eventually(() => (load.answers.get(503) ?? 0) > refusedBefore, { what: 'the refusal of a sender' })
  })
}

/** Kills everything at once; the instance must recover by itself. */
export async function settle({ pennon, load }: Scene): Promise<void> {
  const isReady = async () => {
    const { status: _, ...parts } = await pennon.readiness()
    return Object.values(parts).every(part => part === 'ok')
  }
  await eventually(isReady, { what: 'readiness' })
  const before = load.acknowledgedCount()
  await eventually(() => load.acknowledgedCount() > before, { what: 'an accepted event' })
}

async function whileServing(scene: Scene, seconds: number): Promise<void> {
  const before = scene.load.acknowledgedCount()
  await whileServingFlags(scene, seconds)
  await eventually(() => scene.load.acknowledgedCount() > before, { what: 'an event accepted during the fault' })
}

/** Flags depend on nothing that is disturbed: an answer that came before the repair has not waited for it. */
async function whileServingFlags({ pennon, flagsMsMax = Infinity }: Scene, seconds: number): Promise<void> {
  const untilMs = performance.now() + seconds * 1_000
  const tookMs: number[] = []
  while (performance.now() < untilMs) {
    const startedMs = performance.now()
    const { status, featureFlags } = await pennon.decide()
    tookMs.push(performance.now() - startedMs)
    assert.deepEqual([status, featureFlags], [200, { on: true }])
    await sleep(25)
  }
  const median = tookMs.sort((a, b) => a - b)[tookMs.length >> 1]!
  assert.ok(median < flagsMsMax, `half of the answers with flags took more than ${Math.round(median)} ms`)
}

async function withLock(path: string, whileHeld: () => Promise<void>): Promise<void> {
  const holder = new Database(path, { timeout: 60_000 })
  try {
    holder.exec('BEGIN IMMEDIATE')
    await whileHeld()
  } finally {
    holder.close()
  }
}
