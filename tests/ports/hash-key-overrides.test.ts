import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openHashKeyWriter } from '#adapters/sqlite/hash-key-writer.ts'
import { migrateSqlite } from '#adapters/sqlite/kysely-on-sqlite.ts'
import { openStateForWriting } from '#adapters/sqlite/open-sqlite.ts'
import { PortError } from '#ports/port-error.ts'
import { openSqliteState } from '../support/state-harness.ts'
import { tempDir } from '../support/temp-dir.ts'
import { hashKeyOverridesContract } from './hash-key-overrides.contract.ts'

hashKeyOverridesContract('sqlite', openSqliteState)

describe('hash key overrides on sqlite', () => {
  it('fail together as `timeout` after a quarter of a second while another process writes', async t => {
    const dataFolder = tempDir(t)
    await migrateSqlite(dataFolder)
    const writer = openHashKeyWriter({ dataFolder })
    const other = openStateForWriting(dataFolder, 0)
    t.after(() => {
      writer.close()
      other.close()
    })
    other.exec('BEGIN IMMEDIATE')
    const assignment = { projectId: 1, distinctId: 'ada', anonDistinctId: 'anon', flagKeys: ['beta'] }
    const turns = countTurns()
    const outcomes = await Promise.allSettled(Array.from({ length: 100 }, () => writer.keepHashKey(assignment)))
    const turnsWaited = turns.stop()
    assert.ok(
      outcomes.every(({ status, ...rest }) => {
        const reason = (rest as { reason?: unknown }).reason
        return status === 'rejected' && reason instanceof PortError && reason.code === 'timeout'
      }),
    )
    // Each wait for the lock holds this thread: a hundred waits one by one would be a hundred turns at least.
    assert.ok(turnsWaited < 20, `${turnsWaited} turns of the event loop`)
    other.exec('ROLLBACK')
    assert.deepEqual(await writer.keepHashKey(assignment), [])
  })

  it('finish what waits before they close', async t => {
    const dataFolder = tempDir(t)
    await migrateSqlite(dataFolder)
    const writer = openHashKeyWriter({ dataFolder })
    const kept = writer.keepHashKey({ projectId: 1, distinctId: 'ada', anonDistinctId: 'anon', flagKeys: ['beta'] })
    writer.close()
    assert.deepEqual(await kept, [])
  })
})

/** Turns of this thread's event loop from now on. */
function countTurns(): { stop(): number } {
  let count = 0
  let immediate = setImmediate(function turn() {
    count++
    immediate = setImmediate(turn)
  })
  return {
    stop: () => {
      clearImmediate(immediate)
      return count
    },
  }
}
