// The contract of every management store for cohorts: versions, members by any of their ids, and writes that require
// that the project's definitions have not changed since they were checked.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, parseJson } from '#core/json.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { aChange, aMapping, aNewCohort, aNewFlag, aNewProject, aPerson, created } from '../support/values.ts'
import { commit, type ManagementHarness, type OpenManagement, written } from './management-harness.ts'

/** Uuids ascend with the numbers: persons that are written together may get their ids in the order of their uuids. */
const uuidOf = (index: number) => `abcdef00-0000-5000-8000-${String(index).padStart(12, '0')}`

/** Makes persons 1 to `count` of project 1 with the distinct ids `user-1` and so on, and one person of project 2. */
async function addPersons({ chunkStore }: ManagementHarness, count: number): Promise<void> {
  const persons = Array.from({ length: count }, (_, index) => aPerson({ uuid: uuidOf(index + 1) }))
  const other = aPerson({ projectId: 2, uuid: uuidOf(99) })
  await commit(chunkStore, {
    persons: [...persons, other].map(created),
    mappings: [
      ...persons.map((person, index) => created(aMapping(person, `user-${index + 1}`))),
      created(aMapping(other, 'other')),
    ],
  })
}

async function idsOf(store: ManagementStore, cohortId: number): Promise<number[]> {
  const { results } = await store.listCohortMembers(1, cohortId, { afterPersonId: 0, limit: 100 })
  return results.map(({ id }) => id)
}

export function cohortStoreContract(adapter: string, open: OpenManagement): void {
  describe(`ManagementStore on ${adapter}: cohorts`, () => {
    it('assigns ids from 1 up, preserves every field and number literals, and raises the revision', async t => {
      const { store, revision } = await open(t)
      await store.createProject(aNewProject(), aChange())
      const filters = parseJson('{"__proto__":1,"properties":{"type":"OR","values":[1.0,1e2]}}') as JsonObject
      const input = aNewCohort({ name: 'nul\0', description: 'd', filters })
      const before = await revision()
      const result = await store.createCohort(input, aChange('ci', 5), {})
      assert.ok(result.ok && result.value.revision === before + 1)
      assert.equal(await revision(), before + 1)
      const cohort = result.value.value
      assert.deepEqual(
        { ...cohort, filters: null },
        {
          ...input,
          name: 'nul\ufffd',
          filters: null,
          id: 1,
          deleted: false,
          version: 1,
          memberCount: null,
          countedAtMs: null,
          createdAtMs: 5,
          updatedAtMs: 5,
          createdBy: aChange('ci').by,
        },
      )
      assert.equal(JSON.stringify((await store.findCohort(1, 1))?.filters), JSON.stringify(filters))
      assert.equal(await store.findCohort(2, 1), null)
      assert.equal(written(await store.createCohort(aNewCohort({ isStatic: true }), aChange(), {})).memberCount, 0)
    })

    it('increments the version with each change, refuses a stale version, and restores deleted cohorts', async t => {
      const { store } = await open(t)
      const first = written(await store.createCohort(aNewCohort(), aChange(), {}))
      await store.saveCohortCount(first, 7, 6)
      const second = written(
        await store.updateCohort(1, 1, { name: 'two' }, aChange('Test', 9), { expectedVersion: 1 }),
      )
      assert.deepEqual(second, { ...first, name: 'two', version: 2, memberCount: 7, countedAtMs: 6, updatedAtMs: 9 })
      const stale = await store.updateCohort(1, 1, { name: 'x' }, aChange('Test', 9), { expectedVersion: 1 })
      assert.deepEqual(stale, { ok: false, error: { staleVersion: second } })
      const notFound = { ok: false, error: 'not_found' }
      assert.deepEqual(await store.updateCohort(2, 1, {}, aChange('Test', 9), {}), notFound)
      written(await store.updateCohort(1, 1, { deleted: true }, aChange('Test', 9), {}))
      assert.deepEqual(await store.updateCohort(1, 1, { name: 'x' }, aChange('Test', 9), {}), notFound)
      assert.deepEqual(await store.listCohorts(1, { limit: 10, offset: 0 }), { count: 0, results: [] })
      assert.equal((await store.findCohort(1, 1))?.deleted, true)
      assert.equal(written(await store.updateCohort(1, 1, { deleted: false }, aChange('Test', 9), {})).version, 4)
    })

    it('clears the count when filters change, and stores no count for a stale version', async t => {
      const { store } = await open(t)
      const first = written(await store.createCohort(aNewCohort(), aChange(), {}))
      await store.saveCohortCount(first, 7, 6)
      const second = written(await store.updateCohort(1, 1, { filters: {} }, aChange('Test', 9), {}))
      assert.deepEqual([second.memberCount, second.countedAtMs], [null, null])
      await store.saveCohortCount(first, 7, 6)
      assert.deepEqual(await store.findCohort(1, 1), second)
    })

    it('lists newest first and searches text literally', async t => {
      const { store } = await open(t)
      for (const name of ['50% off', 'Beta', 'beta 2', 'other'])
        await store.createCohort(aNewCohort({ name }), aChange(), {})
      const find = async (search: string) =>
        (await store.listCohorts(1, { limit: 10, offset: 0, search })).results.map(({ name }) => name)
      assert.deepEqual(await find('BETA'), ['beta 2', 'Beta'])
      assert.deepEqual(await find('%'), ['50% off'])
      const page = await store.listCohorts(1, { limit: 1, offset: 1 })
      assert.deepEqual([page.count, page.results[0]?.name], [4, 'beta 2'])
    })

    it('adds members by any of their ids, each once, and reports ids without a person in the project', async t => {
      const harness = await open(t)
      const { store } = harness
      await addPersons(harness, 4)
      await store.createCohort(aNewCohort({ isStatic: true }), aChange(), {})
      const add = async (kind: 'person' | 'distinct_id' | 'any', ids: string[]) =>
        store.addCohortMembers(1, 1, { kind, ids }, aChange())
      assert.deepEqual(await add('distinct_id', ['user-1', 'other', 'user-1', uuidOf(2), 'x\0', 'half \ud800']), {
        ok: true,
        value: { changedCount: 1, unchangedCount: 0, unknownIds: ['other', uuidOf(2), 'x\0', 'half \ud800'] },
      })
      assert.deepEqual(
        await add('person', ['1', uuidOf(2).toUpperCase(), '5', uuidOf(99), '1e0', '99999999999999999999']),
        {
          ok: true,
          value: {
            changedCount: 1,
            unchangedCount: 1,
            unknownIds: ['5', uuidOf(99), '1e0', '99999999999999999999'],
          },
        },
      )
      assert.deepEqual(await add('any', ['user-3', uuidOf(4).toUpperCase(), 'nobody', uuidOf(7)]), {
        ok: true,
        value: { changedCount: 2, unchangedCount: 0, unknownIds: ['nobody', uuidOf(7)] },
      })
      assert.deepEqual(await idsOf(store, 1), [1, 2, 3, 4])
      assert.equal(await store.countCohortMembers(1), 4)
      const members = [uuidOf(1), uuidOf(2), uuidOf(3), uuidOf(4)]
      assert.deepEqual(await store.listCohortMemberUuids(1, 1, 9), members)
      assert.deepEqual(await store.listCohortMemberUuids(1, 1, 3), members.slice(0, 3))
      assert.deepEqual(await store.listCohortMemberUuids(2, 1, 9), [])
      const removed = await store.removeCohortMembers(1, 1, { kind: 'any', ids: ['user-2', uuidOf(2), 'x'] }, aChange())
      assert.deepEqual(removed, { ok: true, value: { changedCount: 1, unchangedCount: 0, unknownIds: ['x'] } })
      assert.deepEqual(await idsOf(store, 1), [1, 3, 4])
    })

    it('accepts the maximum number of ids per call', async t => {
      const harness = await open(t)
      await addPersons(harness, 600)
      await harness.store.createCohort(aNewCohort({ isStatic: true }), aChange(), {})
      const ids = Array.from({ length: 2_000 }, (_, index) => `user-${index + 1}`)
      const result = await harness.store.addCohortMembers(1, 1, { kind: 'any', ids }, aChange())
      assert.deepEqual(result, {
        ok: true,
        value: { changedCount: 600, unchangedCount: 0, unknownIds: ids.slice(600) },
      })
    })

    it('adds members only to static cohorts of the project', async t => {
      const harness = await open(t)
      const { store } = harness
      await addPersons(harness, 1)
      await store.createCohort(aNewCohort(), aChange(), {})
      await store.createCohort(aNewCohort({ isStatic: true, projectId: 2 }), aChange(), {})
      await store.createCohort(aNewCohort({ isStatic: true }), aChange(), {})
      await store.updateCohort(1, 3, { deleted: true }, aChange('Test', 9), {})
      for (const cohortId of [1, 2, 3, 4])
        assert.deepEqual(await store.addCohortMembers(1, cohortId, { kind: 'person', ids: ['1'] }, aChange()), {
          ok: false,
          error: 'not_static',
        })
    })

    it('pages through members and through all persons in the order of their ids, with the requested static cohorts', async t => {
      const harness = await open(t)
      const { store } = harness
      await addPersons(harness, 5)
      await store.createCohort(aNewCohort({ isStatic: true }), aChange(), {})
      await store.createCohort(aNewCohort({ isStatic: true }), aChange(), {})
      await store.addCohortMembers(1, 1, { kind: 'person', ids: ['1', '3', '5'] }, aChange())
      await store.addCohortMembers(1, 2, { kind: 'person', ids: ['1', '2'] }, aChange())
      const members = await store.listCohortMembers(1, 1, { afterPersonId: 1, limit: 1 })
      assert.deepEqual([members.results.map(({ id }) => id), members.hasMore], [[3], true])
      assert.deepEqual(
        members.results[0]?.distinctIds.map(({ distinctId }) => distinctId),
        ['user-3'],
      )
      assert.equal((await store.listCohortMembers(1, 1, { afterPersonId: 3, limit: 1 })).hasMore, false)
      assert.deepEqual(await store.listCohortMembers(2, 1, { afterPersonId: 0, limit: 9 }), {
        results: [],
        hasMore: false,
      })
      const all = await store.listPersonsAfter(1, { afterPersonId: 0, limit: 3 }, [1])
      assert.deepEqual(
        all.results.map(({ id, staticCohortIds }) => [id, staticCohortIds]),
        [
          [1, [1]],
          [2, []],
          [3, [1]],
        ],
      )
      assert.equal(all.hasMore, true)
      assert.equal((await store.listPersonsAfter(1, { afterPersonId: 3, limit: 3 }, [])).hasMore, false)
    })

    it('reads the persons who match filters, newest first, with the requested static cohorts, and counts all matches', async t => {
      const harness = await open(t)
      const { store } = harness
      await addPersons(harness, 5)
      await store.createCohort(aNewCohort({ isStatic: true }), aChange(), {})
      await store.addCohortMembers(1, 1, { kind: 'person', ids: ['2', '4'] }, aChange())
      const read = async (page: Parameters<typeof store.listPersonsBelow>[1]) => {
        const { results, hasMore } = await store.listPersonsBelow(1, page, [1])
        return [results.map(({ id, staticCohortIds }) => [id, staticCohortIds.length]), hasMore]
      }
      assert.deepEqual(await read({ limit: 2 }), [
        [
          [5, 0],
          [4, 1],
        ],
        true,
      ])
      assert.deepEqual(await read({ limit: 3, belowId: 4 }), [
        [
          [3, 0],
          [2, 1],
          [1, 0],
        ],
        false,
      ])
      assert.deepEqual(await read({ limit: 9, search: 'user-4' }), [[[4, 1]], false])
      assert.deepEqual(await read({ limit: 9, belowId: 4, distinctId: 'user-4' }), [[], false])
      assert.deepEqual(
        await Promise.all([store.countPersons(1), store.countPersons(2), store.countPersons(3)]),
        [5, 1, 0],
      )
    })

    it('omits persons whose properties lack the given texts, ignoring case, but includes properties with escapes', async t => {
      const { store, chunkStore } = await open(t)
      const texts = ['MIA@X.com', 'max@x.com', '100%_a', '100xya', '\u0001', 'x.com then mia@']
      const persons = texts.map((text, index) => aPerson({ uuid: uuidOf(index + 1), properties: { text } }))
      await commit(chunkStore, { persons: persons.map(created) })
      const read = async (...propertyParts: readonly (readonly (readonly string[])[])[]) => {
        const { results, ...page } = await store.listPersonsBelow(1, { limit: 9, propertyParts }, [])
        assert.deepEqual(page, { hasMore: false, continueAfterId: null })
        return results.map(({ id }) => id)
      }
      assert.deepEqual(await read([['m', 'a@x.com']]), [5, 1])
      assert.deepEqual(await read([['mia@x.com'], ['max@']]), [5, 2, 1])
      assert.deepEqual(await read([['100%_a']]), [5, 3])
      assert.deepEqual(await read([['x.com']], [['mia@']]), [6, 5, 1])
      const { continueAfterId } = await store.listPersonsBelow(1, { limit: 1, propertyParts: [[['x.com']]] }, [])
      assert.equal(continueAfterId, 6)
      const oldestFirst = async (afterPersonId: number, limit: number) => {
        const asked = { afterPersonId, limit, propertyParts: [[['max@'], ['100%_a']]] }
        const { results, ...page } = await store.listPersonsAfter(1, asked, [])
        return [results.map(({ id }) => id), page]
      }
      assert.deepEqual(await oldestFirst(0, 9), [[2, 3, 5], { hasMore: false, continueAfterId: null, leftOutCount: 3 }])
      assert.deepEqual(await oldestFirst(0, 2), [[2, 3], { hasMore: true, continueAfterId: 3, leftOutCount: 1 }])
      assert.deepEqual(await oldestFirst(3, 2), [[5], { hasMore: false, continueAfterId: null, leftOutCount: 2 }])
    })

    it('ends a page before it becomes large, but always returns one person', async t => {
      const { store, chunkStore } = await open(t)
      const large = Array.from({ length: 3 }, (_, index) =>
        aPerson({ uuid: uuidOf(index + 1), properties: { text: 'x'.repeat(700_000) } }),
      )
      await commit(chunkStore, { persons: large.map(created) })
      const page = await store.listPersonsAfter(1, { afterPersonId: 0, limit: 10 }, [])
      assert.deepEqual([page.results.length, page.hasMore], [1, true])
    })

    it('lists the references of flags and cohorts, except for deleted ones', async t => {
      const { store, revision } = await open(t)
      await store.createProject(aNewProject(), aChange())
      const cohortFilter = { key: 'id', type: 'cohort', value: '2' }
      const flagFilter = { key: '1', type: 'flag', value: true }
      await store.createFlag(aNewFlag({ key: 'plain' }), aChange())
      await store.createFlag(
        aNewFlag({ key: 'linked', active: false, filters: { groups: [{ properties: [cohortFilter, flagFilter] }] } }),
        aChange(),
      )
      await store.createFlag(
        aNewFlag({ key: 'gone', filters: { groups: [{ properties: [cohortFilter] }] } }),
        aChange(),
      )
      await store.updateFlag(1, 3, { deleted: true }, aChange('Test', 9))
      const nested = { properties: { type: 'OR', values: [{ type: 'AND', values: [flagFilter] }, cohortFilter] } }
      await store.createCohort(aNewCohort({ name: 'tree', filters: nested }), aChange(), {})
      await store.createCohort(aNewCohort({ name: 'static', isStatic: true, filters: nested }), aChange(), {})
      assert.deepEqual(await store.findLinks(1), {
        revision: await revision(),
        flags: [
          { id: 1, name: 'plain', flagIds: [], cohortIds: [], experimentIds: [] },
          { id: 2, name: 'linked', flagIds: [1], cohortIds: [2], experimentIds: [] },
        ],
        cohorts: [
          { id: 1, name: 'tree', flagIds: [1], cohortIds: [2], experimentIds: [] },
          { id: 2, name: 'static', flagIds: [], cohortIds: [], experimentIds: [] },
        ],
        groupTypes: [],
        experimentIds: [],
      })
    })

    it('writes nothing that was checked against definitions that have since changed', async t => {
      const { store } = await open(t)
      await store.createProject(aNewProject(), aChange())
      await store.createFlag(aNewFlag(), aChange())
      await store.createCohort(aNewCohort(), aChange(), {})
      const { revision: linksRevision } = await store.findLinks(1)
      const changed = { ok: false, error: 'definitions_changed' }
      written(await store.updateCohort(1, 1, { name: 'x' }, aChange('Test', 9), { linksRevision }))
      const old = { linksRevision }
      assert.deepEqual(await store.createCohort(aNewCohort(), aChange(), old), changed)
      assert.deepEqual(await store.updateCohort(1, 1, { name: 'y' }, aChange('Test', 9), old), changed)
      assert.deepEqual(await store.createFlag(aNewFlag({ key: 'b' }), aChange(), old), changed)
      assert.deepEqual(await store.updateFlag(1, 1, {}, aChange(), old), changed)
      assert.equal((await store.findFlag(1, '1'))?.version, 1)
      assert.equal((await store.findCohort(1, 1))?.name, 'x')
    })

    it('accepts only one of two writes checked against the same definitions', async t => {
      const { store } = await open(t)
      await store.createProject(aNewProject(), aChange())
      await store.createFlag(aNewFlag({ key: 'a' }), aChange())
      await store.createFlag(aNewFlag({ key: 'b' }), aChange())
      const { revision: linksRevision } = await store.findLinks(1)
      const results = await Promise.all([1, 2].map(id => store.updateFlag(1, id, {}, aChange(), { linksRevision })))
      assert.deepEqual(results.map(({ ok }) => ok).sort(), [false, true])
    })
  })
}
