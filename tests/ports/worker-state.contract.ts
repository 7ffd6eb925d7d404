// What a worker relies on: only one of them runs a schedule, and when it defers a project, the list of deferred projects
// and the second cursor's position are written together, and only by the owner of the stream.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { formatDeferredCursorName } from '#core/events/log-stream.ts'
import { deduplicatedReason } from '#core/processing/deduplicate-flag-calls.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import type { DeferredProjects } from '#ports/state/worker-state.ts'
import { chunkChanges } from '../support/values.ts'
import type { OpenManagement } from './management-harness.ts'

const lease = { name: 'schedules', ownerId: 'w1', nowMs: 1_000, untilMs: 2_000 }
const other = { ...lease, ownerId: 'w2' }

export function workerStateContract(adapter: string, open: OpenManagement): void {
  describe(`the state that workers share, on ${adapter}`, () => {
    it('gives a schedule to one owner, until the owner’s lease ends', async t => {
      const { store } = await open(t)
      assert.equal(await store.claimSchedule(lease), true)
      assert.equal(await store.claimSchedule({ ...other, nowMs: 1_999, untilMs: 2_999 }), false)
      assert.equal(await store.claimSchedule({ ...lease, name: 'another' }), true)
      assert.equal(await store.claimSchedule({ ...other, nowMs: 2_000, untilMs: 3_000 }), true)
      assert.equal(
        await store.claimSchedule({ ...lease, nowMs: 2_500, untilMs: 3_500 }),
        false,
        'it is the other one’s now',
      )
    })

    it('lets only the owner renew the lease', async t => {
      const { store } = await open(t)
      for (let nowMs = 1_000; nowMs < 10_000; nowMs += 500) {
        assert.equal(await store.claimSchedule({ ...lease, nowMs, untilMs: nowMs + 1_000 }), true)
        assert.equal(await store.claimSchedule({ ...other, nowMs, untilMs: nowMs + 1_000 }), false)
      }
    })

    it('accepts only one of many concurrent claims', async t => {
      const { store } = await open(t)
      const owners = Array.from({ length: 8 }, (_, n) => ({ ...lease, ownerId: `w${n}` }))
      const won = await Promise.all(owners.map(owner => store.claimSchedule(owner)))
      assert.equal(won.filter(Boolean).length, 1)
    })

    it('frees a schedule at once when its owner releases it, but not when another caller does', async t => {
      const { store } = await open(t)
      await store.claimSchedule(lease)
      await store.releaseSchedule(lease.name, 'w2')
      assert.equal(await store.claimSchedule(other), false)
      await store.releaseSchedule(lease.name, 'w1')
      assert.equal(await store.claimSchedule(other), true)
    })

    it('frees schedules when the state starts to use another log', async t => {
      const { store } = await open(t)
      await store.claimSchedule(lease)
      await store.followLog({ id: 'b', place: 'there:/b', formerId: 'a', begunAt: '{}' })
      assert.equal(await store.claimSchedule(other), true)
    })

    it('counts the charged and deduplicated records of each project', async t => {
      const { store, chunkStore } = await open(t)
      await chunkStore.claimPosition('main', 'w1')
      const position = { stream: 'main', ownerId: 'w1', committedAtMs: 1 }
      const outcome = { projectId: 1, lane: 'main', outcome: 'stored', reason: '', count: 3 } as const
      const outcomes = [
        outcome,
        { ...outcome, lane: 'ai', count: 4 },
        { ...outcome, outcome: 'dropped', reason: deduplicatedReason, count: 5 },
        { ...outcome, outcome: 'dropped', reason: 'unknown_project', count: 7 },
        { ...outcome, projectId: 2, outcome: 'rejected', reason: 'row_refused', count: 7 },
        { ...outcome, projectId: 3, count: 1 },
      ] as const
      for (const offset of [10, 20]) await chunkStore.commitChunk(chunkChanges({ outcomes }), { ...position, offset })
      const sums = (await store.sumChargedRecords()).toSorted((one, another) => one.projectId - another.projectId)
      assert.deepEqual(sums, [
        { projectId: 1, recordCount: 24 },
        { projectId: 3, recordCount: 2 },
      ])
    })

    it('has no trusted time at first, and then the last saved one', async t => {
      const { store } = await open(t)
      assert.equal(await store.findTrustedTime(), null)
      for (const time of [
        { atMs: 1_790_000_000_000, aheadMs: 0, stoodMs: 0 },
        { atMs: 1_790_000_000_001, aheadMs: -9_000_000_000, stoodMs: 3_600_000 },
      ]) {
        await store.saveTrustedTime(time)
        assert.deepEqual(await store.findTrustedTime(), time)
      }
    })
  })
}

export interface DeferredProjectsHarness {
  readonly store: DeferredProjects
  readonly chunkStore: ChunkStore
}

export function deferredProjectsContract(
  adapter: string,
  open: (t: TestContext) => Promise<DeferredProjectsHarness>,
): void {
  const slow = formatDeferredCursorName('main')

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

    it('sets the second cursor to the position of the first deferral, and keeps it for later deferrals', async t => {
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

    it('rejects a worker that does not own the stream, or that has another position in it', async t => {
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
