// The contract of lists that clients can make as long as they like: a page is cut before it is read, the next page
// begins where it ends, and a person with very many ids is shown with some of them and a separate list of all.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { personDistinctIdCountMax } from '#core/processing/person-merge.ts'
import { aChange, aGroup, aMapping, aNewProject, aPerson, created } from '../support/values.ts'
import { commit, type ManagementHarness, type OpenManagement, written } from './management-harness.ts'

const pageBytesMax = 1024 * 1024
const kib600 = 'x'.repeat(600 * 1024)

export function boundedListsContract(adapter: string, open: OpenManagement): void {
  describe(`ManagementStore on ${adapter}: lists of rows that may be large`, () => {
    it('ends a page of large persons early, and the next page begins where it ended', async t => {
      const { store, chunkStore } = await open(t)
      // Some are large, one alone is larger than a page, and several small ones stand between them.
      const texts = ['', kib600, '', kib600, kib600, kib600 + kib600, '', '']
      const persons = texts.map((text, index) => aPerson({ uuid: `u-${index}`, properties: { text } }))
      await commit(chunkStore, { persons: persons.map(created) })
      const seen: string[] = []
      const lengths: number[] = []
      for (let offset = 0; ; ) {
        const { results, hasMore } = await store.listPersons(1, { limit: 1_000, offset })
        const bytes = results.reduce((sum, { propertiesJson }) => sum + propertiesJson.length, 0)
        assert.ok(bytes <= pageBytesMax || results.length === 1, `${bytes} bytes of ${results.length} persons`)
        seen.push(...results.map(({ uuid }) => uuid))
        lengths.push(results.length)
        offset += results.length
        if (!hasMore) break
      }
      assert.deepEqual(seen, persons.map(({ uuid }) => uuid).toReversed())
      assert.ok(lengths.length > 3 && lengths.some(length => length > 1), `pages of ${lengths}`)
    })

    it('ends a page of large groups early, and the next page begins where it ended', async t => {
      const { store, chunkStore } = await open(t)
      const texts = [kib600, '', kib600, kib600 + kib600, '']
      const groups = texts.map((text, index) =>
        aGroup({ key: `k${index}`, createdAtMs: 1_000 + Math.floor(index / 2), properties: { text } }),
      )
      await commit(chunkStore, { groups: groups.map(created) })
      const seen: string[] = []
      for (let offset = 0; ; ) {
        const { results, hasMore } = await store.listGroups(1, { typeIndex: 0, limit: 1_000, offset })
        const bytes = results.reduce((sum, { propertiesJson }) => sum + propertiesJson.length, 0)
        assert.ok(bytes <= pageBytesMax || results.length === 1, `${bytes} bytes of ${results.length} groups`)
        seen.push(...results.map(({ key }) => key))
        offset += results.length
        if (!hasMore) break
      }
      assert.deepEqual(seen, ['k4', 'k2', 'k3', 'k0', 'k1'])
    })

    it('ends a page of large projects early, all or selected ones, and the next page begins where it ended', async t => {
      const { store } = await open(t)
      const texts = [kib600, '', kib600, kib600 + kib600, '', '']
      for (const [index, text] of texts.entries()) {
        const project = aNewProject({ name: `p${index}`, apiToken: `phc_${index}`, clientSettings: { text } })
        written(await store.createProject(project, aChange()))
      }
      written(await store.deleteProject(6, aChange()))
      const namesOf = async (ids?: readonly number[]) => {
        const seen: string[] = []
        for (let offset = 0; ; ) {
          const { count, results } = await store.listProjects({ limit: 1_000, offset, ...(ids && { ids }) })
          const bytes = results.reduce((sum, { clientSettings }) => sum + JSON.stringify(clientSettings).length, 0)
          assert.ok(bytes <= pageBytesMax || results.length === 1, `${bytes} bytes of ${results.length} projects`)
          seen.push(...results.map(({ name }) => name))
          offset += results.length
          if (offset >= count) return seen
        }
      }
      assert.deepEqual(await namesOf(), ['p0', 'p1', 'p2', 'p3', 'p4'])
      assert.deepEqual(await namesOf([5, 3, 6, 77, 4]), ['p2', 'p3', 'p4'])
      assert.deepEqual(await store.listProjects({ limit: 9, offset: 0, ids: [] }), { count: 0, results: [] })
    })

    it('ends a page of large personal keys early, and finds a key by its id', async t => {
      const { store } = await open(t)
      const labels = [kib600, 'b', kib600, kib600 + kib600, 'e']
      const key = { scopes: ['*'], scopedProjectIds: [], lastUsedAtMs: null }
      for (const [index, label] of labels.entries())
        await store.createPersonalKey(
          { ...key, id: `k${index}`, label, secretHash: `hash-${index}` },
          aChange('Test', index),
        )
      const seen: string[] = []
      for (let offset = 0; ; ) {
        const { count, results } = await store.listPersonalKeys({ limit: 1_000, offset })
        assert.equal(count, 5)
        const bytes = results.reduce((sum, { label }) => sum + label.length, 0)
        assert.ok(bytes <= pageBytesMax || results.length === 1, `${bytes} bytes of ${results.length} keys`)
        seen.push(...results.map(({ id }) => id))
        offset += results.length
        if (offset >= count) break
      }
      assert.deepEqual(seen, ['k0', 'k1', 'k2', 'k3', 'k4'])
      assert.equal((await store.listPersonalKeys({ limit: 2, offset: 3 })).results.length, 1)
      assert.deepEqual((await store.findPersonalKey('k1'))?.label, 'b')
      assert.equal(await store.findPersonalKey('hash-1'), null)
    })

    it('shows only some ids of a person with many, requested ids first, and lists all of them in pages', async t => {
      const harness = await open(t)
      const { store } = harness
      const made = Array.from({ length: 1_500 }, (_, index) => uuidLike(index))
      const given = ['ada@example.com', 'zoe', 'Ünal\ufffd']
      await addPerson(harness, 'u-many', [...made, ...given])
      const view = (await store.findPersonByUuid(1, 'u-many'))!
      assert.equal(view.distinctIdCount, 1_503)
      const shown = view.distinctIds.map(({ distinctId }) => distinctId)
      assert.equal(shown.length, 100)
      assert.deepEqual(shown.slice(0, 4), [...given, uuidLike(0)])
      assert.deepEqual((await store.listPersons(1, { limit: 9, offset: 0 })).results, [view])

      const listed: string[] = []
      for (let after: string | undefined; ; after = listed.at(-1)) {
        const page = await store.listDistinctIds(1, 'u-many', { limit: 700, ...(after === undefined ? {} : { after }) })
        assert.equal(page?.count, 1_503)
        assert.ok(page.results.length <= 700)
        listed.push(...page.results.map(({ distinctId }) => distinctId))
        if (!page.hasMore) break
      }
      assert.deepEqual(listed, [...made, ...given].toSorted(byBytes))
      assert.equal(await store.listDistinctIds(2, 'u-many', { limit: 9 }), null)
      assert.equal(await store.listDistinctIds(1, 'u-nobody', { limit: 9 }), null)
    })

    it('applies the limit of ids also to persons that were stored before the limit existed', async t => {
      const harness = await open(t)
      const { store } = harness
      const ids = Array.from({ length: personDistinctIdCountMax + 500 }, (_, index) => uuidLike(index))
      await addPerson(harness, 'u-giant', ids)
      await addPerson(harness, 'u-other', ['other'])
      const { results, hasMore } = await store.listPersons(1, { limit: 9, offset: 0 })
      assert.equal(hasMore, false)
      assert.deepEqual(
        results.map(({ uuid, distinctIdCount, distinctIds }) => [uuid, distinctIdCount, distinctIds.length]),
        [
          ['u-other', 1, 1],
          ['u-giant', personDistinctIdCountMax + 1, 100],
        ],
      )
      assert.equal((await store.listDistinctIds(1, 'u-giant', { limit: 1 }))?.count, ids.length)
    })

    it('counts distinct ids towards the size of a page', async t => {
      const harness = await open(t)
      const { store } = harness
      // 300 ids of 400 characters each: nine such persons are more than a page.
      for (let person = 0; person < 10; person++)
        await addPerson(
          harness,
          `u-${person}`,
          Array.from({ length: 300 }, (_, index) => `${person} ${index} `.padEnd(400, 'i')),
        )
      const first = await store.listPersons(1, { limit: 100, offset: 0 })
      assert.ok(first.hasMore && first.results.length > 1, `${first.results.length} persons`)
      const second = await store.listPersons(1, { limit: 100, offset: first.results.length })
      assert.equal(first.results.length + second.results.length, 10)
      assert.equal(second.hasMore, false)
      const below = await store.listPersons(1, { limit: 100, offset: 0, belowId: first.results.at(-1)!.id })
      assert.deepEqual(below, second)
    })
  })
}

async function addPerson({ chunkStore }: ManagementHarness, uuid: string, ids: readonly string[]): Promise<void> {
  const person = aPerson({ uuid })
  await commit(chunkStore, { persons: [created(person)], mappings: ids.map(id => created(aMapping(person, id))) })
}

function uuidLike(index: number): string {
  return `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`
}

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
