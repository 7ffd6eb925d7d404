// The contract of every adapter of the state for erased persons (`ports/state/erasure-store.ts`).

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { personUuid } from '#core/persons/person-uuid.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { loadWhole } from '../support/state.ts'
import { aChange, aMapping, aNewCohort, aNewProject, aPerson, created } from '../support/values.ts'
import { commit, type OpenManagement, written } from './management-harness.ts'

const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
const terms = { keepsPerson: false, deletesEvents: true, deletesRecordings: true }
const ends = { logId: 'log', endOffsets: { main: 50 } }
const requested = aChange('key', 5)

export function erasureStoreContract(adapter: string, open: OpenManagement): void {
  describe(`erased persons on ${adapter}`, () => {
    /** Persons 1 and 2 with two distinct ids each. */
    async function twoPersons(t: TestContext) {
      const { store, chunkStore } = await open(t)
      const project = await store.createProject(aNewProject(), aChange())
      assert.ok(project.ok)
      const projectId = project.value.value.id
      const rows = [1, 2].map(n => aPerson({ projectId, uuid: uuid(n) }))
      const mappings = rows.flatMap((row, index) => [`a-${index + 1}`, `b-${index + 1}`].map(id => aMapping(row, id)))
      await commit(chunkStore, { persons: rows.map(created), mappings: mappings.map(created) })
      const erase = async (distinctIds: readonly string[], over: Partial<typeof terms> = {}) => {
        const personIds = await store.findPersonIds(projectId, { distinctIds })
        return store.erasePersons({ projectId, personIds, ...terms, ...over, ...ends }, requested)
      }
      const load = () =>
        loadWhole(chunkStore, {
          ...{ distinctIds: [{ projectId, distinctId: 'a-1' }], mergingDistinctIds: [], groups: [] },
          ...{ otherDistinctIds: [{ projectId, distinctId: 'b-2' }], projectIds: [projectId] },
        })
      return { store, projectId, erase, load }
    }

    const openErasures = async (store: ManagementStore) =>
      store.readErasures((await store.listOpenErasures(0)).map(({ id }) => id))

    const listed = async (store: ManagementStore, projectId: number) =>
      (await store.listPersons(projectId, { limit: 10, offset: 0 })).results.map(person => person.uuid)

    it('are deleted with their ids, others stay, and a chunk loads the erased ids and the number of erasures', async t => {
      const { store, projectId, erase, load } = await twoPersons(t)
      const before = await load()
      assert.deepEqual([before.erasures, before.erasedIds], [undefined, undefined])
      assert.deepEqual(await erase(['a-1', 'b-1']), { takenCount: 1, erasedCount: 1 })
      assert.deepEqual(await listed(store, projectId), [uuid(2)])
      const erased = { projectId, distinctId: 'a-1', deletesEvents: true, deletesRecordings: true, ...ends }
      const after = await load()
      assert.deepEqual(after.erasures, new Map([[projectId, 1]]))
      assert.deepEqual([after.erasedIds, after.mappings], [[erased], []])
      const overrides = await store.listOverrides(null, 9)
      assert.deepEqual(
        overrides.map(({ distinctId, erasures }) => [distinctId, erasures]),
        [
          ['a-2', 1],
          ['b-2', 1],
        ],
      )
      await erase(['b-2'], { deletesRecordings: false })
      const other = { ...erased, distinctId: 'b-2', deletesRecordings: false }
      const both = (await load()).erasedIds!.toSorted((a, b) => (a.distinctId < b.distinctId ? -1 : 1))
      assert.deepEqual(both, [erased, other])
      assert.deepEqual(await erase(['a-1', 'a-2']), { takenCount: 0, erasedCount: 0 })
      for (const count of [7, 3]) await store.raiseErasureCounts([{ projectId, count }])
      assert.deepEqual((await load()).erasures, new Map([[projectId, 7]]))
    })

    it('are removed from static cohorts and their counts', async t => {
      const { store, projectId, erase } = await twoPersons(t)
      for (const name of ['both', 'one', 'none'])
        written(await store.createCohort(aNewCohort({ name, isStatic: true }), aChange(), {}))
      for (const [id, ids] of [
        [1, ['a-1', 'a-2']],
        [2, ['a-1']],
      ] as const) {
        await store.addCohortMembers(projectId, id, { kind: 'distinct_id', ids }, aChange())
        await store.saveCohortCount((await store.findCohort(projectId, id))!, await store.countCohortMembers(id), 3)
      }
      const counts = async () =>
        Promise.all([1, 2, 3].map(async id => (await store.findCohort(projectId, id))!.memberCount))
      assert.deepEqual(await counts(), [2, 1, 0])
      await erase(['a-1'], { keepsPerson: true })
      assert.deepEqual(await counts(), [2, 1, 0])
      await erase(['a-1'])
      assert.deepEqual(await counts(), [1, 0, 0])
      assert.deepEqual(await Promise.all([1, 2, 3].map(id => store.countCohortMembers(id))), [1, 0, 0])
    })

    it('have a queued erasure with all their ids, which can be counted once, completed, reopened and deleted', async t => {
      const { store, projectId, erase, load } = await twoPersons(t)
      const { version } = await store.findMirrorProgress()
      await erase(['a-1'])
      const { version: lifted } = await store.findMirrorProgress()
      assert.equal(lifted, version + 2)
      const { id, distinctIds, personUuids, ...erasure } = (await openErasures(store))[0]!
      assert.deepEqual(erasure, { projectId, erasures: 1, mirrorVersion: lifted, isCounted: false, ...terms, ...ends })
      assert.deepEqual(distinctIds.toSorted(), ['a-1', 'b-1'])
      const derived = ['a-1', 'b-1'].map(distinctId => personUuid(projectId, distinctId))
      assert.deepEqual(personUuids.toSorted(), [uuid(1), ...derived].toSorted())
      const { persons } = await store.findChangedSubjects()
      assert.ok(persons.some(person => person.uuid === uuid(1)))

      const removed = { events: 1, pendingEvents: 0, recordings: 0, rejectedEvents: 0 }
      await store.saveRemovedRows(id, removed, [])
      await store.saveRemovedRows(id, { ...removed, events: 0 }, [])
      const range = { table: 'events', tableId: 't', partition: '0-202611', oldestMs: 1, newestMs: 2 }
      await store.recordEmptiedRanges(id, [{ ...range, from: 1, to: 2 }])
      await store.recordEmptiedRanges(id, [{ ...range, from: 3, to: 3 }])
      assert.deepEqual(await store.listEmptiedRanges(), [{ ...range, from: 1, to: 3 }])
      await store.forgetErasedIds(id)
      assert.equal((await openErasures(store)).length, 1)
      assert.equal(await store.countOpenErasures(), 1)
      await store.finishErasures([id], 9)
      assert.deepEqual([await openErasures(store), (await store.listErasuresWithIds()).length], [[], 1])
      assert.equal(await store.countOpenErasures(), 0)
      await store.reopenErasures()
      assert.equal(await store.countOpenErasures(), 1)
      assert.equal((await openErasures(store))[0]!.isCounted, true)
      await store.finishErasures([id], 10)
      await store.forgetErasedIds(id)
      assert.deepEqual([await store.listErasuresWithIds(), await store.listEmptiedRanges()], [[], []])
      assert.equal((await load()).erasedIds, undefined)
      await store.reopenErasures()
      const { count, results } = await store.listErasedPersons(projectId, { isDone: true, limit: 5, offset: 0 })
      assert.equal(count, 1)
      const { erasureId: _, ...person } = results[0]!
      assert.deepEqual(person, {
        ...{
          uuid: uuid(1),
          requestedBy: requested.by,
          requestedAtMs: requested.atMs,
          doneAtMs: 10,
          personCount: 1,
          removed,
          ...terms,
        },
      })
    })

    it('have erasures that are listed without the erased ids, from any cursor, and loaded in parts', async t => {
      const { store, projectId, erase } = await twoPersons(t)
      for (const id of ['a-1', 'a-2']) for (const _ of Array(30)) await erase([id], { keepsPerson: true })
      const all = await store.listOpenErasures(0)
      assert.deepEqual(
        all.map(({ erasures }) => erasures),
        Array.from({ length: 60 }, (_, index) => index + 1),
      )
      assert.deepEqual(await store.listOpenErasures(all[57]!.id), all.slice(58))
      assert.deepEqual(await store.listOpenErasures(all[59]!.id), [])
      const ids = all.map(({ id }) => id)
      const read = await store.readErasures(ids)
      assert.ok(read.length > 0 && read.length < 60, `${read.length} at once`)
      assert.deepEqual(
        read.map(({ id }) => id),
        ids.slice(0, read.length),
      )
      const [last] = await store.readErasures([ids[59]!, 10 ** 9])
      const { distinctIds, ...outline } = last!
      assert.deepEqual(outline, { ...all[59], personUuids: [] })
      assert.deepEqual(distinctIds.toSorted(), ['a-2', 'b-2'])
      assert.deepEqual(await store.readErasures([]), [])
      assert.equal((await listed(store, projectId)).length, 2)
    })

    it('have an erasure without the uuid of another person, even if derived from an id that is now theirs', async t => {
      const { store, chunkStore } = await open(t)
      const project = await store.createProject(aNewProject(), aChange())
      assert.ok(project.ok)
      const projectId = project.value.value.id
      const other = aPerson({ projectId, uuid: personUuid(projectId, 'moved') })
      const person = aPerson({ projectId, uuid: uuid(1) })
      const mappings = [aMapping(other, 'stays'), aMapping(person, 'moved', 1)].map(created)
      await commit(chunkStore, { persons: [other, person].map(created), mappings })
      const personIds = await store.findPersonIds(projectId, { uuids: [uuid(1)] })
      await store.erasePersons({ projectId, personIds, ...terms, ...ends }, aChange('key', 5))
      assert.deepEqual((await openErasures(store))[0]!.personUuids, [uuid(1)])
    })

    it('stay when only their events are erased', async t => {
      const { store, projectId, erase } = await twoPersons(t)
      const { version } = await store.findMirrorProgress()
      await erase(['a-1'], { keepsPerson: true })
      assert.equal((await store.findMirrorProgress()).version, version)
      assert.equal((await listed(store, projectId)).length, 2)
      assert.deepEqual((await openErasures(store))[0]!.personUuids, [])
    })

    it('are removed from warnings, at any depth, if a whole text equals one of their ids', async t => {
      const { store, chunkStore } = await open(t)
      const project = await store.createProject(aNewProject(), aChange())
      assert.ok(project.ok)
      const projectId = project.value.value.id
      const warning = (details: object) => ({ projectId, type: 't', timestampMs: 1, details: details as never })
      const all = [{ distinctId: 'ada' }, { persons: [{ id: 'ada' }] }, { distinctId: 'ada lovelace' }]
      await commit(chunkStore, { warnings: all.map(warning) })
      await store.deleteMentions(projectId, ['ada'])
      const [found] = await store.listWarnings(projectId, { sinceMs: 0, sampleCountMax: 10 })
      assert.deepEqual(
        found!.warnings.map(({ details }) => details),
        [{ distinctId: 'ada lovelace' }],
      )
    })
  })
}
