// The contract of every store of secret keys: at most two keys per project, and a revision that moves with each change.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { NewSecretKey } from '#ports/state/project-store.ts'
import { aChange, aNewProject } from '../support/values.ts'
import { type OpenManagement, written } from './management-harness.ts'

function aKey(name: string): NewSecretKey {
  return { secretHash: name.repeat(64), masked: `phs_...${name}` }
}

export function secretKeyStoreContract(adapter: string, open: OpenManagement): void {
  describe(`SecretKeyStore on ${adapter}`, () => {
    it('turns the former primary key into the backup, and deletes the previous backup', async t => {
      const { store, revision } = await open(t)
      await store.createProject(aNewProject(), aChange())
      await store.createProject(aNewProject(), aChange())
      const before = await revision()
      const first = await store.rotateSecretKey(1, aKey('a'), aChange())
      assert.deepEqual(written(first), { primary: 'phs_...a', backup: null })
      assert.equal(first.ok && first.value.revision, before + 1)
      assert.deepEqual(written(await store.rotateSecretKey(1, aKey('b'), aChange())), {
        primary: 'phs_...b',
        backup: 'phs_...a',
      })
      assert.deepEqual(written(await store.rotateSecretKey(1, aKey('c'), aChange())), {
        primary: 'phs_...c',
        backup: 'phs_...b',
      })
      assert.deepEqual(written(await store.rotateSecretKey(2, aKey('d'), aChange())), {
        primary: 'phs_...d',
        backup: null,
      })
      assert.equal(await revision(), before + 4)
      const listed = await store.listSecretKeys([1, 2, 3])
      assert.deepEqual(
        listed.toSorted((a, b) => a.projectId - b.projectId),
        [
          { projectId: 1, primary: 'phs_...c', backup: 'phs_...b' },
          { projectId: 2, primary: 'phs_...d', backup: null },
        ],
      )
      assert.deepEqual(await store.listSecretKeys([]), [])
    })

    it('deletes only the backup key, and does not fail if there is no backup key', async t => {
      const { store } = await open(t)
      await store.createProject(aNewProject(), aChange())
      await store.rotateSecretKey(1, aKey('a'), aChange())
      await store.rotateSecretKey(1, aKey('b'), aChange())
      for (const _time of [1, 2])
        assert.deepEqual(written(await store.deleteBackupSecretKey(1, aChange())), {
          primary: 'phs_...b',
          backup: null,
        })
    })

    it('does not find missing or deleted projects', async t => {
      const { store, revision } = await open(t)
      await store.createProject(aNewProject(), aChange())
      await store.deleteProject(1, aChange())
      const before = await revision()
      for (const projectId of [1, 7]) {
        assert.deepEqual(await store.rotateSecretKey(projectId, aKey('a'), aChange()), {
          ok: false,
          error: 'not_found',
        })
        assert.deepEqual(await store.deleteBackupSecretKey(projectId, aChange()), { ok: false, error: 'not_found' })
      }
      assert.equal(await revision(), before)
    })

    it('sums flag requests over a span of days by project', async t => {
      const { store } = await open(t)
      await store.addFlagRequests([
        { projectId: 1, day: '2026-02-28', count: 100 },
        { projectId: 1, day: '2026-03-01', count: 1 },
        { projectId: 1, day: '2026-03-31', count: 2 },
        { projectId: 1, day: '2026-04-01', count: 100 },
        { projectId: 2, day: '2026-03-15', count: 4 },
        { projectId: 3, day: '2026-03-15', count: 8 },
      ])
      const sums = await store.sumFlagRequests([1, 2, 9], '2026-03-01', '2026-03-31')
      assert.deepEqual(
        sums.toSorted((a, b) => a.projectId - b.projectId),
        [
          { projectId: 1, count: 3 },
          { projectId: 2, count: 4 },
        ],
      )
      assert.deepEqual(await store.sumFlagRequests([], '2026-03-01', '2026-03-31'), [])
    })
  })
}
