import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openHashKeyWriter } from '#adapters/sqlite/hash-key-writer.ts'
import { openStateForWriting } from '#adapters/sqlite/open-sqlite.ts'
import { openSqliteState, writeNewState } from '../support/state.ts'
import { tempDir } from '../support/temp-dir.ts'
import { hashKeyOverridesContract } from './hash-key-overrides.contract.ts'

hashKeyOverridesContract('sqlite', openSqliteState)

describe('hash key overrides on sqlite', () => {
  it('fail together as `timeout` after a quarter of a second while another process writes', async t => {
    const dataFolder = tempDir(t)
    await writeNewState(dataFolder)
    const writer = openHashKeyWriter({ dataFolder })
    const other = openStateForWriting(dataFolder, 0)
    t.after(() => {
      writer.close()
      other.close()
    })
    other.exec('BEGIN IMMEDIATE')
    const assignment = { projectId: 1, distinctId: 'ada', anonDistinctId: 'anon', flagKeys: ['beta'] }
    // Calls that fail together settle before the thread does anything else. If each waited for the lock by itself, the
    // waits would lie in between.
    let waits = 0
    let isCounted = false
    const counted = (kept: Promise<unknown>) =>
      kept.finally(() => {
        if (!isCounted) waits++
        isCounted = true
        process.nextTick(() => {
          isCounted = false
        })
      })
    const outcomes = await Promise.allSettled(
      Array.from({ length: 100 }, () => counted(writer.addMissingHashKeys(assignment))),
    )
    assert.ok(outcomes.every(each => each.status === 'rejected' && each.reason.code === 'timeout'))
    assert.equal(waits, 1)
    other.exec('ROLLBACK')
    assert.deepEqual(await writer.addMissingHashKeys(assignment), [])
  })

  it('finish waiting calls before they close', async t => {
    const dataFolder = tempDir(t)
    await writeNewState(dataFolder)
    const writer = openHashKeyWriter({ dataFolder })
    const kept = writer.addMissingHashKeys({
      projectId: 1,
      distinctId: 'ada',
      anonDistinctId: 'anon',
      flagKeys: ['beta'],
    })
    writer.close()
    assert.deepEqual(await kept, [])
  })
})
