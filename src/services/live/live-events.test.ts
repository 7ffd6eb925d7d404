import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { lanes } from '#core/events/captured-event.ts'
import { RecordEncoder } from '#core/log/record-codec.ts'
import { PortError } from '#ports/port-error.ts'
import { aReader, aView, everything, someEvents } from '../../../tests/support/live-view.ts'
import { createMemoryEventLog } from '../../../tests/support/memory/memory-event-log.ts'
import { aCapturedEvent, aCapturedReject, encodedEvents } from '../../../tests/support/values.ts'

describe('the live view of a project', () => {
  it('shows newly accepted events of its project, and no others, once and in order', async () => {
    const { watch, accept, time } = aView()
    await accept(someEvents(3))
    const [mine, other] = [await watch(), await watch({ projectId: 2 })]
    await accept([aCapturedEvent(10), aCapturedEvent(11, { projectId: 2 }), aCapturedEvent(12)])
    await time.move(50)
    await accept([aCapturedEvent(13)])
    await time.move(50)
    assert.deepEqual(mine.heard, [
      ['begin', { main: 3 }],
      ['event', 'person-10', 'main:3', ''],
      ['event', 'person-12', 'main:5', ''],
      ['event', 'person-13', 'main:6', ''],
    ])
    assert.deepEqual(other.of('event'), [['event', 'person-11', 'main:4', '']])
  })

  it('finds what other processes append by checking the log itself, within a quarter of a second', async () => {
    const { watch, log, time } = aView()
    const { of } = await watch()
    await time.move(1_000)
    await log.append('live', encodedEvents([aCapturedEvent(1)]))
    await time.move(250)
    assert.equal(of('event').length, 1)
  })

  it('shows each event at its own offset, and ignores unused offsets', async () => {
    const { watch, accept, time } = aView({ gapAfter: () => 2 })
    await accept(someEvents(1))
    const { heard } = await watch()
    for (const n of [10, 11, 12]) {
      await accept([aCapturedEvent(n)])
      await time.move(50)
    }
    assert.deepEqual(heard, [
      ['begin', { main: 3 }],
      ['event', 'person-10', 'main:3', ''],
      ['event', 'person-11', 'main:6', ''],
      ['event', 'person-12', 'main:9', ''],
    ])
  })

  it('shows a watcher only events accepted after the watcher connected', async () => {
    const { watch, log, time } = aView()
    const first = await watch()
    await time.move(50)
    // The view is not woken for this event, so it is read only after the second watcher has entered.
    await log.append('live', encodedEvents([aCapturedEvent(1)]))
    const second = await watch()
    await log.append('live', encodedEvents([aCapturedEvent(2)]))
    await time.move(300)
    assert.equal(first.of('event').length, 2)
    assert.deepEqual(second.heard, [
      ['begin', { main: 1 }],
      ['event', 'person-2', 'main:1', ''],
    ])
  })

  it('reads the stream of imports only while a watcher requests it', async () => {
    const read: string[] = []
    const inner = createMemoryEventLog({ nowMs: () => 0 })
    const { watch, time } = aView({
      log: {
        ...inner,
        readRuns: (stream, ...rest) => {
          read.push(stream)
          return inner.readRuns(stream, ...rest)
        },
      },
    })
    await watch()
    await time.move(300)
    assert.deepEqual([...new Set(read)], ['main'])
    const both = await watch({ filter: { ...everything, lanes: new Set(lanes) } })
    await inner.append('import', encodedEvents([aCapturedEvent(1, { lane: 'historical' })]))
    await time.move(300)
    assert.deepEqual(both.of('event'), [['event', 'person-1', 'historical:0', '']])
    both.leave()
    read.length = 0
    await time.move(1_000)
    assert.deepEqual([...new Set(read)], ['main'])
  })

  it('reads nothing and sets no timer without watchers', async () => {
    const { watch, time, open } = aView()
    const watchers = [await watch(), await watch()]
    await time.move(50)
    assert.ok(time.timerCount() > 0)
    assert.equal(await open(), 2)
    for (const { leave } of watchers) {
      leave()
      leave()
    }
    await time.move(10)
    assert.deepEqual([time.timerCount(), await open()], [0, 0])
  })

  it('shows rejected events among the accepted ones, unless the watcher excludes them', async () => {
    const { watch, log, live, time } = aView()
    const [all, quiet] = [await watch(), await watch({ filter: { ...everything, rejected: false } })]
    const encoder = new RecordEncoder()
    encoder.addReject(aCapturedReject())
    encoder.addReject(aCapturedReject({ projectId: 2 }))
    await log.append('live', encoder.finish())
    live.wake('main')
    await time.move(50)
    assert.deepEqual(all.of('rejected'), [['rejected', 'missing_event_name']])
    assert.deepEqual(quiet.of('rejected'), [])
  })

  it('continues after the log could not be read, without missing anything', async () => {
    let isDown = false
    const inner = createMemoryEventLog({ nowMs: () => 0 })
    const { watch, time } = aView({
      log: {
        ...inner,
        readRuns: (...args) =>
          isDown ? Promise.reject(new PortError('event-log', 'unavailable')) : inner.readRuns(...args),
      },
    })
    const { of } = await watch()
    isDown = true
    await time.move(300)
    await inner.append('live', encodedEvents([aCapturedEvent(1)]))
    await time.move(3_000)
    assert.equal(of('event').length, 0)
    isDown = false
    await time.move(1_500)
    assert.equal(of('event').length, 1)
    assert.equal(of('lost').length, 0)
  })

  it('continues at the end of the log, and reports it, if the log was restored from an older copy or is unreadable', async () => {
    for (const code of ['conflict', 'corrupt'] as const) {
      let isBroken = false
      const inner = createMemoryEventLog({ nowMs: () => 0 })
      const { watch, time } = aView({
        log: {
          ...inner,
          readRuns: (stream, from, max) =>
            isBroken && from < 2 ? Promise.reject(new PortError('event-log', code)) : inner.readRuns(stream, from, max),
        },
      })
      const { heard } = await watch()
      isBroken = true
      await inner.append('live', encodedEvents(someEvents(2)))
      await time.move(1_500)
      await inner.append('live', encodedEvents([aCapturedEvent(7)]))
      await time.move(2_000)
      assert.deepEqual(heard.slice(1), [
        ['lost', 'main', 'unreadable'],
        ['event', 'person-7', 'main:2', ''],
      ])
    }
  })

  it('skips to current events, and reports it, when more arrive than can be read', async () => {
    // Each read takes 100 ms here and returns half a mebibyte.
    const inner = createMemoryEventLog({ nowMs: () => time.monotonicNowMs() })
    const { watch, time } = aView({
      log: {
        ...inner,
        readRuns: (...args) => {
          time.pass(100)
          return inner.readRuns(...args)
        },
      },
    })
    const { of, heard } = await watch()
    const pad = JSON.stringify({ pad: 'x'.repeat(100_000) })
    const backlog = someEvents(1_000, { propertiesJson: pad, projectId: 2 })
    for (let n = 0; n < backlog.length; n += 100) await inner.append('live', encodedEvents(backlog.slice(n, n + 100)))
    await time.move(10_000)
    await inner.append('live', encodedEvents([aCapturedEvent(1)]))
    await time.move(3_000)
    assert.deepEqual([...new Set(heard.slice(1).map(([kind]) => kind))], ['lost', 'event'])
    assert.deepEqual(of('lost'), [['lost', 'main', 'behind']])
  })

  it('works in slices of a few milliseconds and leaves most of the time to other work', async () => {
    const { watch, accept, time } = aView()
    let insideMs = 0
    let longestMs = 0
    // Testing an event takes 0.1 ms.
    const slow: Pick<ReadonlySet<string>, 'has'> = {
      has: () => {
        time.pass(0.1)
        insideMs += 0.1
        return true
      },
    }
    await watch({ filter: { ...everything, events: slow as ReadonlySet<string> } })
    await accept(someEvents(1_000))
    const startedMs = time.monotonicNowMs()
    while (insideMs < 99) {
      const before = insideMs
      await time.move(1)
      longestMs = Math.max(longestMs, insideMs - before)
    }
    assert.ok(longestMs < 8, `${longestMs} ms at a stretch`)
    const tookMs = time.monotonicNowMs() - startedMs
    assert.ok(tookMs > 350, `${insideMs} ms of work in ${tookMs} ms`)
  })

  it('ends all watchers at once when it closes, disconnects stuck ones, and accepts no new ones', async () => {
    const { watch, enter, accept, live, time } = aView()
    const [stuck, quick] = [await watch({}, false), await watch()]
    const waiting = await enter()
    await accept([aCapturedEvent(1)])
    await time.move(3_000)
    const closed = live.close()
    await time.move(0)
    await closed
    assert.deepEqual([stuck.heard.at(-1), quick.heard.at(-1)], [['drop'], ['end', 'stopping']])
    assert.deepEqual(await enter(), { ok: false, error: 'closed' })
    const late = aReader()
    assert.ok(waiting.ok)
    waiting.value.watch(late.reader)
    assert.deepEqual(late.heard.at(-1), ['end', 'stopping'])
    assert.equal(time.timerCount(), 0)
  })
})
