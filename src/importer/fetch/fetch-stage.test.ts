// The stage with fake sources: how concurrent parts affect each other.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { it, type TestContext } from 'node:test'
import { quickClock } from '../../../tests/support/fixed-clock.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { FetchStop, FetchWait } from './fetch-faults.ts'
import type { FetchPart, PartTools } from './fetch-source.ts'
import { type FetchStageOptions, runFetchStage } from './fetch-stage.ts'
import type { FetchClock } from './waiting.ts'

const parts: readonly FetchPart[] = ['a', 'b'].map(id => ({ id, asks: { id }, bytes: 10 }))

function stageOf(
  t: TestContext,
  fetchPart: (part: FetchPart, tools: PartTools) => Promise<boolean>,
  more: Partial<FetchStageOptions> = {},
) {
  const source = {
    limits: { perSecond: null, perHour: null, atOnce: 2 },
    ...{ advice: '', callsPerPart: 1, notes: [] },
    ...{ listParts: () => parts, splitPart: () => null, fetchPart, [Symbol.dispose]: () => undefined },
  }
  const { signal } = new AbortController()
  const tryFileLock = () => () => undefined
  return runFetchStage({ folder: tempDir(t), config: '{}', source, clock: quickClock(), tryFileLock, signal, ...more })
}

it('a part that needs action by the user ends the fetch at once, even while another part waits for its source', async t => {
  const [bothRun, waits] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  // Only the end of the fetch ends a wait.
  const clock: FetchClock = {
    nowMs: () => 0,
    random: () => 0.5,
    sleep: async (_ms, signal) => {
      waits.resolve()
      if (!signal.aborted) await once(signal, 'abort')
      throw signal.reason
    },
  }
  const stage = stageOf(
    t,
    async ({ id }, { takeCall }) => {
      await takeCall()
      if (id === 'b') bothRun.resolve()
      await bothRun.promise
      if (id === 'a') throw new FetchWait('source limit', 840_000)
      await waits.promise
      throw new FetchStop('The key is refused.')
    },
    { clock },
  )
  await assert.rejects(stage, new FetchStop('The key is refused.'))
})

it('a part of known size needs space for itself and for the remaining bytes of the other parts', async t => {
  const [looks, reached] = [[] as number[], [] as string[]]
  const bothRun = Promise.withResolvers<void>()
  const stage = stageOf(
    t,
    async ({ id }, { file, willWrite }) => {
      if (reached.push(id) === 2) bothRun.resolve()
      await bothRun.promise
      willWrite(10)
      writeFileSync(file.path, '0123456789')
      return true
    },
    {
      findSpaceProblem: bytes => {
        looks.push(bytes)
        return null
      },
    },
  )
  assert.equal((await stage).partsDone, 2)
  assert.deepEqual(looks, [10, 20])
})

it('a part that stalls is fetched again, and waiting for the limits of the source does not count as a stall', async t => {
  let tries = 0
  const stage = stageOf(
    t,
    async ({ id }, { file, signal, takeCall, received }) => {
      await takeCall()
      received(10)
      if (id === 'a' && tries++ < 2) {
        await once(signal, 'abort')
        throw signal.reason
      }
      writeFileSync(file.path, '0123456789')
      return true
    },
    { stallMs: 20 },
  )
  assert.equal((await stage).partsDone, 2)
  assert.equal(tries, 3)
})
