// The contract of every state for the life of flags: their calls, which the chunk store writes and the management store
// reads; which of them are stale; and the archive.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { aChange, aNewFlag } from '../support/values.ts'
import { change, commit, type OpenManagement, written } from './management-harness.ts'

export function flagLifeContract(adapter: string, open: OpenManagement): void {
  describe(`ManagementStore on ${adapter}: the life of flags`, () => {
    it('stores the latest call of each flag, in its own project only, and changes nothing else', async t => {
      const { store, chunkStore, revision } = await open(t)
      for (const [key, projectId] of Object.entries({ a: 1, b: 1, c: 2 }))
        await store.createFlag(aNewFlag({ key, projectId }), aChange())
      const before = { flag: await store.findFlag(1, 'a'), revision: await revision() }
      const called = (calls: Record<string, number>, projectId = 1) =>
        commit(chunkStore, {
          calledFlags: Object.entries(calls).map(([flagKey, calledAtMs]) => ({ projectId, flagKey, calledAtMs })),
        })
      const calls = async (projectId = 1) =>
        (await store.listLastCalls(projectId, [1, 2, 3, 99]))
          .map(({ flagId, calledAtMs }) => `${flagId}: ${calledAtMs}`)
          .toSorted()
      assert.deepEqual(await calls(), [])
      await called({ b: 50, a: 1_790_000_000_000, c: 60, nobody: 70, '': 71, __proto__x: 72 })
      assert.deepEqual(await calls(), ['1: 1790000000000', '2: 50'])
      assert.deepEqual(await calls(2), [])
      await called({ a: 5, b: 51 })
      await called({ a: 5, b: 51 })
      assert.deepEqual(await calls(), ['1: 1790000000000', '2: 51'])
      await called({ c: 6, a: 1_790_000_000_001 }, 2)
      assert.deepEqual([await calls(), await calls(2)], [['1: 1790000000000', '2: 51'], ['3: 6']])
      assert.deepEqual(await store.listLastCalls(1, []), [])
      assert.deepEqual({ flag: await store.findFlag(1, 'a'), revision: await revision() }, before)
      assert.equal((await store.listFlagVersions(1, 1, { limit: 9, offset: 0 })).count, 1)
    })

    it('preserves a flag’s last call when the flag changes, but a new flag with the same key has no last call', async t => {
      const { store, chunkStore } = await open(t)
      const called = (calledAtMs: number, flagKey = 'beta') =>
        commit(chunkStore, { calledFlags: [{ projectId: 1, flagKey, calledAtMs }] })
      const call = async (flagId: number) => (await store.listLastCalls(1, [flagId]))[0]?.calledAtMs
      await store.createFlag(aNewFlag(), aChange())
      await called(10)
      await change(store, 1, 1, { name: 'new', key: 'gamma' })
      assert.equal(await call(1), 10)
      await called(11)
      assert.equal(await call(1), 10, 'a call by the former key')
      await called(12, 'gamma')
      await change(store, 1, 1, { deleted: true })
      await called(13, 'gamma')
      assert.equal(await call(1), 12, 'a call of a deleted flag')
      await store.createFlag(aNewFlag({ key: 'gamma' }), aChange())
      assert.equal(await call(2), undefined)
      await called(9, 'gamma')
      assert.deepEqual([await call(1), await call(2)], [12, 9])
    })

    it('accepts more keys than fit into one SQL list', async t => {
      const { store, chunkStore } = await open(t)
      await store.createFlag(aNewFlag(), aChange())
      const calledFlags = Array.from({ length: 2_500 }, (_, index) => ({
        projectId: 1,
        flagKey: index === 2_400 ? 'beta' : `key-${index}`,
        calledAtMs: index,
      }))
      await commit(chunkStore, { calledFlags })
      assert.deepEqual(await store.listLastCalls(1, [1]), [{ flagId: 1, calledAtMs: 2_400 }])
    })

    it('keeps an archived flag inactive on every write, and out of lists by default', async t => {
      const { store } = await open(t)
      assert.equal(written(await store.createFlag(aNewFlag({ key: 'made', archived: true }), aChange())).active, false)
      await store.createFlag(aNewFlag({ key: 'kept' }), aChange())
      await store.createFlag(aNewFlag({ key: 'filed' }), aChange())
      const filed = written(await change(store, 1, 3, { archived: true }))
      assert.deepEqual([filed.archived, filed.active, filed.version], [true, false, 2])
      assert.equal(written(await change(store, 1, 3, { active: true, name: 'Filed' })).active, false)
      assert.deepEqual(await store.findFlag(1, 'filed'), (await store.findFlagVersion(1, 3, 3))?.flag)
      const keys = async (query: Partial<Parameters<typeof store.listFlags>[1]>) => {
        const { count, results } = await store.listFlags(1, { limit: 9, offset: 0, ...query })
        return `${count}: ${results.map(({ key }) => key).join(' ')}`
      }
      assert.equal(await keys({}), '1: kept')
      assert.equal(await keys({ archived: true }), '2: filed made')
      assert.equal(await keys({ archived: 'all' }), '3: filed kept made')
      assert.equal(await keys({ archived: 'all', active: false, limit: 1 }), '2: filed')
      assert.equal(await keys({ archived: 'all', active: true }), '1: kept')
    })

    it('reports when the conditions of a flag last changed', async t => {
      const { store } = await open(t)
      const since = async () => (await store.findFlag(1, '1'))?.conditionsSinceMs
      await store.createFlag(aNewFlag({}), aChange('Test', 5))
      assert.equal(await since(), 5)
      await change(store, 1, 1, { name: 'new', filters: aNewFlag().filters, active: true, key: 'other' })
      assert.equal(await since(), 5)
      await change(store, 1, 1, { filters: { groups: [] } })
      assert.equal(await since(), 9)
    })

    it('finds stale flags, and reads them in batches, however large they are', async t => {
      const { store, chunkStore } = await open(t)
      const large = { groups: [{ properties: [], rollout_percentage: 100 }], note: 'x'.repeat(700_000) }
      const some = { groups: [{ properties: [], rollout_percentage: 40 }], note: 'x'.repeat(700_000) }
      const createdAtMs = 0
      for (const key of ['a', 'b', 'c'])
        await store.createFlag(aNewFlag({ key, filters: large }), aChange('Test', createdAtMs))
      for (const key of ['d', 'e'])
        await store.createFlag(aNewFlag({ key, filters: some }), aChange('Test', createdAtMs))
      await store.createFlag(aNewFlag({ key: 'off', active: false }), aChange('Test', createdAtMs))
      await store.createFlag(aNewFlag({ key: 'filed', archived: true }), aChange('Test', createdAtMs))
      await store.createFlag(aNewFlag({ key: 'gone' }), aChange('Test', createdAtMs))
      await store.updateFlag(1, 8, { deleted: true }, aChange('Test', 0))
      await store.createFlag(aNewFlag({ key: 'new' }), aChange('Test', 2))
      await store.createFlag(aNewFlag({ key: 'elsewhere', projectId: 2 }), aChange('Test', createdAtMs))
      await commit(chunkStore, {
        calledFlags: Object.entries({ b: 2, e: 1, off: 1 }).map(([flagKey, calledAtMs]) => {
          return { projectId: 1, flagKey, calledAtMs }
        }),
      })
      const nowMs = 1 + 30 * 86_400_000
      const found = (search: { search?: string; staleAtMs?: number } = {}) =>
        store.searchFlags(1, { traits: {}, staleAtMs: nowMs, ...search })
      const read = async (ids: readonly number[]) => (await store.listFittingFlags(1, ids)).map(({ key }) => key)
      const ids = await found()
      assert.equal(ids.length, 3)
      // They are cut where they are too large together, as in every list.
      assert.deepEqual(await read(ids), ['e'])
      assert.deepEqual(await read(ids.slice(1)), ['c'])
      assert.deepEqual(await read(ids.slice(2)), ['a'])
      assert.deepEqual(await read([]), [])
      assert.deepEqual(await read([11]), [], 'of another project')
      assert.deepEqual(await read(await found({ search: 'C' })), ['c'])
      assert.deepEqual(await found({ staleAtMs: nowMs - 2 }), [])
      assert.equal((await found({ staleAtMs: nowMs + 1 })).length, 5)
    })
  })
}
