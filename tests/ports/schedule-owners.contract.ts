// The contract of every state store for deciding which worker runs the tasks that one worker runs for all.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { deduplicatedReason } from '#core/processing/deduplicate-flag-calls.ts'
import { chunkChanges } from '../support/values.ts'
import type { OpenManagement } from './management-harness.ts'

const lease = { name: 'schedules', ownerId: 'w1', nowMs: 1_000, untilMs: 2_000 }
const other = { ...lease, ownerId: 'w2' }

export function scheduleOwnersContract(adapter: string, open: OpenManagement): void {
  describe(`ScheduleOwners on ${adapter}`, () => {
    it('gives a schedule to one owner, until its lease ends', async t => {
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

    it('accepts one of many concurrent claims', async t => {
      const { store } = await open(t)
      const owners = Array.from({ length: 8 }, (_, n) => ({ ...lease, ownerId: `w${n}` }))
      const won = await Promise.all(owners.map(owner => store.claimSchedule(owner)))
      assert.equal(won.filter(Boolean).length, 1)
    })

    it('is free at once when its owner releases it, and is unaffected by another caller’s release', async t => {
      const { store } = await open(t)
      await store.claimSchedule(lease)
      await store.leaveSchedule(lease.name, 'w2')
      assert.equal(await store.claimSchedule(other), false)
      await store.leaveSchedule(lease.name, 'w1')
      assert.equal(await store.claimSchedule(other), true)
    })

    it('frees schedules when the state begins to follow another log', async t => {
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
  })
}
