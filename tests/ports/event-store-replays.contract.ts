// Part of `event-store.contract.ts`: replays.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { ReplayQuery } from '#ports/event-store.ts'
import { aCapturedReplay } from '../support/captured-replays.ts'
import { type EventStoreSubject, novemberMs } from './event-store-subject.ts'

export function eventStoreReplayContract(subject: EventStoreSubject): void {
  const { insert, newProject } = subject

  it('gives a replay back as it was stored, its items byte for byte', async () => {
    const projectId = newProject()
    const replay = aCapturedReplay(1, { projectId, distinctId: 'åda', items: new Uint8Array([0, 255, 10, 34, 128]) })
    await insert({ replays: [replay] })
    const { token, capturedAtMs, items, ...view } = replay
    assert.deepEqual(await subject.store.listReplays({ projectId, limit: 10 }), { replays: [view], next: null })
    const found = await subject.store.findReplay(projectId, replay.uuid)
    assert.deepEqual(found?.replay, view)
    assert.deepEqual([...found!.items!], [...items])
    assert.equal(await subject.store.findReplay(newProject(), replay.uuid), null)
  })

  it('replaces a replay that comes again, and keeps apart what differs in session or uuid', async () => {
    const projectId = newProject()
    const replay = aCapturedReplay(1, { projectId })
    await insert({ replays: [replay, aCapturedReplay(2, { projectId })] })
    await insert({ replays: [replay] })
    await insert({
      replays: [
        { ...replay, sessionId: 'session-2' },
        { ...replay, itemCount: 9 },
      ],
    })
    const { replays } = await subject.store.listReplays({ projectId, limit: 10 })
    assert.deepEqual(replays.map(one => [one.uuid.slice(-1), one.sessionId, one.itemCount]).sort(), [
      ['1', 'session-1', 9],
      ['1', 'session-2', 1],
      ['2', 'session-1', 1],
    ])
  })

  it('lists replays newest first in pages, by session, distinct id and time', async () => {
    const projectId = newProject()
    const replays = Array.from({ length: 5 }, (_, n) =>
      aCapturedReplay(n, {
        projectId,
        sessionId: `session-${n % 2}`,
        distinctId: n < 3 ? 'ada' : 'bob',
        timestampMs: novemberMs + Math.floor(n / 2),
      }),
    )
    await insert({ replays })
    const numbers = async (over: Partial<ReplayQuery>) =>
      (await subject.store.listReplays({ projectId, limit: 10, ...over })).replays.map(({ uuid }) =>
        Number(uuid.slice(-1)),
      )
    assert.deepEqual(await numbers({}), [4, 3, 2, 1, 0])
    assert.deepEqual(await numbers({ sessionId: 'session-1' }), [3, 1])
    assert.deepEqual(await numbers({ distinctId: 'bob' }), [4, 3])
    assert.deepEqual(await numbers({ afterMs: novemberMs, beforeMs: novemberMs + 2 }), [3, 2])
    const first = await subject.store.listReplays({ projectId, limit: 2 })
    const second = await subject.store.listReplays({ projectId, limit: 3, after: first.next! })
    assert.deepEqual(
      [...first.replays, ...second.replays].map(({ uuid }) => Number(uuid.slice(-1))),
      [4, 3, 2, 1, 0],
    )
    assert.equal(second.next, null)
  })

  it('stores the other replays when one cannot be stored', async () => {
    const projectId = newProject()
    const replays = [0, 1, 2].map(n => aCapturedReplay(n, { projectId, ...(n === 1 ? { uuid: 'none' } : {}) }))
    const { refused } = await insert({ replays })
    assert.deepEqual(refused, [{ list: 'replays', index: 1, message: 'uuid is not a UUID' }])
    assert.equal((await subject.store.listReplays({ projectId, limit: 10 })).replays.length, 2)
  })
}
