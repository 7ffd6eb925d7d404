// The contract for deleting group types: a type is gone at once for all readers and writers of groups, whatever is in
// progress, and its index is free only when nothing is left under it.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ChunkChanges, ChunkStore, LoadedChunk } from '#ports/state/chunk-store.ts'
import { aChange, aGroup, aNewFlag, aNewProject, chunkChanges, created } from '../support/values.ts'
import { change, commit, type ManagementHarness, type OpenManagement, written } from './management-harness.ts'

const company = { projectId: 1, name: 'company', index: 0 }
const team = { projectId: 1, name: 'team', index: 1 }

export function groupTypesContract(adapter: string, open: OpenManagement): void {
  describe(`group types on ${adapter}`, () => {
    async function opened(t: Parameters<OpenManagement>[0], groupCount: number): Promise<ManagementHarness> {
      const harness = await open(t)
      const groups = Array.from({ length: groupCount }, (_, index) => created(aGroup({ key: `k${index}` })))
      await commit(harness.chunkStore, {
        groupTypes: [company, team],
        groups: [...groups, created(aGroup({ typeIndex: 1, key: 'core' }))],
      })
      return harness
    }

    it('are deleted with their groups in batches, and no other type is changed', async t => {
      const { store, revision } = await opened(t, 12)
      const before = await revision()
      const started = await store.startDeletingGroupType(1, 0, aChange())
      assert.ok(started.ok)
      assert.equal(started.value.revision, before + 1)
      assert.equal(await revision(), before + 1, 'definitions are read again')
      assert.deepEqual(await store.listGroupTypes(1), [{ ...company, isBeingDeleted: true }, team])
      const rounds: boolean[] = []
      while (rounds.at(-1) !== false) rounds.push(await store.deleteGroupsOfType(1, 0, 5))
      assert.deepEqual(rounds, [true, true, false])
      assert.deepEqual(await store.listGroupTypes(1), [team])
      assert.deepEqual((await store.listGroups(1, { typeIndex: 0, limit: 9, offset: 0 })).results, [])
      assert.equal((await store.findStoredGroup(1, 1, 'core'))?.key, 'core')
    })

    it('are not deleted without a request, for another project, or if they do not exist', async t => {
      const { store } = await opened(t, 1)
      assert.equal(await store.deleteGroupsOfType(1, 0, 5), false)
      assert.deepEqual(await store.startDeletingGroupType(1, 4, aChange()), { ok: false, error: 'not_found' })
      assert.deepEqual(await store.startDeletingGroupType(2, 0, aChange()), { ok: false, error: 'not_found' })
      assert.deepEqual(await store.listGroupTypes(1), [company, team])
      assert.notEqual(await store.findStoredGroup(1, 0, 'k0'), null)
    })

    it('are reported to the worker while they are being deleted, and their groups are not loaded', async t => {
      const { store, chunkStore } = await opened(t, 1)
      await store.startDeletingGroupType(1, 0, aChange())
      const loaded = await load(chunkStore)
      assert.deepEqual(loaded.groupTypes, [{ ...company, isBeingDeleted: true }, team])
      assert.deepEqual(
        loaded.groups.map(({ key }) => key),
        ['core'],
      )
    })

    it('refuse groups that a worker writes for a type that was deleted after the worker loaded the type', async t => {
      const { store, chunkStore } = await opened(t, 0)
      const acme = { groups: [created(aGroup({ key: 'acme' }))], usedGroupTypes: [company] }
      await store.startDeletingGroupType(1, 0, aChange())
      assert.equal(await tryCommit(chunkStore, acme), 'version_conflict', 'it is being deleted')
      assert.equal(await store.deleteGroupsOfType(1, 0, 5), false)
      assert.equal(await tryCommit(chunkStore, acme), 'version_conflict', 'it is gone')
      await commit(chunkStore, { groupTypes: [{ ...company, name: 'other' }] })
      assert.equal(await tryCommit(chunkStore, acme), 'version_conflict', 'its index has another name')
      assert.equal(await store.findStoredGroup(1, 0, 'acme'), null)
      assert.equal(
        await tryCommit(chunkStore, { ...acme, usedGroupTypes: [{ ...company, name: 'other' }] }),
        'committed',
      )
    })

    it('are not deleted while flags use them, even inactive flags, and those flags are listed', async t => {
      const { store, revision } = await opened(t, 0)
      await store.createProject(aNewProject(), aChange())
      const ofType = (key: string, index: number) =>
        aNewFlag({ key, active: false, filters: { groups: [{ properties: [], aggregation_group_type_index: index }] } })
      for (const flag of [ofType('a', 0), ofType('b', 1), ofType('c', 0), aNewFlag({ key: 'd' })])
        written(await store.createFlag(flag, aChange()))
      const before = await revision()
      assert.deepEqual(await store.startDeletingGroupType(1, 0, aChange()), {
        ok: false,
        error: { usedBy: ['c', 'a'] },
      })
      assert.deepEqual([await revision(), await store.listGroupTypes(1)], [before, [company, team]])
      for (const id of [1, 3]) written(await change(store, 1, id, { deleted: true }))
      assert.ok((await store.startDeletingGroupType(1, 0, aChange())).ok)
      written(await store.createFlag(ofType('unchecked', 0), aChange()))
      assert.ok((await store.startDeletingGroupType(1, 0, aChange())).ok, 'a deletion that has begun continues')
    })

    it('have a bounded list of the flags that use them', async t => {
      const { store } = await opened(t, 0)
      await store.createProject(aNewProject(), aChange())
      const filters = { aggregation_group_type_index: 1, groups: [] }
      for (let count = 0; count < 25; count++)
        written(await store.createFlag(aNewFlag({ key: `f${count}`, filters }), aChange()))
      const deleted = await store.startDeletingGroupType(1, 1, aChange())
      assert.ok(!deleted.ok && typeof deleted.error === 'object')
      assert.equal(deleted.error.usedBy.length, 20)
    })

    it('accept either a new flag of a type or the deletion of the type, if both are concurrent', async t => {
      const { store } = await opened(t, 0)
      await store.createProject(aNewProject(), aChange())
      const filters = { aggregation_group_type_index: 1, groups: [] }
      const { revision: linksRevision, groupTypes } = await store.findLinks(1)
      assert.deepEqual(groupTypes, [
        { index: 0, name: 'company' },
        { index: 1, name: 'team' },
      ])
      const [deleted, created] = await Promise.all([
        store.startDeletingGroupType(1, 1, aChange()),
        store.createFlag(aNewFlag({ filters }), aChange(), { linksRevision }),
      ])
      const none = { ok: false, error: 'definitions_changed' }
      if (created.ok) assert.deepEqual(deleted, { ok: false, error: { usedBy: [created.value.value.key] } })
      else assert.deepEqual([deleted.ok, created], [true, none])
      const { groupTypes: later } = await store.findLinks(1)
      assert.equal(later[1]?.isBeingDeleted ?? false, !created.ok)
    })

    it('get an index freed by another type, but no second index for a name that is being deleted', async t => {
      const { store, chunkStore } = await opened(t, 0)
      await store.startDeletingGroupType(1, 0, aChange())
      assert.equal(await tryCommit(chunkStore, { groupTypes: [{ ...company, index: 2 }] }), 'version_conflict')
      assert.equal(await tryCommit(chunkStore, { groupTypes: [{ ...company, name: 'new' }] }), 'version_conflict')
      await store.deleteGroupsOfType(1, 0, 5)
      assert.equal(await tryCommit(chunkStore, { groupTypes: [{ ...company, name: 'new' }] }), 'committed')
      assert.equal(await tryCommit(chunkStore, { groupTypes: [{ ...company, index: 2 }] }), 'committed')
      const types = await store.listGroupTypes(1)
      assert.deepEqual(
        types.map(({ name }) => name),
        ['new', 'team', 'company'],
      )
    })
  })
}

async function load(chunkStore: ChunkStore): Promise<LoadedChunk> {
  const groups = [
    { projectId: 1, typeName: 'company', key: 'k0' },
    { projectId: 1, typeName: 'team', key: 'core' },
  ]
  const loaded = await chunkStore.loadChunk({ distinctIds: [], groups, projectIds: [1] }, 1_000_000)
  assert.ok(loaded !== 'too_large')
  return loaded
}

function tryCommit(chunkStore: ChunkStore, changes: Partial<ChunkChanges>) {
  const position = { stream: 'main', ownerId: 'w1', offset: 77, committedAtMs: 12 } as const
  return chunkStore.commitChunk(chunkChanges(changes), position)
}
