// The contract of every management store for flags: ids are never reused, a key has one holder, every version is kept
// whole.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { flagOverheadBytes, projectFlagsBytesMax } from '#core/flags/definitions/flag.ts'
import { type JsonObject, parseJson } from '#core/json.ts'
import type { FlagPatch, NewFlag } from '#ports/state/flag-store.ts'
import { aChange, aNewFlag } from '../support/values.ts'
import { change, type OpenManagement, written } from './management-harness.ts'

export function flagStoreContract(adapter: string, open: OpenManagement): void {
  describe(`ManagementStore on ${adapter}: flags`, () => {
    it('assigns ids from 1 up across all projects, never reuses an id, and leaves no gap for a refused flag', async t => {
      const { store } = await open(t)
      assert.equal(written(await store.createFlag(aNewFlag({ key: 'a' }), aChange())).id, 1)
      assert.deepEqual(await store.createFlag(aNewFlag({ key: 'a' }), aChange()), { ok: false, error: 'key_taken' })
      assert.equal(written(await store.createFlag(aNewFlag({ key: 'a', projectId: 2 }), aChange())).id, 2)
      await change(store, 2, 2, { deleted: true })
      assert.equal(written(await store.createFlag(aNewFlag({ key: 'A' }), aChange())).id, 3)
    })

    it('preserves every field, any key in filters, and number literals', async t => {
      const { store } = await open(t)
      const text = '{"__proto__":{"x":1},"constructor":[1.0,1e2,12345678901234567890],"groups":[]}'
      // Written out, so that a new field is missing here until it is checked too.
      const input: NewFlag = {
        projectId: 1,
        key: '__proto__',
        filters: parseJson(text) as JsonObject,
        name: 'all of it',
        active: false,
        archived: true,
        ensureExperienceContinuity: true,
        bucketingIdentifier: 'device_id',
        evaluationRuntime: 'server',
        evaluationContexts: ['docs', 'app'],
        hasEncryptedPayloads: true,
        isRemoteConfiguration: true,
        tags: ['a', 'b'],
      }
      const flag = written(await store.createFlag(input, aChange('ci', 7)))
      assert.equal(JSON.stringify(flag.filters), text)
      const { filters, ...rest } = flag
      const { filters: _, ...inputRest } = input
      assert.deepEqual(rest, {
        ...inputRest,
        id: 1,
        version: 1,
        deleted: false,
        hasExperiment: false,
        createdAtMs: 7,
        updatedAtMs: 7,
        conditionsSinceMs: 7,
        createdBy: aChange('ci').by,
      })
      for (const idOrKey of ['1', '__proto__']) {
        const found = await store.findFlag(1, idOrKey)
        assert.equal(JSON.stringify(found), JSON.stringify({ ...found, filters }))
      }
      const version = await store.findFlagVersion(1, 1, 1)
      assert.equal(JSON.stringify(version?.flag.filters), text)
    })

    it('finds a flag by id first, otherwise by key, but only in its own project', async t => {
      const { store } = await open(t)
      await store.createFlag(aNewFlag({ key: '2' }), aChange())
      await store.createFlag(aNewFlag({ key: 'beta' }), aChange())
      await store.createFlag(aNewFlag({ key: '99' }), aChange())
      assert.equal((await store.findFlag(1, '2'))?.key, 'beta')
      assert.equal((await store.findFlag(1, '99'))?.id, 3)
      assert.equal((await store.findFlag(1, 'beta'))?.id, 2)
      assert.equal(await store.findFlag(1, 'BETA'), null)
      assert.equal(await store.findFlag(1, '1e0'), null)
      assert.equal(await store.findFlag(2, '1'), null)
      assert.equal(await store.findFlag(1, '99999999999999999999'), null)
      const idsOf = async (projectId: number, ids: number[]) =>
        (await store.listFlagsById(projectId, ids)).map(({ id }) => id).sort()
      assert.deepEqual(await idsOf(1, [3, 1, 9, ...Array.from({ length: 1_200 }, (_, index) => 10 + index)]), [1, 3])
      assert.deepEqual([await idsOf(2, [1]), await idsOf(1, [])], [[], []])
      assert.equal((await store.findFlagByKey(1, '2'))?.id, 1)
      await store.updateFlag(1, 1, { deleted: true }, aChange('Test', 9))
      assert.equal(await store.findFlagByKey(1, '2'), null)
      assert.deepEqual(await idsOf(1, [1]), [1])
      assert.equal(await store.findFlagByKey(2, 'beta'), null)
    })

    it('increments the version with each change, and stores every version completely', async t => {
      const { store } = await open(t)
      const first = written(await store.createFlag(aNewFlag({}), aChange('ada')))
      const second = written(await change(store, 1, 1, { name: 'two' }, { changedBy: 'bob' }))
      assert.deepEqual(second, { ...first, name: 'two', version: 2, updatedAtMs: 9 })
      const third = written(await change(store, 1, 1, { filters: { groups: [] }, active: false }))
      const { count, results } = await store.listFlagVersions(1, 1, { limit: 2, offset: 0 })
      assert.equal(count, 3)
      assert.deepEqual(results, [
        { flagId: 1, version: 3, flag: third, changedBy: aChange().by, createdAtMs: 9 },
        { flagId: 1, version: 2, flag: second, changedBy: aChange('bob').by, createdAtMs: 9 },
      ])
      assert.deepEqual((await store.findFlagVersion(1, 1, 1))?.flag, first)
      assert.deepEqual((await store.findFlagVersion(1, 1, 1))?.changedBy, aChange('ada').by)
      assert.equal(await store.findFlagVersion(1, 1, 4), null)
      assert.equal(await store.findFlagVersion(2, 1, 1), null)
    })

    it('refuses a flag that would make the flags of its project too large, and changes that add bytes', async t => {
      const { store } = await open(t)
      const create = (key: string, bytes: number, projectId = 1) =>
        store.createFlag(aNewFlag({ key, projectId, filters: { note: 'x'.repeat(bytes) } }), aChange())
      const tooLarge = { ok: false, error: 'flags_too_large' }
      written(await create('large', projectFlagsBytesMax - 16 * flagOverheadBytes))
      assert.deepEqual(await create('small', 16 * flagOverheadBytes), tooLarge)
      const { id } = written(await create('small', 8 * flagOverheadBytes))
      written(await create('small', 16 * flagOverheadBytes, 2))
      const patch = (fields: FlagPatch) => store.updateFlag(1, id, fields, aChange())
      assert.deepEqual(await patch({ filters: { note: 'x'.repeat(16 * flagOverheadBytes) } }), tooLarge)
      written(await patch({ filters: { note: 'y'.repeat(8 * flagOverheadBytes) }, active: false }))
      written(await patch({ deleted: true }))
      written(await create('other', 8 * flagOverheadBytes))
      assert.deepEqual(await patch({ deleted: false }), tooLarge)
    })

    it('ends pages of large flags and versions early, since a front loads a page at once, but never empty', async t => {
      const { store } = await open(t)
      const filters = { groups: [], note: 'x'.repeat(700_000) }
      for (const key of ['a', 'b', 'c']) await store.createFlag(aNewFlag({ key, filters }), aChange())
      await change(store, 1, 3, { name: 'again' })
      await store.createFlag(aNewFlag({ key: 'small' }), aChange())
      const page = { limit: 10, offset: 0 }
      const pages = {
        flags: async (offset: number) => store.listFlags(1, { ...page, offset }),
        versions: async (offset: number) => store.listFlagVersions(1, 3, { ...page, offset }),
        projectVersions: async (offset: number) => store.listProjectFlagVersions(1, { ...page, offset }),
      }
      const lengths: Record<string, number[]> = {}
      for (const [name, read] of Object.entries(pages)) {
        const found: number[] = []
        for (let offset = 0; ; offset += found.at(-1)!) {
          const { count, results } = await read(offset)
          if (offset === count) break
          found.push(results.length)
        }
        lengths[name] = found
      }
      assert.deepEqual(lengths.flags, [2, 1, 1])
      assert.deepEqual(lengths.versions, [1, 1])
      assert.equal(
        lengths.projectVersions!.reduce((sum, length) => sum + length, 0),
        5,
      )
      assert.ok(Math.max(...lengths.projectVersions!) <= 2)
    })

    it('refuses a change made from an older version, and returns the current flag', async t => {
      const { store, revision } = await open(t)
      await store.createFlag(aNewFlag(), aChange())
      const current = written(await change(store, 1, 1, { name: 'two' }, { expectedVersion: 1 }))
      const before = await revision()
      assert.deepEqual(await change(store, 1, 1, { name: 'late' }, { expectedVersion: 1 }), {
        ok: false,
        error: { staleVersion: current },
      })
      assert.deepEqual(await store.findFlag(1, '1'), current)
      assert.equal((await store.listFlagVersions(1, 1, { limit: 9, offset: 0 })).count, 2)
      assert.equal(await revision(), before)
    })

    it('accepts only one of two changes of the same version', async t => {
      const { store } = await open(t)
      await store.createFlag(aNewFlag(), aChange())
      const both = await Promise.all(
        ['left', 'right'].map(name => change(store, 1, 1, { name }, { expectedVersion: 1 })),
      )
      assert.equal(both.filter(result => result.ok).length, 1)
      assert.equal((await store.findFlag(1, '1'))?.version, 2)
    })

    it('frees the key of a deleted flag, and brings the flag back only while the key is free', async t => {
      const { store } = await open(t)
      await store.createFlag(aNewFlag(), aChange())
      assert.equal(written(await change(store, 1, 1, { deleted: true })).deleted, true)
      assert.equal(await store.findFlag(1, 'beta'), null)
      assert.equal((await store.findFlag(1, '1'))?.deleted, true)
      assert.deepEqual(await change(store, 1, 1, { name: 'x' }), { ok: false, error: 'not_found' })
      assert.equal(written(await store.createFlag(aNewFlag(), aChange())).id, 2)
      assert.deepEqual(await change(store, 1, 1, { deleted: false }), { ok: false, error: 'key_taken' })
      await change(store, 1, 2, { deleted: true })
      assert.equal(written(await change(store, 1, 1, { deleted: false })).version, 3)
    })

    it('refuses a new key that another flag has, and a change of an unknown flag', async t => {
      const { store } = await open(t)
      await store.createFlag(aNewFlag({ key: 'a' }), aChange())
      await store.createFlag(aNewFlag({ key: 'b' }), aChange())
      assert.deepEqual(await change(store, 1, 2, { key: 'a' }), { ok: false, error: 'key_taken' })
      assert.equal(written(await change(store, 1, 2, { key: 'c' })).key, 'c')
      assert.deepEqual(await change(store, 1, 3, { key: 'd' }), { ok: false, error: 'not_found' })
      assert.deepEqual(await change(store, 2, 1, { key: 'd' }), { ok: false, error: 'not_found' })
    })

    it('lists flags that are not deleted, newest first, by page, text and state', async t => {
      const { store } = await open(t)
      for (const key of ['one', 'TWO_2', 'three'])
        await store.createFlag(aNewFlag({ key, active: key !== 'three' }), aChange())
      await store.createFlag(aNewFlag({ key: 'gone' }), aChange())
      await store.createFlag(aNewFlag({ key: 'other', projectId: 2 }), aChange())
      await change(store, 1, 4, { deleted: true })
      await change(store, 1, 1, { name: '100 % Sure Über' })
      const keys = async (query: { search?: string; active?: boolean; limit?: number; offset?: number }) => {
        const page = await store.listFlags(1, { limit: 10, offset: 0, ...query })
        return `${page.count}: ${page.results.map(flag => flag.key).join(' ')}`
      }
      assert.equal(await keys({}), '3: three TWO_2 one')
      assert.equal(await keys({ limit: 1, offset: 1 }), '3: TWO_2')
      assert.equal(await keys({ active: false }), '1: three')
      assert.equal(await keys({ search: 'two_' }), '1: TWO_2')
      assert.equal(await keys({ search: '%' }), '1: one')
      assert.equal(await keys({ search: 'sure', active: true }), '1: one')
      assert.equal(await keys({ search: 'Über' }), '1: one')
    })
  })
}
