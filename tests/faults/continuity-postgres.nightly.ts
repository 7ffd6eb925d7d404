// A log-in while PostgreSQL hangs or refuses writes: flags that need no row keep their value, and the others recover by
// themselves. An unhandled rejection fails the file.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { openPostgresChunkStore } from '#adapters/postgres/postgres-chunk-store.ts'
import { holdTable } from '../postgres/held-table.ts'
import { eventually } from '../support/eventually.ts'
import { type RunningFront, startFront } from '../support/front.ts'
import { noPostgres, startPostgres, type TestPostgres } from '../support/postgres.ts'
import { logger } from '../support/postgres-state.ts'
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

describe('experience continuity with the state in PostgreSQL', { skip: noPostgres() }, () => {
  let postgres: TestPostgres
  let url: string
  let front: RunningFront

  before(async () => {
    postgres = await startPostgres()
    url = await postgres.createDatabase()
    front = await startFront({ DATABASE_URL: url })
    for (const flag of continuityFlags) await front.api('POST', '/api/projects/@current/feature_flags/', flag)
    const chunkStore = openPostgresChunkStore({ url, logger })
    await storePersons(chunkStore, 400)
    await chunkStore.close()
  })

  after(async () => {
    await front?.close()
    await postgres?.stop()
  })

  async function isWhole(distinctId: string): Promise<boolean> {
    const { featureFlags, errorsWhileComputingFlags } = await ask(front.url, distinctId, anonymousId)
    if (errorsWhileComputingFlags) return false
    assert.deepEqual(featureFlags, whole)
    return true
  }

  it('gives many concurrent requests from devices of one person one row and one answer', async () => {
    assert.ok(await eventually(() => isWhole('visitor-9'), { what: 'sessions with the server' }))
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => ask(front.url, 'visitor-0', `device-${index}`)),
    )
    const rows = await postgres.query<{ hash_key: string }>(
      `SELECT hash_key FROM flag_hash_key_override WHERE feature_flag_key = 'rollout-50' AND hash_key LIKE 'device-%'`,
      [],
      url,
    )
    assert.equal(rows.length, 1)
    const { featureFlags: expected } = await ask(front.url, 'visitor-0', null)
    const inTime = answers.filter(({ errorsWhileComputingFlags }) => !errorsWhileComputingFlags)
    assert.ok(inTime.length > 0, 'on a busy machine some may time out, but not all')
    for (const { featureFlags } of inTime) assert.deepEqual(featureFlags, expected)
  })

  it('fails flags without a row while the rows are locked, and flags with a row keep their value', async () => {
    const release = await holdTable(url, 'flag_hash_key_override', 'EXCLUSIVE')
    assert.equal((await ask(front.url, 'visitor-0', anonymousId)).errorsWhileComputingFlags, false)
    await assertBounded(front.url, () => ask(front.url, knownId, anonymousId), withoutRows)
    await release()
    await eventually(() => isWhole(knownId), { what: 'the row' })
  })

  it('delays requests for a limited time if a frozen server hangs, and recovers when the server resumes', async () => {
    assert.ok(await isWhole('visitor-2'))
    const sessions = await postgres.query<{ pid: number }>('SELECT pid FROM pg_stat_activity')
    const pids = [postgres.pid, ...sessions.map(({ pid }) => pid)]
    const signal = (name: 'SIGSTOP' | 'SIGCONT') => {
      for (const pid of pids)
        try {
          process.kill(pid, name)
        } catch (cause) {
          // The session that requested the list is part of it, and has ended.
          if ((cause as { code?: string }).code !== 'ESRCH') throw cause
        }
    }
    signal('SIGSTOP')
    try {
      await assertBounded(front.url, () => ask(front.url, 'visitor-2', anonymousId), withoutRows)
      const flood = await Promise.all(
        Array.from({ length: 400 }, (_, index) => ask(front.url, `visitor-${index}`, anonymousId)),
      )
      for (const { featureFlags } of flood) assert.deepEqual(featureFlags, withoutRows)
    } finally {
      signal('SIGCONT')
    }
    await eventually(() => isWhole('visitor-2'), { what: 'the stored row' })
    await eventually(() => isWhole('visitor-3'), { what: 'a new row' })
  })
})
