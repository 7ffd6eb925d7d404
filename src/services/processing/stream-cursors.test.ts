// Tests the two cursors of a stream, in memory: which records each takes, and when a project changes cursors.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { LogChunk } from '#ports/log/event-log.ts'
import { memoryChunkStore } from '../../../tests/support/memory/memory-chunk-store.ts'
import { memoryDeferredProjects } from '../../../tests/support/memory/memory-deferred-projects.ts'
import { createMemoryEventLog } from '../../../tests/support/memory/memory-event-log.ts'
import { memoryState } from '../../../tests/support/memory/memory-state.ts'
import { seededRandom, testSeed } from '../../../tests/support/seeded-random.ts'
import { aCapturedEvent, chunkChanges, encodedEvents } from '../../../tests/support/values.ts'
import { type StreamCursor, StreamCursors } from './stream-cursors.ts'

const limits = { recordCountMax: 100, bytesMax: 1_000_000 }

/** A log and a state that outlive their workers. Offsets have gaps. */
function aStream() {
  let nowMs = 0
  const log = createMemoryEventLog({ nowMs: () => nowMs++, gapAfter: offset => (offset % 5 === 0 ? 2 : 0) })
  const state = memoryState()
  const store = memoryChunkStore(state)
  const deferred = memoryDeferredProjects(state)
  let ownerCount = 0
  let eventCount = 0
  /** By project, the numbers of its events in the order in which they were committed. */
  const taken = new Map<number, number[]>()

  async function startWorker() {
    const ownerId = `w${ownerCount++}`
    const cursors = new StreamCursors({ log, state: store, deferred, ownerId })
    await cursors.list()
    for (const cursor of cursors.all) await cursors.claim(cursor)
    await cursors.loadDeferral('main')
    const [first, second] = cursors.all as [StreamCursor, StreamCursor]
    const commit = async (cursor: StreamCursor, chunk: LogChunk) => {
      const fromOffset = cursors.positionOf(cursor)!
      const position = { stream: cursor.name, ownerId, fromOffset, offset: chunk.nextOffset, committedAtMs: 0 }
      assert.equal(await store.commitChunk(chunkChanges({}), position), 'committed')
      for (const { record } of chunk.records) {
        assert.ok(record.kind === 'event')
        const { projectId, name } = record.event
        taken.set(projectId, [...(taken.get(projectId) ?? []), Number(name)])
      }
      return () => cursors.move(cursor, chunk.nextOffset)
    }
    return {
      ...{ cursors, first, second, ownerId, commit },
      step: async (cursor: StreamCursor, recordCountMax = 100) => {
        const chunk = await cursors.read(cursor, { ...limits, recordCountMax })
        ;(await commit(cursor, chunk))()
        return chunk.records.map(({ record }) => (record.kind === 'event' ? record.event.projectId : null))
      },
    }
  }
  return {
    ...{ log, state, deferred, taken, startWorker },
    async append(...projectIds: number[]) {
      for (const projectId of projectIds)
        await log.append('live', encodedEvents([aCapturedEvent(1, { projectId, name: `${eventCount++}` })]))
    },
  }
}

describe('the two cursors of a stream', () => {
  it('process a deferred project with the second cursor, from where it was deferred up to the first cursor', async () => {
    const { append, startWorker } = aStream()
    await append(1, 2, 1, 2, 1, 2)
    const { cursors, first, second, step } = await startWorker()
    assert.deepEqual(await step(first, 2), [1, 2])
    assert.ok(await cursors.defer('main', 1))
    assert.deepEqual(await step(second), [], 'the first cursor has not moved since')
    assert.deepEqual(await step(first, 1), [2])
    assert.deepEqual(await step(second, 1), [1])
    assert.deepEqual(await step(second), [1])
    assert.deepEqual(await step(second), [])
    assert.deepEqual(await step(first), [2])
  })

  it('resume each of several deferred projects where it was deferred', async () => {
    const { append, startWorker } = aStream()
    await append(1, 2, 3, 1, 2, 3, 1, 2, 3)
    const { cursors, first, second, step } = await startWorker()
    await cursors.defer('main', 1)
    assert.deepEqual(await step(first, 2), [2, 3])
    await cursors.defer('main', 2)
    assert.deepEqual(await step(first), [3, 3])
    assert.deepEqual(await step(second), [1, 1, 2, 1, 2])
    assert.deepEqual(cursors.deferredProjects('main'), [1, 2])
  })

  it('become one again once the second has caught up, but not before the first has advanced', async () => {
    const { append, startWorker, deferred } = aStream()
    await append(1, 2)
    const { cursors, first, second, step } = await startWorker()
    await cursors.defer('main', 1)
    assert.equal(await cursors.releaseIfCaughtUp('main'), false)
    await step(first)
    assert.equal(await cursors.releaseIfCaughtUp('main'), false)
    await step(second)
    assert.ok(await cursors.releaseIfCaughtUp('main'))
    assert.equal(await deferred.findDeferral('main'), null)
    await append(1, 2)
    assert.deepEqual(await step(first), [1, 2])
    assert.deepEqual(await step(second), [])
  })

  it('report deferred records as not processed', async () => {
    const { append, startWorker } = aStream()
    await append(2, 1, 2)
    const { cursors, first, second, step } = await startWorker()
    await step(first, 1)
    await cursors.defer('main', 1)
    const deferredAt = cursors.positionOf(first)
    await step(first)
    assert.equal(cursors.doneOffset('main'), deferredAt)
    await step(second)
    assert.equal(cursors.doneOffset('main'), cursors.positionOf(first))
  })

  it('skip deferred records that a new log, which begins at the first cursor’s position, does not contain', async () => {
    const { state, startWorker } = aStream()
    state.positions.set('main', { ownerId: '', offset: 50, committedAtMs: 0 })
    state.positions.set('main.deferred', { ownerId: '', offset: 20, committedAtMs: 0 })
    state.deferred.set('main', [{ projectId: 1, fromOffset: 20 }])
    const { cursors, second, step } = await startWorker()
    assert.deepEqual(await step(second), [])
    assert.ok(await cursors.releaseIfCaughtUp('main'))
  })

  it('process every record once and in its project’s order, whatever is deferred and whenever a worker dies', async () => {
    const seed = testSeed()
    console.log(`SEED=${seed}`)
    const random = seededRandom(seed)
    const below = (count: number) => Math.floor(random() * count)
    let releaseCount = 0
    let deferredCount = 0
    for (let run = 0; run < 60; run++) {
      const { append, startWorker, deferred, taken, state } = aStream()
      const sent = new Map<number, number[]>()
      let eventCount = 0
      let worker = await startWorker()
      for (let action = 0; action < 80; action++) {
        const { cursors, first, second, ownerId, commit } = worker
        const projectId = 1 + below(4)
        // A worker dies after a write whose result it has not received yet, or between two actions.
        const dies = random() < 0.15
        switch (below(6)) {
          case 0:
          case 1:
            for (let n = below(4); n >= 0; n--) {
              await append(projectId)
              sent.set(projectId, [...(sent.get(projectId) ?? []), eventCount++])
            }
            break
          case 2:
          case 3: {
            const cursor = random() < 0.5 ? first : second
            const chunk = await cursors.read(cursor, {
              ...limits,
              recordCountMax: 1 + below(5),
              bytesMax: 1 + below(900),
            })
            const move = random() < 0.1 ? null : await commit(cursor, chunk)
            if (move !== null && !dies) move()
            break
          }
          case 4:
            if (dies) await deferred.deferProject('main', ownerId, projectId, cursors.positionOf(first)!)
            else await cursors.defer('main', projectId)
            deferredCount++
            break
          default:
            if (await cursors.releaseIfCaughtUp('main')) releaseCount++
        }
        if (dies) worker = await startWorker()
        if (state.deferred.has('main'))
          assert.ok(state.positions.get('main.deferred')!.offset <= state.positions.get('main')!.offset)
      }
      for (let n = 0; n < 300; n++) {
        await worker.step(worker.first, 5)
        await worker.step(worker.second, 5)
      }
      assert.deepEqual(
        [...taken].toSorted(([one], [other]) => one - other),
        [...sent].toSorted(([one], [other]) => one - other),
        `run ${run}`,
      )
    }
    // The number of releases is random: usually about thirty, sometimes fewer than twenty.
    assert.ok(releaseCount > 5 && deferredCount > 100, `${releaseCount} releases, ${deferredCount} deferrals`)
  })
})
