// What a worker relies on when it defers a project: the list of deferred projects and the second cursor's position are
// written together, and only by the owner of the stream.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { deferredCursorOf } from '#core/events/log-stream.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import type { DeferredProjects } from '#ports/state/worker-state.ts'
import { chunkChanges } from '../support/values.ts'

export interface DeferredProjectsHarness {
  readonly store: DeferredProjects
  readonly chunkStore: ChunkStore
}

export function deferredProjectsContract(
  adapter: string,
  open: (t: TestContext) => Promise<DeferredProjectsHarness>,
): void {
  const slow = deferredCursorOf('main')

  async function opened(t: TestContext) {
    const { store, chunkStore } = await open(t)
    const moveTo = async (cursor: string, offset: number, ownerId = 'w1') => {
      const position = { stream: cursor, ownerId, offset, committedAtMs: 0 }
      assert.equal(await chunkStore.commitChunk(chunkChanges({}), position), 'committed')
    }
    for (const cursor of ['main', slow]) await chunkStore.claimPosition(cursor, 'w1')
    await moveTo('main', 40)
    return { store, chunkStore, moveTo }
  }

  describe(`DeferredProjects on ${adapter}`, () => {
    it('has no deferred project at first', async t => {
      const { store } = await opened(t)
      assert.equal(await store.findDeferral('main'), null)
    })

    it('sets the second cursor to the position of the first deferral, and keeps it for later ones', async t => {
      const { store, moveTo } = await opened(t)
      assert.equal(await store.deferProject('main', 'w1', 7, 40), true)
      assert.deepEqual(await store.findDeferral('main'), { offset: 40, projects: [{ projectId: 7, fromOffset: 40 }] })
      await moveTo('main', 60)
      assert.equal(await store.deferProject('main', 'w1', 8, 60), true)
      assert.equal(await store.deferProject('main', 'w1', 7, 60), true)
      const projects = [
        { projectId: 7, fromOffset: 40 },
        { projectId: 8, fromOffset: 60 },
      ]
      assert.deepEqual(await store.findDeferral('main'), { offset: 40, projects })
      assert.equal(await store.findDeferral('historical'), null)
    })

    it('rejects a worker that does not own the stream, or has another position in it', async t => {
      const { store, chunkStore } = await opened(t)
      assert.equal(await store.deferProject('main', 'w2', 7, 40), false)
      assert.equal(await store.deferProject('main', 'w1', 7, 39), false)
      assert.equal(await store.findDeferral('main'), null)
      assert.equal(await chunkStore.findOwnPosition(slow, 'w1'), 0)
    })

    it('releases all projects once both cursors are at the same position', async t => {
      const { store, moveTo } = await opened(t)
      await store.deferProject('main', 'w1', 7, 40)
      await moveTo('main', 60)
      assert.equal(await store.releaseProjects('main', 'w1', 60), false, 'the second one is behind')
      await moveTo(slow, 60)
      assert.equal(await store.releaseProjects('main', 'w2', 60), false, 'another worker')
      assert.equal((await store.findDeferral('main'))?.offset, 60)
      assert.equal(await store.releaseProjects('main', 'w1', 60), true)
      assert.equal(await store.findDeferral('main'), null)
    })

    it('rejects a worker whose stream another worker has claimed', async t => {
      const { store, chunkStore, moveTo } = await opened(t)
      await store.deferProject('main', 'w1', 7, 40)
      await moveTo('main', 60)
      await moveTo(slow, 60)
      await chunkStore.claimPosition('main', 'w2')
      assert.equal(await store.releaseProjects('main', 'w1', 60), false)
      assert.equal(await store.deferProject('main', 'w1', 8, 60), false)
      assert.deepEqual(await store.findDeferral('main'), { offset: 60, projects: [{ projectId: 7, fromOffset: 40 }] })
    })
  })
}
