// Part of `chunk-store.contract.ts`: merges of persons, what moves with them, and when they are refused.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ChunkChanges } from '#ports/state/chunk-store.ts'
import type { OpenState } from '../support/state.ts'
import { aMapping, aPerson, created } from '../support/values.ts'
import { ada, bob, commit, load, openClaimed } from './chunk-store-cases.ts'

export function chunkStoreMergeContract(adapter: string, open: OpenState): void {
  describe(`ChunkStore on ${adapter}: merges`, () => {
    it('maps the ids of a merged person to the survivor, and moves the flag assignments that the survivor lacks', async t => {
      const { chunkStore, subjectStore, addOverride, overridesOf } = await openClaimed(open, t)
      await commit(chunkStore, {
        persons: [created(ada), created(bob)],
        mappings: [created(aMapping(ada, 'ada')), created(aMapping(bob, 'bob'))],
      })
      await addOverride(1, ada.uuid, 'both', 'ada-hash')
      await addOverride(1, bob.uuid, 'both', 'bob-hash')
      await addOverride(1, bob.uuid, '__proto__', 'bob-hash')
      const survivor = { ...ada, version: 1, properties: { plan: 'free', age: 7 } }
      const merge: Partial<ChunkChanges> = {
        persons: [{ row: survivor, loadedVersion: 0 }],
        deletedPersons: [{ projectId: 1, uuid: bob.uuid, survivorUuid: ada.uuid, loadedVersion: 0 }],
        mappings: [{ row: aMapping(ada, 'bob', 1), loadedVersion: 0 }],
      }
      assert.equal(await commit(chunkStore, merge), 'committed')
      assert.deepEqual(await overridesOf(1, ada.uuid), ['__proto__=bob-hash', 'both=ada-hash'])
      assert.deepEqual(await overridesOf(1, bob.uuid), [])
      assert.deepEqual((await load(chunkStore, ['ada', 'bob'])).persons, [survivor])
      assert.equal((await subjectStore.findPerson(1, 'bob'))?.uuid, ada.uuid)
    })

    it('puts the survivor into the static cohorts of both persons, and the merged person into none', async t => {
      const { chunkStore, subjectStore, addMembership, membershipsOf } = await openClaimed(open, t)
      const carl = aPerson({ uuid: '33333333-3333-5333-8333-333333333333' })
      await commit(chunkStore, {
        persons: [ada, bob, carl].map(created),
        mappings: [created(aMapping(ada, 'ada')), created(aMapping(bob, 'bob')), created(aMapping(carl, 'carl'))],
      })
      for (const [{ uuid }, cohortId] of [
        [ada, 5],
        [bob, 5],
        [bob, 6],
        [carl, 6],
        [carl, 7],
      ] as const)
        await addMembership(1, uuid, cohortId)
      // Carl into Bob, and Bob into Ada, in one commit: Carl's memberships have to reach Ada.
      const merge: Partial<ChunkChanges> = {
        deletedPersons: [
          { projectId: 1, uuid: carl.uuid, survivorUuid: bob.uuid, loadedVersion: 0 },
          { projectId: 1, uuid: bob.uuid, survivorUuid: ada.uuid, loadedVersion: 0 },
        ],
        mappings: [
          { row: aMapping(ada, 'bob', 1), loadedVersion: 0 },
          { row: aMapping(ada, 'carl', 1), loadedVersion: 0 },
        ],
      }
      assert.equal(await commit(chunkStore, merge), 'committed')
      assert.deepEqual(await membershipsOf(1, ada.uuid), [5, 6, 7])
      assert.deepEqual(await membershipsOf(1, bob.uuid), [])
      assert.deepEqual(await membershipsOf(1, carl.uuid), [])
      assert.deepEqual(await subjectStore.findStaticCohorts(1, 'carl'), new Set([5, 6, 7]))
    })

    it('keeps cohort memberships unchanged when a merge is refused', async t => {
      const { chunkStore, addMembership, membershipsOf } = await openClaimed(open, t)
      await commit(chunkStore, { persons: [ada, bob].map(created) })
      await addMembership(1, bob.uuid, 5)
      const stale = { projectId: 1, uuid: bob.uuid, survivorUuid: ada.uuid, loadedVersion: 4 }
      assert.equal(await commit(chunkStore, { deletedPersons: [stale] }), 'version_conflict')
      assert.deepEqual(await membershipsOf(1, bob.uuid), [5])
      assert.deepEqual(await membershipsOf(1, ada.uuid), [])
    })

    it('moves flag assignments in the order of the merges in a commit', async t => {
      const { chunkStore, addOverride, overridesOf } = await openClaimed(open, t)
      const carl = aPerson({ uuid: '33333333-3333-5333-8333-333333333333' })
      await commit(chunkStore, { persons: [ada, bob, carl].map(created) })
      await addOverride(1, bob.uuid, 'beta', 'bob-hash')
      await addOverride(1, carl.uuid, 'beta', 'carl-hash')
      const deletedPersons = [carl, bob].map(({ uuid }) => ({
        projectId: 1,
        uuid,
        survivorUuid: ada.uuid,
        loadedVersion: 0,
      }))
      assert.equal(await commit(chunkStore, { deletedPersons }), 'committed')
      assert.deepEqual(await overridesOf(1, ada.uuid), ['beta=carl-hash'])
    })

    it('moves many flag assignments in the order of the merges, in whatever order they were created', async t => {
      const { chunkStore, addOverride, overridesOf } = await openClaimed(open, t)
      const numbered = Array.from({ length: 12 }, (_, index) =>
        aPerson({ uuid: `${10 + index}000000-3333-5333-8333-333333333333` }),
      )
      await commit(chunkStore, { persons: [ada, ...numbered].map(created) })
      const flagKeys = ['g', 'c', 'f', 'a', 'h', 'b', 'e', 'd']
      for (const [index, { uuid }] of numbered.entries())
        for (const key of index % 2 === 0 ? flagKeys : flagKeys.toReversed())
          await addOverride(1, uuid, key, `of ${index}`)
      const merged = [7, 2, 9, 0, 11, 4, 1, 10, 5, 3, 8, 6]
      const deletedPersons = merged.map(index => ({
        projectId: 1,
        uuid: numbered[index]!.uuid,
        survivorUuid: ada.uuid,
        loadedVersion: 0,
      }))
      assert.equal(await commit(chunkStore, { deletedPersons }), 'committed')
      assert.deepEqual(
        await overridesOf(1, ada.uuid),
        flagKeys.toSorted().map(key => `${key}=of 7`),
      )
    })

    it('refuses a personless id that got a person in the meantime, and a person for an id that became personless', async t => {
      const { chunkStore } = await openClaimed(open, t)
      const id = (distinctId: string) => ({ projectId: 1, distinctId })
      await commit(chunkStore, { persons: [created(ada)], mappings: [created(aMapping(ada, 'ada'))] })
      assert.equal(await commit(chunkStore, { personlessDistinctIds: [id('ada')] }), 'version_conflict')
      const both = { personlessDistinctIds: [id('ghost')], mappings: [created(aMapping(ada, 'ghost', 1))] }
      assert.equal(await commit(chunkStore, both), 'committed', 'attached by the same commit')
      assert.equal(await commit(chunkStore, { personlessDistinctIds: [id('late')] }), 'committed')
      assert.equal(await commit(chunkStore, { personlessDistinctIds: [id('late')] }), 'committed', 'again')
      const attach = (distinctId: string) => ({
        mappings: [created(aMapping(ada, distinctId))],
        neverPersonlessDistinctIds: [id(distinctId)],
      })
      assert.equal(await commit(chunkStore, attach('late')), 'version_conflict')
      assert.equal(await commit(chunkStore, attach('other')), 'committed')
      const loaded = await load(chunkStore, ['late', 'other'])
      assert.deepEqual(loaded.mappings, [aMapping(ada, 'other')])
      assert.deepEqual(loaded.personlessDistinctIds, [{ ...id('late'), nextVersion: 1 }])
    })

    it('refuses a merge that would leave an id of the merged person without a person', async t => {
      const { chunkStore, addOverride, overridesOf } = await openClaimed(open, t)
      await commit(chunkStore, {
        persons: [created(ada), created(bob)],
        mappings: [created(aMapping(ada, 'ada')), created(aMapping(bob, 'bob')), created(aMapping(bob, 'late'))],
      })
      await addOverride(1, bob.uuid, 'beta', 'bob-hash')
      const merge = {
        deletedPersons: [{ projectId: 1, uuid: bob.uuid, survivorUuid: ada.uuid, loadedVersion: 0 }],
        mappings: [{ row: aMapping(ada, 'bob', 1), loadedVersion: 0 }],
      }
      assert.equal(await commit(chunkStore, merge), 'version_conflict')
      assert.deepEqual(await overridesOf(1, bob.uuid), ['beta=bob-hash'])
      const loaded = await load(chunkStore, ['bob'])
      assert.deepEqual(loaded.mappings, [aMapping(bob, 'bob')])
    })

    it('refuses a merge of a person that has changed, and a merge into a deleted person', async t => {
      const { chunkStore } = await openClaimed(open, t)
      await commit(chunkStore, { persons: [created({ ...bob, version: 3 })] })
      const gone = { projectId: 1, uuid: bob.uuid, survivorUuid: ada.uuid, loadedVersion: 3 }
      assert.equal(await commit(chunkStore, { deletedPersons: [gone] }), 'version_conflict')
      await commit(chunkStore, { persons: [created(ada)] })
      const changed = { ...gone, loadedVersion: 2 }
      assert.equal(await commit(chunkStore, { deletedPersons: [changed] }), 'version_conflict')
      assert.equal(await commit(chunkStore, { deletedPersons: [gone] }), 'committed')
    })
  })
}
