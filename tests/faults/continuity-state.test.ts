// A log-in while the state file cannot be written: flags that need no row keep their value, and the others recover by
// themselves. An unhandled rejection fails the file.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, it, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openSqliteChunkStore } from '#adapters/sqlite/sqlite-chunk-store.ts'
import { openSqliteSubjectStore } from '#adapters/sqlite/sqlite-subject-store.ts'
import { startStateThread } from '#adapters/sqlite/state-thread.ts'
import type { StateMethod } from '#adapters/sqlite/state-writer-protocol.ts'
import type { HashKeyRow } from '#ports/state/subject-store.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { startDecideServer } from '../support/decide-server.ts'
import { eventually } from '../support/eventually.ts'
import { startFront } from '../support/front.ts'
import { testProjectKey } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'
import {
  anonymousId,
  ask,
  assertBounded,
  continuityFlags,
  knownId,
  storePersons,
  whole,
  withoutRows,
} from './continuity-questions.ts'

const flagsPath = '/api/projects/@current/feature_flags/'

describe('experience continuity while the state file is written by another process', () => {
  it('is delayed by a held lock for a limited time and then not at all, and recovers when the lock is released', async t => {
    const dataFolder = tempDir(t)
    const front = await startFront({ PENNON_DATA: dataFolder })
    t.after(() => front.close())
    for (const flag of continuityFlags) await front.api('POST', flagsPath, flag)
    const chunkStore = openSqliteChunkStore({ dataFolder })
    t.after(() => chunkStore.close())
    await storePersons(chunkStore, 400)
    assert.deepEqual((await ask(front.url, 'visitor-0', anonymousId)).featureFlags, whole, 'a row is stored')

    const release = await holdState(t, dataFolder)
    await assertBounded(front.url, () => ask(front.url, knownId, anonymousId), withoutRows)
    const flood = await Promise.all(
      Array.from({ length: 400 }, (_, index) => ask(front.url, `visitor-${index}`, anonymousId)),
    )
    for (const [index, { featureFlags, errorsWhileComputingFlags }] of flood.entries()) {
      assert.deepEqual(featureFlags, index === 0 ? whole : withoutRows)
      assert.equal(errorsWhileComputingFlags, index !== 0, 'a stored row still counts')
    }
    assert.equal((await ask(front.url, knownId, null)).errorsWhileComputingFlags, false, 'no row needs to be written')

    await release()
    const isBack = async () => !(await ask(front.url, knownId, anonymousId)).errorsWhileComputingFlags
    await eventually(isBack, { what: 'the row' })
    assert.deepEqual((await ask(front.url, knownId, null)).featureFlags, whole, 'from the stored row')
  })

  it('fails a flag whose row waits too long, and afterwards gives the value that it had before the log-in', async t => {
    const dataFolder = tempDir(t)
    const front = await startFront({ PENNON_DATA: dataFolder })
    t.after(() => front.close())
    for (const flag of continuityFlags) await front.api('POST', flagsPath, flag)
    const chunkStore = openSqliteChunkStore({ dataFolder })
    t.after(() => chunkStore.close())
    const userIds = Array.from({ length: 24 }, (_, index) => `visitor-${index}`)
    await storePersons(chunkStore, userIds.length)
    const answerFor = async (distinctId: string, anonDistinctId: string | null) => {
      const response = await fetch(`${front.url}/flags?v=2`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ token: testProjectKey, distinct_id: distinctId, $anon_distinct_id: anonDistinctId }),
      })
      assert.equal(response.status, 200)
      const { flags, errorsWhileComputingFlags } = (await response.json()) as {
        flags: Record<string, { enabled: boolean; failed?: boolean }>
        errorsWhileComputingFlags: boolean
      }
      const { enabled, failed = false } = flags['rollout-50']!
      assert.equal(errorsWhileComputingFlags, failed)
      return failed ? 'failed' : enabled
    }
    const before = await answerFor(anonymousId, null)
    const ofUsers = await Promise.all(userIds.map(userId => answerFor(userId, null)))
    const visitors = userIds.filter((_, index) => ofUsers[index] !== before)
    assert.ok(
      visitors.length >= 6,
      'depends on a fixed random choice: without their rows these would get another value',
    )
    const logIn = () => Promise.all(visitors.map(visitor => answerFor(visitor, anonymousId)))

    const release = await holdState(t, dataFolder)
    // Answered while the lock is held, so none of their rows can be written.
    assert.deepEqual(new Set(await logIn()), new Set(['failed']))
    await release()
    const seen = await eventually(async () => {
      const answers = await logIn()
      for (const answer of answers) assert.ok(answer === 'failed' || answer === before, String(answer))
      return answers.includes('failed') ? null : answers
    })
    assert.deepEqual(new Set(seen), new Set([before]))
    assert.deepEqual(new Set(await Promise.all(visitors.map(visitor => answerFor(visitor, null)))), new Set([before]))
  })
})

describe('experience continuity while the state thread dies', () => {
  it('fails only flags without a row, and these recover with the next thread', async t => {
    const dataFolder = tempDir(t)
    const thread = startStateThread({ dataFolder, access: 'write', busyTimeoutMs: 2_000, logger: createSilentLogger() })
    t.after(() => thread.close())
    await thread.started
    const chunkStore = openSqliteChunkStore({ dataFolder })
    const subjects = openSqliteSubjectStore({ dataFolder })
    t.after(async () => {
      await chunkStore.close()
      subjects.close()
    })
    await storePersons(chunkStore, 0)
    const server = await startDecideServer(t, {
      flags: continuityFlags.map((flag, index) => ({ id: index + 1, ...flag })),
      project: { apiToken: testProjectKey },
      subjects,
      hashKeys: {
        findHashKeys: subjects.findHashKeys,
        addMissingHashKeys: assignment =>
          thread.call('addMissingHashKeys', [assignment]) as Promise<readonly HashKeyRow[]>,
      },
    })
    // Calling a method that is not on the list is fatal to the thread.
    const fatal = assert.rejects(thread.call('constructor' as StateMethod, []))
    const dying = await Promise.all(Array.from({ length: 20 }, () => ask(server.base, knownId, anonymousId)))
    for (const { featureFlags } of dying) {
      assert.equal(featureFlags.plain, true)
      assert.equal(featureFlags.everybody, true)
      assert.ok(featureFlags['rollout-50'] !== false, 'unknown, or as stored')
    }
    await fatal
    const isBack = async () => !(await ask(server.base, knownId, anonymousId)).errorsWhileComputingFlags
    await eventually(isBack, { what: 'the next thread' })
    assert.deepEqual((await ask(server.base, knownId, null)).featureFlags, whole)
  })
})

/** @returns a function that releases the lock. */
async function holdState(t: TestContext, dataFolder: string): Promise<() => Promise<void>> {
  const script = fileURLToPath(new URL('../support/state-holder.ts', import.meta.url))
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', script, dataFolder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.after(() => void child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return async () => {
    const gone = once(child, 'exit')
    child.stdin.end()
    await gone
  }
}
