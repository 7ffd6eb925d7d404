import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createMetrics } from '#telemetry/metrics.ts'
import { type ChangeReader, createChangeHub } from './change-hub.ts'

const project = { id: 1, apiToken: 'phc_a' }

/** A reader that takes notices at once, or when the test decides. */
function aReader(takesAtOnce = true) {
  const heard: (number | string)[] = []
  const waiting: (() => void)[] = []
  const hear = (what: number | string, taken: () => void) => {
    heard.push(what)
    if (takesAtOnce) taken()
    else waiting.push(taken)
  }
  const reader: ChangeReader = {
    changed: (revision, taken) => hear(revision, taken),
    heartbeat: taken => hear('beat', taken),
    end: () => heard.push('end'),
    drop: () => heard.push('drop'),
  }
  return { reader, heard, take: () => waiting.shift()?.() }
}

function aHub(limits: { readersMax?: number; readersPerProjectMax?: number } = {}) {
  let nowMs = 0
  const timers = new Set<() => void>()
  const metrics = createMetrics()
  const hub = createChangeHub({
    readersMax: 100,
    readersPerProjectMax: 100,
    ...limits,
    heartbeatMs: 20_000,
    metrics,
    monotonicNowMs: () => nowMs,
    startTimer: callback => {
      timers.add(callback)
      return { cancel: () => timers.delete(callback) }
    },
  })
  return {
    hub,
    timers,
    later: (ms: number) => {
      nowMs += ms
    },
    beat: () => {
      for (const callback of [...timers]) callback()
    },
    change: (revision: number, changed: Partial<typeof project> = {}) =>
      hub.publish({ projects: [{ ...project, revision, ...changed }], deletedProjectIds: [] }),
    streams: async () => (await metrics.changeStreams.get()).values[0]!.value,
    dropped: async () => (await metrics.changeStreamsDropped.get()).values[0]!.value,
  }
}

describe('the change hub', () => {
  it('notifies the readers of a project, and no others, of its changes', () => {
    const { hub, change } = aHub()
    const [first, second, other] = [aReader(), aReader(), aReader()]
    for (const { reader } of [first, second]) hub.subscribe(project, reader, 'nothing')
    hub.subscribe({ ...project, id: 2, apiToken: 'phc_b' }, other.reader, 'nothing')
    change(8)
    assert.deepEqual([first.heard, second.heard, other.heard], [[8], [8], []])
  })

  it('merges changes into one notice while a reader is still receiving the previous one', () => {
    const { hub, change } = aHub()
    const { reader, heard, take } = aReader(false)
    hub.subscribe(project, reader, 'nothing')
    for (const revision of [8, 9, 10]) change(revision)
    assert.deepEqual(heard, [8])
    take()
    assert.deepEqual(heard, [8, 10])
    take()
    assert.deepEqual(heard, [8, 10])
  })

  it('disconnects only a reader that received nothing during a whole heartbeat interval', async () => {
    const { hub, change, beat, dropped, streams } = aHub()
    const [stuck, slow, quick] = [aReader(false), aReader(false), aReader()]
    for (const { reader } of [stuck, slow, quick]) hub.subscribe(project, reader, 'nothing')
    change(8)
    beat()
    slow.take()
    beat()
    assert.deepEqual(stuck.heard, [8, 'drop'])
    assert.deepEqual(slow.heard, [8, 'beat'])
    assert.deepEqual(quick.heard, [8, 'beat', 'beat'])
    assert.equal(await dropped(), 1)
    assert.equal(await streams(), 2)
  })

  it('sends heartbeats with one timer while there are readers, and has no timer afterwards', () => {
    const { hub, timers } = aHub()
    const left = [aReader(), aReader()].map(({ reader }) => hub.subscribe(project, reader, 'nothing'))
    assert.equal(timers.size, 1)
    for (const subscribed of left) {
      assert.ok(subscribed.ok)
      subscribed.value.leave()
      subscribed.value.leave()
    }
    assert.equal(timers.size, 0)
  })

  it('detects outdated clients by the definitions they last saw, or by a change shortly before they first connected', () => {
    const { hub, change, later } = aHub()
    const isBehind = (knows: 'current' | 'other' | 'nothing') => {
      const subscribed = hub.subscribe(project, aReader().reader, knows)
      assert.ok(subscribed.ok)
      return subscribed.value.isBehind
    }
    assert.equal(isBehind('nothing'), true, 'changes before the start are unknown')
    later(60_000)
    assert.equal(isBehind('nothing'), false)
    change(8)
    assert.equal(isBehind('nothing'), true)
    assert.equal(isBehind('current'), false)
    later(60_000)
    assert.equal(isBehind('nothing'), false)
    assert.equal(isBehind('other'), true)
  })

  it('ends the streams of a deleted project and of a key that was replaced', () => {
    const { hub, change } = aHub()
    const [ofOldKey, ofDeleted] = [aReader(), aReader()]
    hub.subscribe(project, ofOldKey.reader, 'nothing')
    hub.subscribe({ ...project, id: 2, apiToken: 'phc_b' }, ofDeleted.reader, 'nothing')
    change(8, { apiToken: 'phc_new' })
    hub.publish({ projects: [], deletedProjectIds: [2] })
    change(9, { apiToken: 'phc_new' })
    assert.deepEqual([ofOldKey.heard, ofDeleted.heard], [['end'], ['end']])
  })

  it('limits readers in total and per project, and accepts another when one leaves', () => {
    const { hub } = aHub({ readersMax: 3, readersPerProjectMax: 2 })
    const come = (id: number) => hub.subscribe({ ...project, id }, aReader().reader, 'nothing')
    const first = come(1)
    assert.ok(first.ok && come(1).ok)
    assert.equal(hub.hasCapacity(1), false)
    assert.deepEqual(come(1), { ok: false, error: 'project_full' })
    assert.ok(come(2).ok)
    assert.deepEqual(come(3), { ok: false, error: 'full' })
    first.value.leave()
    assert.equal(hub.hasCapacity(1), true)
    assert.ok(come(1).ok)
  })

  it('notifies many readers, each once, in batches that leave time for other work', async () => {
    const { hub, change } = aHub({ readersMax: 1_000, readersPerProjectMax: 1_000 })
    const readers = Array.from({ length: 1_000 }, () => aReader())
    for (const { reader } of readers) hub.subscribe(project, reader, 'nothing')
    change(8)
    const notifiedCount = () => readers.filter(({ heard }) => heard.length > 0).length
    assert.ok(notifiedCount() < 500, `${notifiedCount()} in the first turn`)
    for (let turn = 0; turn < 4; turn++) await nextTurn()
    assert.equal(notifiedCount(), 1_000)
    assert.ok(readers.every(({ heard }) => heard.length === 1))
  })

  it('ends all streams when it closes, disconnects stuck readers, and accepts no new ones', () => {
    const { hub, change, timers } = aHub()
    const [stuck, quick] = [aReader(false), aReader()]
    for (const { reader } of [stuck, quick]) hub.subscribe(project, reader, 'nothing')
    change(8)
    hub.close()
    assert.deepEqual(
      [stuck.heard, quick.heard],
      [
        [8, 'drop'],
        [8, 'end'],
      ],
    )
    assert.deepEqual(hub.subscribe(project, aReader().reader, 'nothing'), { ok: false, error: 'closed' })
    assert.equal(timers.size, 0)
  })
})
