// A live view over a memory log with a clock that the test moves, and its watchers.

import assert from 'node:assert/strict'
import { type CapturedEvent, lanes } from '#core/events/captured-event.ts'
import type { LiveFilter } from '#core/live/live-filter.ts'
import type { EventLogReader } from '#ports/log/event-log.ts'
import { createLiveEventBroadcaster } from '#services/live/live-events.ts'
import type { LiveMessages, LiveReader, LiveRequest } from '#services/live/live-watcher.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { createMemoryEventLog } from './memory/memory-event-log.ts'
import { movedTime } from './moved-time.ts'
import { aCapturedEvent, encodedEvents } from './values.ts'

export const everything: LiveFilter = {
  events: null,
  distinctIds: null,
  lanes: new Set(lanes.filter(lane => lane !== 'historical')),
  imports: false,
  properties: [],
  rejected: true,
}

const bytes = (value: unknown) => Buffer.from(`${JSON.stringify(value)}\n`)
const messages: LiveMessages = {
  event: (event, stream, offset) => bytes(['event', event.distinctId, `${stream}:${offset}`, event.setJson ?? '']),
  reject: reject => bytes(['rejected', reject.reason]),
  skipped: counts => bytes(['skipped', counts]),
  lost: (stream, reason) => bytes(['lost', stream, reason]),
  end: reason => bytes(['end', reason]),
  heartbeat: bytes(['beat']),
}

/** A watcher that takes messages at once, or only when the test calls `take`. */
export function aReader(takesAtOnce = true) {
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

export function aView(
  over: {
    watchersMax?: number
    watchersPerProjectMax?: number
    log?: Partial<EventLogReader>
    gapAfter?: () => number
  } = {},
) {
  const time = movedTime()
  const metrics = createMetrics()
  const log = createMemoryEventLog({ nowMs: time.monotonicNowMs, ...(over.gapAfter && { gapAfter: over.gapAfter }) })
  const live = createLiveEventBroadcaster({
    watchersMax: 100,
    watchersPerProjectMax: 100,
    eventsPerSecondMax: 200,
    ...over,
    log: { ...log, ...over.log },
    messages,
    metrics,
    logger: createSilentLogger(),
    nowMs: time.monotonicNowMs,
    workedMs: time.monotonicNowMs,
    ...time,
  })
  const enter = (request: Partial<LiveRequest> = {}) =>
    live.enter({ projectId: 1, filter: everything, accessKey: 'k', findEndReason: async () => null, ...request })
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
    /** Appends events and wakes the view, as a front does. */
    accept: async (events: readonly CapturedEvent[]) => {
      await log.append('live', encodedEvents(events))
      live.wake('main')
    },
    open: async () => (await metrics.liveViews.get()).values[0]!.value,
    dropped: async () => (await metrics.liveViewsDropped.get()).values[0]!.value,
  }
}

export const someEvents = (count: number, over: Partial<CapturedEvent> = {}) =>
  Array.from({ length: count }, (_, n) => aCapturedEvent(n, over))
export const sum = (skipped: unknown[][]) =>
  skipped.flatMap(([, counts]) => Object.values(counts as object)).reduce((total, count) => total + count, 0)
