// The contract of every store of recordings.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { RecordingQuery } from '#ports/events/recording-store.ts'
import { aCapturedRecording } from '../support/values.ts'
import { type EventStoreSubject, novemberMs } from './event-store-subject.ts'

export function recordingStoreContract(subject: EventStoreSubject): void {
  const { insert, newProject } = subject

  it('returns a recording as it was stored, with byte-identical items', async () => {
    const projectId = newProject()
    const recording = aCapturedRecording(1, {
      projectId,
      distinctId: 'åda',
      items: new Uint8Array([0, 255, 10, 34, 128]),
    })
    await insert({ recordings: [recording] })
    const { token, capturedAtMs, items, ...view } = recording
    assert.deepEqual(await subject.store.listRecordings({ projectId, limit: 10 }), { recordings: [view], next: null })
    const found = await subject.store.findRecording(projectId, recording.uuid)
    assert.deepEqual(found?.recording, view)
    assert.deepEqual([...found!.items!], [...items])
    assert.equal(await subject.store.findRecording(newProject(), recording.uuid), null)
  })

  it('replaces a recording that is sent again, but not one that differs in session or uuid', async () => {
    const projectId = newProject()
    const recording = aCapturedRecording(1, { projectId })
    await insert({ recordings: [recording, aCapturedRecording(2, { projectId })] })
    await insert({ recordings: [recording] })
    await insert({
      recordings: [
        { ...recording, sessionId: 'session-2' },
        { ...recording, itemCount: 9 },
      ],
    })
    const { recordings } = await subject.store.listRecordings({ projectId, limit: 10 })
    assert.deepEqual(recordings.map(one => [one.uuid.slice(-1), one.sessionId, one.itemCount]).sort(), [
      ['1', 'session-1', 9],
      ['1', 'session-2', 1],
      ['2', 'session-1', 1],
    ])
  })

  it('lists recordings newest first in pages, by session, distinct id and time', async () => {
    const projectId = newProject()
    const recordings = Array.from({ length: 5 }, (_, n) =>
      aCapturedRecording(n, {
        projectId,
        sessionId: `session-${n % 2}`,
        distinctId: n < 3 ? 'ada' : 'bob',
        timestampMs: novemberMs + Math.floor(n / 2),
      }),
    )
    await insert({ recordings })
    const numbers = async (over: Partial<RecordingQuery>) =>
      (await subject.store.listRecordings({ projectId, limit: 10, ...over })).recordings.map(({ uuid }) =>
        Number(uuid.slice(-1)),
      )
    assert.deepEqual(await numbers({}), [4, 3, 2, 1, 0])
    assert.deepEqual(await numbers({ sessionId: 'session-1' }), [3, 1])
    assert.deepEqual(await numbers({ distinctId: 'bob' }), [4, 3])
    assert.deepEqual(await numbers({ afterMs: novemberMs, beforeMs: novemberMs + 2 }), [3, 2])
    const first = await subject.store.listRecordings({ projectId, limit: 2 })
    const second = await subject.store.listRecordings({ projectId, limit: 3, after: first.next! })
    assert.deepEqual(
      [...first.recordings, ...second.recordings].map(({ uuid }) => Number(uuid.slice(-1))),
      [4, 3, 2, 1, 0],
    )
    assert.equal(second.next, null)
  })

  it('stores the other recordings when one cannot be stored', async () => {
    const projectId = newProject()
    const recordings = [0, 1, 2].map(n => aCapturedRecording(n, { projectId, ...(n === 1 ? { uuid: 'none' } : {}) }))
    const { refused } = await insert({ recordings })
    assert.deepEqual(refused, [{ list: 'recordings', index: 1, message: 'uuid is not a UUID' }])
    assert.equal((await subject.store.listRecordings({ projectId, limit: 10 })).recordings.length, 2)
  })
}
