import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openStateForWriting } from '#adapters/sqlite/open-sqlite.ts'
import { openSqliteChunkStore } from '#adapters/sqlite/sqlite-chunk-store.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { openMemoryState, openSqliteState, writeNewState } from '../support/state.ts'
import { tempDir } from '../support/temp-dir.ts'
import { chunkChanges } from '../support/values.ts'
import { chunkStoreContract } from './chunk-store.contract.ts'
import { cookielessVisitorsContract } from './cookieless-visitors.contract.ts'

chunkStoreContract('memory', openMemoryState)
chunkStoreContract('sqlite', openSqliteState)
cookielessVisitorsContract('memory', openMemoryState)
cookielessVisitorsContract('sqlite', openSqliteState)

describe('ChunkStore on sqlite', () => {
  it('fails as `timeout` while another process holds the lock, writes nothing, and works afterwards', async t => {
    const dataFolder = tempDir(t)
    await writeNewState(dataFolder)
    const store = openSqliteChunkStore({ dataFolder, busyTimeoutMs: 20 })
    const other = openStateForWriting(dataFolder, 0)
    t.after(async () => {
      other.close()
      await store.close()
    })
    await store.claimPosition('main', 'w1')
    const position = { stream: 'main', ownerId: 'w1', offset: 5, committedAtMs: 0 } as const
    other.exec('BEGIN IMMEDIATE')
    await assert.rejects(store.commitChunk(chunkChanges(), position), { code: 'timeout', retryable: true })
    await store.loadChunk({ distinctIds: [{ projectId: 1, distinctId: 'ada' }], groups: [], projectIds: [1] }, 1_000)
    other.exec('ROLLBACK')
    assert.deepEqual(await store.claimPosition('main', 'w1'), { offset: 0 })
    assert.equal(await store.commitChunk(chunkChanges(), position), 'committed')
  })

  it('waits for a transaction of its own thread without blocking the thread', async t => {
    const dataFolder = tempDir(t)
    await writeNewState(dataFolder)
    const store = openSqliteChunkStore({ dataFolder, busyTimeoutMs: 1_000 })
    const management = openSqliteManagementStore({ dataFolder, access: 'write', busyTimeoutMs: 1_000 })
    t.after(async () => {
      await store.close()
      await management.close()
    })
    await store.claimPosition('main', 'w1')
    // The transaction proceeds in microtasks: each round meets it one step later.
    for (let offset = 1; offset <= 40; offset++) {
      const released = management.releaseProjects('main', 'w1', offset - 1)
      for (let passed = 0; passed < offset; passed++) await null
      const position = { stream: 'main', ownerId: 'w1', offset, committedAtMs: 0 } as const
      assert.equal(await store.commitChunk(chunkChanges(), position), 'committed')
      assert.equal(await released, false)
    }
  })

  it('counts every warning of a day and stores twenty of them, or a thousand for merges', async t => {
    const { chunkStore: store, management } = await openSqliteState(t)
    await store.claimPosition('main', 'w1')
    const dayMs = 86_400_000
    const warning = (index: number, timestampMs: number) => ({
      projectId: 1,
      type: 'invalid_alias',
      details: { distinctId: `id-${index}` },
      timestampMs,
    })
    const position = { stream: 'main', ownerId: 'w1', offset: 5, committedAtMs: 0 } as const
    for (const [chunk, length] of [15, 15, 2].entries()) {
      const warnings = Array.from({ length }, (_, index) => warning(index, 5 * dayMs + chunk * 100 + index))
      await store.commitChunk(chunkChanges({ warnings }), position)
    }
    await store.commitChunk(chunkChanges({ warnings: [warning(99, 6 * dayMs)] }), position)
    const all = await management.listWarnings(1, { sinceMs: 5 * dayMs, sampleCountMax: 100 })
    assert.equal(all.length, 1)
    assert.deepEqual([all[0]!.type, all[0]!.count, all[0]!.lastSeenMs], ['invalid_alias', 33, 6 * dayMs])
    assert.equal(all[0]!.warnings.length, 21)
    assert.deepEqual(all[0]!.warnings[0], { timestampMs: 6 * dayMs, details: { distinctId: 'id-99' } })
    const merges = Array.from({ length: 1_005 }, (_, index) => ({
      ...warning(index, 4 * dayMs + index),
      type: 'cannot_merge_already_identified',
    }))
    await store.commitChunk(chunkChanges({ warnings: merges }), position)
    const ofMerges = (await management.listWarnings(1, { sinceMs: 0, sampleCountMax: 2_000 }))[1]!
    assert.deepEqual([ofMerges.count, ofMerges.warnings.length], [1_005, 1_000])
    const few = await management.listWarnings(1, { sinceMs: 6 * dayMs, sampleCountMax: 2 })
    assert.deepEqual([few[0]!.count, few[0]!.warnings.length], [1, 1])
    await management.deleteWarningsOutside('1970-01-07', '1970-01-07')
    const kept = await management.listWarnings(1, { sinceMs: 0, sampleCountMax: 100 })
    assert.deepEqual([kept[0]!.count, kept[0]!.warnings.length], [1, 1])
  })
})
