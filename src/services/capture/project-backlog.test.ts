import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ProcessedUntil } from '#core/events/processed-until.ts'
import { createProjectBacklog } from './project-backlog.ts'

const records = (recordCount: number, bytes = 0) => ({ recordCount, bytes: new Uint8Array(bytes) })

function startBacklog(over: { readonly isShared?: boolean } = {}) {
  const world = {
    nowMs: 1_000_000,
    untilMs: 1_000_000 as number | null,
    deferred: null as ProcessedUntil['deferred'],
    isProcessing: true,
    hasOthers: true,
  }
  const backlog = createProjectBacklog({
    processedUntil: () =>
      world.untilMs === null ? null : { appendedBeforeMs: world.untilMs, deferred: world.deferred },
    isProcessing: () => world.isProcessing,
    hasOtherProjects: () => world.hasOthers,
    clock: { nowMs: () => world.nowMs },
    unitsMax: 100,
    ...over,
  })
  const store = (projectId: number, count: number, bytes = 0) => {
    const units = backlog.take(projectId, records(count, bytes))
    if (units !== null) backlog.settle(projectId, units, true)
    return units !== null
  }
  return { world, backlog, store }
}

describe('the backlog of one project', () => {
  it('is limited for that project alone, until the worker has processed it', () => {
    const { world, store } = startBacklog()
    assert.ok(store(1, 60))
    world.nowMs += 500
    assert.ok(store(1, 40))
    assert.equal(store(1, 1), false)
    assert.ok(store(2, 90), 'another project')
    world.nowMs += 500
    world.untilMs = 1_000_400
    assert.ok(store(1, 60), 'the first 60 are processed')
    assert.equal(store(1, 1), false)
    world.untilMs = 1_001_001
    assert.ok(store(1, 100))
  })
  it('uses the separate position of a deferred project to decide which of its events still wait', () => {
    const { world, store } = startBacklog()
    assert.ok(store(1, 100))
    assert.ok(store(2, 100))
    world.nowMs += 1_000
    world.untilMs = 1_000_500
    world.deferred = { projectIds: [1], appendedBeforeMs: 1_000_000 }
    assert.equal(store(1, 1), false)
    assert.ok(store(2, 1), 'all records of the others are processed')
    world.deferred = { projectIds: [1], appendedBeforeMs: 1_000_001 }
    assert.ok(store(1, 1))
  })
  it('is limited to equal shares for projects that import at the same time, however much each had waiting before', () => {
    const { world, backlog, store } = startBacklog({ isShared: true })
    assert.ok(store(1, 100))
    assert.ok(store(2, 40), 'a later project has a share')
    world.nowMs += 1_000
    assert.equal(store(1, 1), false)
    assert.ok(store(2, 10))
    assert.equal(store(2, 1), false, 'each of the two has half')
    world.nowMs += 1_000
    assert.deepEqual([backlog.isBelowShare(1), backlog.isBelowShare(2)], [false, true])
    world.untilMs = world.nowMs
    world.nowMs += 1_000
    assert.ok(store(2, 100), 'one has all when the other has nothing waiting')
    assert.equal(backlog.isBelowShare(2), false)
  })

  it('counts large records as more, and accepts a request of any size when nothing else waits', () => {
    const { store } = startBacklog()
    assert.ok(store(1, 5_000))
    assert.equal(store(1, 1), false)
    assert.ok(store(2, 10, 80 * 2_048))
    assert.equal(store(2, 10, 1 * 2_048), false)
  })
  it('counts records that are being written to the disk, and no longer counts those that could not be written', () => {
    const { backlog } = startBacklog()
    const units = backlog.take(1, records(100))!
    assert.equal(backlog.take(1, records(1)), null)
    backlog.settle(1, units, false)
    assert.equal(backlog.take(1, records(100)), 100)
  })
  it('causes no refusal while the worker waits for a store or has not reported, nor if it affects no other project', () => {
    for (const over of [{ isProcessing: false }, { untilMs: null }, { hasOthers: false }]) {
      const { world, store } = startBacklog()
      Object.assign(world, over)
      for (let n = 0; n < 1_000; n++, world.nowMs += 100) assert.ok(store(1, 50), JSON.stringify(over))
    }
  })
  it('does not limit a steady stream that the worker keeps up with', () => {
    const { world, store } = startBacklog()
    for (let n = 0; n < 10_000; n++, world.nowMs += 10) {
      if (n % 25 === 0) world.untilMs = world.nowMs
      assert.ok(store(1, 2), `after ${n}`)
    }
  })
  it('is cleared when the clock is set back, since the time of processing is then unknown', () => {
    const { world, store } = startBacklog()
    assert.ok(store(1, 100))
    assert.equal(store(1, 1), false)
    world.nowMs -= 3_600_000
    world.untilMs = world.nowMs
    assert.ok(store(1, 100))
  })
})
