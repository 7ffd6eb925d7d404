// The contract of every state store for the mirror of persons and groups in the event store: whatever is written is
// noted in the same transaction, once for each subject, until it is settled.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { aChange, aGroup, aPerson, created } from '../support/values.ts'
import { commit, type OpenManagement } from './management-harness.ts'

const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`

export function subjectMirrorSourceContract(adapter: string, open: OpenManagement): void {
  describe(`SubjectMirrorSource on ${adapter}`, () => {
    it('lists the subjects that commits changed, each once, until the caller has processed them', async t => {
      const { store, chunkStore } = await open(t)
      assert.deepEqual(await store.findChangedSubjects(), { persons: [], groups: [], changeIds: [] })
      await commit(chunkStore, { persons: [created(aPerson({ uuid: uuid(1) }))] })
      await commit(chunkStore, {
        groupTypes: [{ projectId: 1, name: 'company', index: 0 }],
        groups: [created(aGroup({ key: 'a"b' }))],
      })
      const grown = { row: aPerson({ uuid: uuid(1), version: 1 }), loadedVersion: 0 }
      await commit(chunkStore, { persons: [grown, created(aPerson({ uuid: uuid(2), projectId: 2 }))] })
      const { persons, groups, changeIds } = await store.findChangedSubjects()
      assert.deepEqual(
        persons.map(person => `${person.projectId} ${person.uuid}`),
        [`1 ${uuid(1)}`, `2 ${uuid(2)}`],
      )
      assert.deepEqual(groups, [{ projectId: 1, typeIndex: 0, key: 'a"b' }])
      assert.equal(changeIds.length, 3)
      await store.settleChanges(changeIds.slice(0, 1))
      assert.deepEqual((await store.findChangedSubjects()).changeIds, changeIds.slice(1))
      await store.settleChanges(changeIds)
      assert.deepEqual((await store.findChangedSubjects()).changeIds, [])
    })

    it('records nothing for a chunk that changes no person and no group, or for a refused chunk', async t => {
      const { store, chunkStore } = await open(t)
      await commit(chunkStore, {})
      await chunkStore.claimPosition('main', 'w2')
      await assert.rejects(
        commit({ ...chunkStore, claimPosition: async () => ({ offset: 0 }) }, { persons: [created(aPerson())] }),
      )
      assert.deepEqual((await store.findChangedSubjects()).changeIds, [])
    })

    it('lists merged persons, and groups whose type is deleted, among the changed subjects', async t => {
      const { store, chunkStore } = await open(t)
      await commit(chunkStore, {
        persons: [created(aPerson({ uuid: uuid(1) })), created(aPerson({ uuid: uuid(2) }))],
        groupTypes: [{ projectId: 1, name: 'company', index: 0 }],
        groups: [created(aGroup({ key: 'x' })), created(aGroup({ key: 'y' }))],
      })
      await store.settleChanges((await store.findChangedSubjects()).changeIds)
      await commit(chunkStore, {
        deletedPersons: [{ projectId: 1, uuid: uuid(2), survivorUuid: uuid(1), loadedVersion: 0 }],
      })
      await store.startDeletingGroupType(1, 0, aChange())
      while (await store.deleteGroupsOfType(1, 0, 1));
      const { persons, groups } = await store.findChangedSubjects()
      assert.deepEqual(persons, [{ projectId: 1, uuid: uuid(2) }])
      assert.deepEqual(
        groups.map(({ key }) => key),
        ['x', 'y'],
      )
      assert.deepEqual(await store.readMirroredPersons(persons), { lookedUp: 1, persons: [] })
      assert.deepEqual(await store.readMirroredGroups(groups), { lookedUp: 2, groups: [] })
    })

    it('reads subjects by their keys and in pages, however large they are, and each exactly once', async t => {
      const { store, chunkStore } = await open(t)
      const large = { note: 'x'.repeat(600_000) }
      const persons = Array.from({ length: 40 }, (_, n) => aPerson({ uuid: uuid(n), properties: large }))
      await commit(chunkStore, { persons: persons.map(created) })
      await commit(chunkStore, {
        groupTypes: [{ projectId: 1, name: 'company', index: 0 }],
        groups: Array.from({ length: 700 }, (_, n) => created(aGroup({ key: `k${n}`, properties: { n } }))),
      })
      const found = await store.readMirroredPersons(persons)
      assert.ok(found.lookedUp > 1 && found.lookedUp < 20, `${found.lookedUp} persons of 600 KB in one page`)
      assert.deepEqual(
        found.persons.map(person => person.uuid).toSorted(),
        persons.slice(0, found.lookedUp).map(person => person.uuid),
      )
      const [first] = found.persons
      const { uuid: _, ...rest } = first!
      const { projectId, createdAtMs, isIdentified } = persons[0]!
      assert.deepEqual(rest, { projectId, createdAtMs, isIdentified, propertiesJson: JSON.stringify(large) })

      const uuids: string[] = []
      let pageCount = 0
      for (let after: number | null = null; ; pageCount++) {
        const page = await store.listMirroredPersons(after)
        uuids.push(...page.persons.map(person => person.uuid))
        if (page.next === null) break
        after = page.next
      }
      assert.ok(pageCount > 2)
      assert.deepEqual(uuids.toSorted(), persons.map(person => person.uuid).toSorted())

      const keys: string[] = []
      for (let after: Awaited<ReturnType<typeof store.listMirroredGroups>>['next'] = null; ; ) {
        const page = await store.listMirroredGroups(after)
        keys.push(...page.groups.map(({ key, propertiesJson }) => `${key} ${propertiesJson}`))
        if (page.next === null) break
        after = page.next
      }
      assert.equal(keys.length, 700)
      assert.deepEqual(keys.toSorted(), Array.from({ length: 700 }, (_, n) => `k${n} {"n":${n}}`).toSorted())
    })

    it('saves progress only from a caller that has the latest progress', async t => {
      const { store } = await open(t)
      assert.deepEqual(await store.findMirrorProgress(), { version: 0, fill: null })
      const fill = { id: 'f', phase: 'persons', after: 7, rowsVersion: 2, held: null } as const
      assert.equal(await store.saveMirrorProgress({ version: 3, fill }, 0), true)
      assert.equal(await store.saveMirrorProgress({ version: 4, fill: null }, 0), false)
      assert.deepEqual(await store.findMirrorProgress(), { version: 3, fill })
    })
  })
}
