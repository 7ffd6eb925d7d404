import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createMemoryEventLog } from '#adapters/memory/memory-event-log.ts'
import { type CapturedEvent, lanes } from '#core/events/captured-event.ts'
import type { LiveFilter } from '#core/live/live-filter.ts'
import { RecordEncoder } from '#core/log/record-codec.ts'
import type { EventLogReader } from '#ports/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import { silentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { aCapturedEvent, aCapturedReject, encodedEvents } from '../../tests/support/captured-events.ts'
import { movedTime } from '../../tests/support/moved-time.ts'
import { createLiveEvents } from './live-events.ts'
import type { LiveMessages, LiveReader, LiveRequest } from './live-watcher.ts'

const everything: LiveFilter = {
  events: null,
  distinctIds: null,
  lanes: new Set(lanes.filter(lane => lane !== 'historical')),
  properties: [],
  rejected: true,
}

const bytes = (value: unknown) => Buffer.from(`${JSON.stringify(value)}\n`)
const messages: LiveMessages = {
  event: (event, lane, offset) => bytes(['event', event.distinctId, `${lane}:${offset}`, event.setJson ?? '']),
  reject: reject => bytes(['rejected', reject.reason]),
  skipped: counts => bytes(['skipped', counts]),
  lost: (lane, reason) => bytes(['lost', lane, reason]),
  end: reason => bytes(['end', reason]),
  heartbeat: bytes(['beat']),
}

/** Takes messages at once, or when the test says so. */
function aReader(takesAtOnce = true) {
  const heard: unknown[][] = []
  const waiting: (() => void)[] = []
  const hear = (message: Uint8Array) => void heard.push(JSON.parse(Buffer.from(message).toString()))
  const reader: LiveReader = {
    begin: offsets => void heard.push(['begin', offsets]),
    write: (batch, taken) => {
      batch.forEach(hear)
      if (takesAtOnce) taken()
      else waiting.push(taken)
    },
    end: hear,
    drop: () => void heard.push(['drop']),
  }
  const of = (kind: string) => heard.filter(message => message[0] === kind)
  return { reader, heard, of, take: () => waiting.shift()?.() }
}

function aView(over: { watchersMax?: number; watchersPerProjectMax?: number; log?: Partial<EventLogReader> } = {}) {
  const time = movedTime()
  const metrics = createMetrics()
  const log = createMemoryEventLog({ nowMs: time.monotonicNowMs })
  const live = createLiveEvents({
    watchersMax: 100,
    watchersPerProjectMax: 100,
    eventsPerSecondMax: 200,
    ...over,
    log: { ...log, ...over.log },
    messages,
    metrics,
    logger: silentLogger(),
    nowMs: time.monotonicNowMs,
    workedMs: time.monotonicNowMs,
    ...time,
  })
  const enter = (request: Partial<LiveRequest> = {}) =>
    live.enter({ projectId: 1, filter: everything, accessKey: 'k', whyNot: async () => null, ...request })
  return {
    live,
    log,
    time,
    enter,
    watch: async (request: Partial<LiveRequest> = {}, takesAtOnce = true) => {
      const entered = await enter(request)
      assert.ok(entered.ok)
      const watcher = aReader(takesAtOnce)
      entered.value.watch(watcher.reader)
      return { ...watcher, leave: entered.value.leave }
    },
    /** Accepts events and says so, as the log of this front does. */
    accept: async (events: readonly CapturedEvent[]) => {
      await log.append('main', encodedEvents(events))
      live.wake('main')
    },
    open: async () => (await metrics.liveViews.get()).values[0]!.value,
    dropped: async () => (await metrics.liveViewsDropped.get()).values[0]!.value,
  }
}

const someEvents = (count: number, over: Partial<CapturedEvent> = {}) =>
  Array.from({ length: count }, (_, n) => aCapturedEvent(n, over))
const sum = (skipped: unknown[][]) =>
  skipped.flatMap(([, counts]) => Object.values(counts as object)).reduce((total, count) => total + count, 0)

describe('the live view', () => {
  it('shows what is accepted from now on, of the own project alone, once and in order', async () => {
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

  it('finds by itself what other processes append, within a quarter of a second', async () => {
    const { watch, log, time } = aView()
    const { of } = await watch()
    await time.move(1_000)
    await log.append('main', encodedEvents([aCapturedEvent(1)]))
    await time.move(250)
    assert.equal(of('event').length, 1)
  })

  it('shows to one who comes later only what comes later', async () => {
    const { watch, log, time } = aView()
    const first = await watch()
    await time.move(50)
    // Nobody tells of it: it is read behind the second one's coming.
    await log.append('main', encodedEvents([aCapturedEvent(1)]))
    const second = await watch()
    await log.append('main', encodedEvents([aCapturedEvent(2)]))
    await time.move(300)
    assert.equal(first.of('event').length, 2)
    assert.deepEqual(second.heard, [
      ['begin', { main: 1 }],
      ['event', 'person-2', 'main:1', ''],
    ])
  })

  it('reads the lane of imports only while somebody asks for it', async () => {
    const read: string[] = []
    const inner = createMemoryEventLog({ nowMs: () => 0 })
    const { watch, time } = aView({
      log: {
        ...inner,
        readRuns: (lane, ...rest) => {
          read.push(lane)
          return inner.readRuns(lane, ...rest)
        },
      },
    })
    await watch()
    await time.move(300)
    assert.deepEqual([...new Set(read)], ['main'])
    const both = await watch({ filter: { ...everything, lanes: new Set(lanes) } })
    await inner.append('historical', encodedEvents([aCapturedEvent(1, { lane: 'historical' })]))
    await time.move(300)
    assert.deepEqual(both.of('event'), [['event', 'person-1', 'historical:0', '']])
    both.leave()
    read.length = 0
    await time.move(1_000)
    assert.deepEqual([...new Set(read)], ['main'])
  })

  it('reads nothing and sets no timer while nobody watches', async () => {
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

  it('shows rejects beside events', async () => {
    const { watch, log, live, time } = aView()
    const [all, quiet] = [await watch(), await watch({ filter: { ...everything, rejected: false } })]
    const encoder = new RecordEncoder()
    encoder.addReject(aCapturedReject())
    encoder.addReject(aCapturedReject({ projectId: 2 }))
    await log.append('main', encoder.finish())
    live.wake('main')
    await time.move(50)
    assert.deepEqual(all.of('rejected'), [['rejected', 'missing_event_name']])
    assert.deepEqual(quiet.of('rejected'), [])
  })

  it('shows so many events of a second and counts the others: together they are all that matched', async () => {
    const { watch, accept, time } = aView()
    const [all, some] = [await watch(), await watch({ filter: { ...everything, events: new Set(['rare']) } })]
    const perSecond = 3_000
    for (let n = 0; n < 30; n++) {
      await accept([...someEvents(perSecond / 10), aCapturedEvent(1, { name: 'rare' })])
      await time.move(100)
    }
    await time.move(1_000)
    assert.deepEqual([some.of('event').length, some.of('skipped').length], [30, 0])
    const shown = all.of('event').length
    assert.ok(shown >= 600 && shown <= 1_000, `${shown} shown in 3 s`)
    assert.equal(shown + sum(all.of('skipped')), 30 * (perSecond / 10 + 1))
    assert.ok(all.of('skipped').length <= 5, 'told once a second')
  })

  it('shows nothing to one that takes too little until it took some, and counts what came meanwhile', async () => {
    const { watch, accept, time } = aView()
    const [slow, quick] = [await watch({}, false), await watch()]
    const large = { setJson: 'x'.repeat(60 * 1024) }
    for (let n = 0; n < 4; n++) {
      await accept(someEvents(5, large))
      await time.move(1_000)
    }
    assert.equal(quick.of('event').length, 20)
    const before = slow.of('event').length
    assert.ok(before <= 6, `${before} waited`)
    for (let n = 0; n < 10; n++) slow.take()
    await accept(someEvents(1, large))
    await time.move(1_500)
    assert.equal(slow.of('event').length, before + 1)
    assert.deepEqual(slow.of('skipped'), [['skipped', { rate: 0, slow: 20 - before, too_large: 0 }]])
    slow.leave()
  })

  it('ends one that takes nothing for twenty seconds, with the reason, and no other', async () => {
    const { watch, accept, time, dropped, open } = aView()
    const [stuck, idle] = [await watch({}, false), await watch()]
    await accept([aCapturedEvent(1)])
    await time.move(18_000)
    assert.equal(await dropped(), 0)
    await time.move(5_000)
    assert.deepEqual(stuck.heard.at(-1), ['end', 'too_slow'])
    assert.deepEqual([await dropped(), await open()], [1, 1])
    assert.equal(idle.of('end').length, 0)
  })

  it('beats when there is nothing to show', async () => {
    const { watch, accept, time } = aView()
    const { of } = await watch()
    await time.move(46_000)
    assert.equal(of('beat').length, 3)
    for (let n = 0; n < 20; n++) {
      await accept([aCapturedEvent(n)])
      await time.move(1_000)
    }
    assert.equal(of('beat').length, 3)
  })

  it('ends whoever may not watch any more, when told of a change or within seconds', async () => {
    const { watch, live, time } = aView()
    let asked = 0
    let why: 'access_ended' | 'project_deleted' | null = null
    const whyNot = async () => {
      asked++
      return why
    }
    const [first, second, other] = [await watch({ whyNot }), await watch({ whyNot }), await watch({ accessKey: 'o' })]
    live.recheck()
    await time.move(10)
    assert.equal(asked, 1, 'once for all with the same key')
    why = 'access_ended'
    live.recheck()
    await time.move(10)
    assert.deepEqual(
      [first.heard.at(-1), second.heard.at(-1)],
      [
        ['end', 'access_ended'],
        ['end', 'access_ended'],
      ],
    )
    const third = await watch({ projectId: 2, whyNot: async () => 'project_deleted' })
    await time.move(6_000)
    assert.deepEqual(third.heard.at(-1), ['end', 'project_deleted'])
    assert.equal(other.of('end').length, 0)
  })

  it('believes a watcher for half a minute while nobody can say whether it may watch', async () => {
    const { watch, time } = aView()
    const { heard, of } = await watch({
      whyNot: () => Promise.reject(new PortError('state', 'unavailable', new Error('down'))),
    })
    await time.move(25_000)
    assert.equal(of('end').length, 0)
    await time.move(12_000)
    assert.deepEqual(heard.at(-1), ['end', 'access_ended'])
  })

  it('takes as many as it may, in all and of a project, and again when one leaves', async () => {
    const { enter } = aView({ watchersMax: 3, watchersPerProjectMax: 2 })
    const first = await enter()
    assert.ok(first.ok && (await enter()).ok)
    assert.deepEqual(await enter(), { ok: false, error: 'project_full' })
    assert.ok((await enter({ projectId: 2 })).ok)
    assert.deepEqual(await enter({ projectId: 3 }), { ok: false, error: 'full' })
    first.value.leave()
    assert.ok((await enter()).ok)
  })

  it('goes on after the log could not be read, and misses nothing', async () => {
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
    await inner.append('main', encodedEvents([aCapturedEvent(1)]))
    await time.move(3_000)
    assert.equal(of('event').length, 0)
    isDown = false
    await time.move(1_500)
    assert.equal(of('event').length, 1)
    assert.equal(of('lost').length, 0)
  })

  it('says so when it goes on at the end of a log that came back from an older copy, or cannot be read', async () => {
    for (const code of ['conflict', 'corrupt'] as const) {
      let isBroken = false
      const inner = createMemoryEventLog({ nowMs: () => 0 })
      const { watch, time } = aView({
        log: {
          ...inner,
          readRuns: (lane, from, max) =>
            isBroken && from < 2 ? Promise.reject(new PortError('event-log', code)) : inner.readRuns(lane, from, max),
        },
      })
      const { heard } = await watch()
      isBroken = true
      await inner.append('main', encodedEvents(someEvents(2)))
      await time.move(1_500)
      await inner.append('main', encodedEvents([aCapturedEvent(7)]))
      await time.move(2_000)
      assert.deepEqual(heard.slice(1), [
        ['lost', 'main', 'unreadable'],
        ['event', 'person-7', 'main:2', ''],
      ])
    }
  })

  it('shows what happens now, and says so, when more comes than can be read', async () => {
    // Each read takes 100 ms here, and brings half a mebibyte.
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
    for (let n = 0; n < backlog.length; n += 100) await inner.append('main', encodedEvents(backlog.slice(n, n + 100)))
    await time.move(10_000)
    await inner.append('main', encodedEvents([aCapturedEvent(1)]))
    await time.move(3_000)
    assert.deepEqual([...new Set(heard.slice(1).map(([kind]) => kind))], ['lost', 'event'])
    assert.deepEqual(of('lost'), [['lost', 'main', 'behind']])
  })

  it('works in slices of a few milliseconds and leaves most of the time to others', async () => {
    const { watch, accept, time } = aView()
    let insideMs = 0
    let longestMs = 0
    // Each look at an event takes 0.1 ms.
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

  it('ends everything at once when it closes, gives up what is stuck, and takes nobody any more', async () => {
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
