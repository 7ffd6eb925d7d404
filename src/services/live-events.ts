// Who watches what a project's clients send, as it is accepted. One per front. It reads the log's end (`log-tail.ts`) only
// while somebody watches, so that watching costs capture nothing; what a message looks like and where it goes is the
// caller's business. Nothing waits for a watcher: what it cannot be shown is counted and told, so that what is shown and
// what is counted are together exactly what matched.

import {
  type CapturedEvent,
  type CapturedReject,
  type LogLane,
  type LogRecord,
  logLaneOf,
} from '#core/events/captured-event.ts'
import { LiveEvent, type LiveFilter, type LiveMatch, rejectMatches } from '#core/live/live-filter.ts'
import { kindEvent, kindReject } from '#core/log/record-layout.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { EventLogReader } from '#ports/event-log.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import { type LogTail, startLogTail } from './log-tail.ts'

/** `rate`: more than may be shown in a second; `slow`: the watcher takes too little; `too_large`: see `LiveMatch`. */
export const skipReasons = ['rate', 'slow', 'too_large'] as const
export type SkipReason = (typeof skipReasons)[number]
/** Since the last time it was told. */
export type Skipped = Readonly<Record<SkipReason, number>>

export type LiveEndReason = 'access_ended' | 'project_deleted' | 'too_slow' | 'stopping' | 'failed'

/** Of the lanes that are watched: what is appended from there on is shown. */
export type LiveOffsets = Readonly<Partial<Record<LogLane, number>>>

export interface LiveReader {
  /** Before anything else. */
  begin(offsets: LiveOffsets): void
  /** @param taken called once nothing of it waits in this process any more. */
  write(messages: readonly Uint8Array[], taken: () => void): void
  /** Nothing comes behind this. What waits may still be taken for a moment. */
  end(last: Uint8Array): void
  /** What waits is given up. */
  drop(): void
}

/** What watchers are told, as bytes that all of them share. */
export interface LiveMessages {
  event(event: CapturedEvent, lane: LogLane, offset: number): Uint8Array
  reject(reject: CapturedReject, lane: LogLane, offset: number): Uint8Array
  skipped(counts: Skipped): Uint8Array
  /** Nobody knows how many there were. */
  lost(lane: LogLane, reason: 'behind' | 'unreadable'): Uint8Array
  end(reason: LiveEndReason): Uint8Array
  readonly heartbeat: Uint8Array
}

export interface LiveRequest {
  readonly projectId: number
  readonly filter: LiveFilter
  /** Watchers that may watch for the same reason have the same: they are asked about once. */
  readonly accessKey: string
  /** Why it may not go on, or null. @throws PortError when that cannot be found out. */
  readonly whyNot: () => Promise<'access_ended' | 'project_deleted' | null>
}

export interface LivePlace {
  /** Begins to show. Once. */
  watch(reader: LiveReader): void
  leave(): void
}

export type LiveRefusal = 'closed' | 'full' | 'project_full'

export interface LiveEvents {
  /** Takes a place, which has to be left again. @throws PortError when the log cannot be read. */
  enter(request: LiveRequest): Promise<Result<LivePlace, LiveRefusal>>
  /** Tells that a lane has something new. Cheap and repeatable. */
  wake(lane: LogLane): void
  /** Ends those that may not watch any more: called when keys or projects changed. */
  recheck(): void
  /** Ends every watcher and takes no more. Resolves when the log is not read any more. */
  close(): Promise<void>
}

export interface LiveEventsOptions {
  readonly log: Pick<EventLogReader, 'readRuns' | 'status'>
  readonly messages: LiveMessages
  readonly watchersMax: number
  readonly watchersPerProjectMax: number
  readonly eventsPerSecondMax: number
  readonly metrics: Pick<Metrics, 'liveViews' | 'liveViewsDropped'>
  readonly logger: Logger
  readonly nowMs: () => number
  readonly monotonicNowMs: () => number
  /** Repeats until it is cancelled. */
  readonly startTimer: (callback: () => void, everyMs: number) => { cancel(): void }
  readonly startTimeout: (callback: () => void, afterMs: number) => { cancel(): void }
}

interface Watcher {
  readonly request: LiveRequest
  readonly from: ReadonlyMap<LogLane, number>
  readonly reader: LiveReader
  /** Written when the slice is over. */
  batch: Uint8Array[]
  /** In this process, `batch` included. */
  waitingBytes: number
  /** Of what may be shown now: events, with fractions. */
  allowance: number
  allowanceAtMs: number
  skipped: Record<SkipReason, number>
  /** When it last took something, or had nothing to take. */
  movedAtMs: number
  wroteAtMs: number
  /** When it was last known that it may watch. */
  allowedAtMs: number
  isGone: boolean
}

/** Not replays: they are nothing that a person reads. */
const shownKinds: ReadonlySet<number> = new Set([kindEvent, kindReject])
/** Beyond it a watcher is shown nothing until it took some. One event more may wait, and one notice. */
const waitingBytesMax = 256 * 1024
const tickMs = 1_000
const heartbeatMs = 15_000
/** Whoever takes nothing for so long is stuck. */
const stuckMs = 20_000
const recheckMs = 5_000
/** How long a watcher is believed while nobody can say whether it may watch. */
const believedMs = 30_000

export function createLiveEvents(options: LiveEventsOptions): LiveEvents {
  const { log, messages, metrics, logger, monotonicNowMs, eventsPerSecondMax } = options
  const watchersOf = new Map<number, Set<Watcher>>()
  const tails = new Map<LogLane, LogTail>()
  /** Those that stop, too. */
  const tailsEnding = new Set<Promise<void>>()
  const placesOf = new Map<number, number>()
  const written = new Set<Watcher>()
  let placeCount = 0
  let timer: { cancel(): void } | null = null
  let isChecking = false
  let isCheckDue = false
  let checkedAtMs = 0
  let isClosed = false

  return {
    async enter(request) {
      const { projectId } = request
      if (isClosed) return err('closed')
      if (placeCount >= options.watchersMax) return err('full')
      if ((placesOf.get(projectId) ?? 0) >= options.watchersPerProjectMax) return err('project_full')
      takePlace(projectId, 1)
      let watcher: Watcher | null = null
      let hasLeft = false
      const leave = () => {
        if (hasLeft) return
        hasLeft = true
        takePlace(projectId, -1)
        if (watcher !== null) remove(watcher)
      }
      try {
        const lanes = [...new Set([...request.filter.lanes].map(logLaneOf))]
        const ends = await Promise.all(lanes.map(async lane => [lane, (await log.status(lane, 0)).endOffset] as const))
        if (isClosed) {
          leave()
          return err('closed')
        }
        return ok({
          watch: reader => {
            if (!hasLeft) watcher = add(request, ends, reader)
          },
          leave,
        })
      } catch (error) {
        leave()
        throw error
      }
    },
    wake: lane => tails.get(lane)?.wake(),
    recheck: () => void checkAll(),
    async close() {
      isClosed = true
      for (const watcher of everyone()) end(watcher, 'stopping')
      await Promise.all(tailsEnding)
    },
  }

  function takePlace(projectId: number, change: 1 | -1): void {
    placeCount += change
    const count = (placesOf.get(projectId) ?? 0) + change
    if (count === 0) placesOf.delete(projectId)
    else placesOf.set(projectId, count)
  }

  function everyone(): Watcher[] {
    return [...watchersOf.values()].flatMap(watchers => [...watchers])
  }

  function add(request: LiveRequest, ends: readonly (readonly [LogLane, number])[], reader: LiveReader): Watcher {
    const nowMs = monotonicNowMs()
    const from = new Map(ends.map(([lane, end]) => [lane, Math.max(end, tails.get(lane)?.position ?? 0)]))
    const watcher: Watcher = {
      request,
      from,
      reader,
      batch: [],
      waitingBytes: 0,
      allowance: eventsPerSecondMax,
      allowanceAtMs: nowMs,
      skipped: nothingSkipped(),
      movedAtMs: nowMs,
      wroteAtMs: nowMs,
      allowedAtMs: nowMs,
      isGone: false,
    }
    const watchers = watchersOf.get(request.projectId) ?? new Set()
    watchersOf.set(request.projectId, watchers.add(watcher))
    metrics.liveViews.inc()
    reader.begin(Object.fromEntries(from))
    // Closed since it came in: it is told so.
    if (isClosed) end(watcher, 'stopping')
    else {
      timer ??= options.startTimer(tick, tickMs)
      for (const [lane, offset] of from) if (!tails.has(lane)) startTail(lane, offset)
    }
    return watcher
  }

  function remove(watcher: Watcher): void {
    if (watcher.isGone) return
    watcher.isGone = true
    written.delete(watcher)
    metrics.liveViews.dec()
    const watchers = watchersOf.get(watcher.request.projectId)!
    watchers.delete(watcher)
    if (watchers.size === 0) watchersOf.delete(watcher.request.projectId)
    for (const lane of watcher.from.keys())
      if (!everyone().some(({ from }) => from.has(lane))) {
        tails.get(lane)?.stop()
        tails.delete(lane)
      }
    if (watchersOf.size > 0) return
    timer?.cancel()
    timer = null
  }

  function startTail(lane: LogLane, fromOffset: number): void {
    const { nowMs, startTimeout } = options
    const tail = startLogTail({
      log,
      lane,
      fromOffset,
      isWanted: (projectId, kind) => shownKinds.has(kind) && watchersOf.has(projectId),
      take: (record, offset) => show(record, lane, offset),
      rest: writeAll,
      onLost: reason => {
        const message = messages.lost(lane, reason)
        for (const watcher of everyone()) if (watcher.from.has(lane)) push(watcher, message)
        writeAll()
      },
      onFailed: () => {
        for (const watcher of everyone()) if (watcher.from.has(lane)) end(watcher, 'failed')
      },
      nowMs,
      monotonicNowMs,
      startTimeout,
      logger,
    })
    tails.set(lane, tail)
    const stopped = tail.ended.finally(() => tailsEnding.delete(stopped))
    tailsEnding.add(stopped)
  }

  /** Damaged records are left to the worker. */
  function show(record: LogRecord, lane: LogLane, offset: number): void {
    if (record.kind === 'event') {
      const event = new LiveEvent(record.event)
      const encode = () => messages.event(record.event, lane, offset)
      offer(record.event.projectId, lane, offset, filter => event.matches(filter), encode)
    } else if (record.kind === 'reject') {
      const { reject } = record
      const encode = () => messages.reject(reject, lane, offset)
      offer(reject.projectId, lane, offset, filter => (rejectMatches(filter, reject) ? 'yes' : 'no'), encode)
    }
  }

  function offer(
    projectId: number,
    lane: LogLane,
    offset: number,
    match: (filter: LiveFilter) => LiveMatch,
    encode: () => Uint8Array,
  ): void {
    let message: Uint8Array | null = null
    for (const watcher of watchersOf.get(projectId) ?? []) {
      const from = watcher.from.get(lane)
      if (from === undefined || offset < from) continue
      const matches = match(watcher.request.filter)
      if (matches === 'no') continue
      const skipped = matches === 'too_large' ? matches : whySkipped(watcher)
      if (skipped !== null) watcher.skipped[skipped]++
      else {
        message ??= encode()
        push(watcher, message)
      }
    }
  }

  function whySkipped(watcher: Watcher): SkipReason | null {
    if (watcher.waitingBytes >= waitingBytesMax) return 'slow'
    const nowMs = monotonicNowMs()
    const earned = ((nowMs - watcher.allowanceAtMs) / 1_000) * eventsPerSecondMax
    watcher.allowance = Math.min(watcher.allowance + earned, eventsPerSecondMax)
    watcher.allowanceAtMs = nowMs
    if (watcher.allowance < 1) return 'rate'
    watcher.allowance--
    return null
  }

  function push(watcher: Watcher, message: Uint8Array): void {
    if (watcher.waitingBytes === 0) watcher.movedAtMs = monotonicNowMs()
    watcher.batch.push(message)
    watcher.waitingBytes += message.length
    written.add(watcher)
  }

  function writeAll(): void {
    for (const watcher of written) write(watcher)
    written.clear()
  }

  function write(watcher: Watcher): void {
    const { batch } = watcher
    if (batch.length === 0) return
    const bytes = batch.reduce((sum, message) => sum + message.length, 0)
    watcher.batch = []
    watcher.wroteAtMs = monotonicNowMs()
    watcher.reader.write(batch, () => {
      watcher.waitingBytes -= bytes
      watcher.movedAtMs = monotonicNowMs()
    })
  }

  function tick(): void {
    const nowMs = monotonicNowMs()
    for (const watcher of everyone()) {
      if (watcher.waitingBytes > 0 && nowMs - watcher.movedAtMs >= stuckMs) {
        metrics.liveViewsDropped.inc()
        end(watcher, 'too_slow')
      } else if (watcher.waitingBytes < waitingBytesMax) {
        tellSkipped(watcher)
        if (nowMs - watcher.wroteAtMs >= heartbeatMs) push(watcher, messages.heartbeat)
      }
    }
    writeAll()
    if (nowMs - checkedAtMs >= recheckMs) void checkAll()
  }

  function tellSkipped(watcher: Watcher): void {
    if (skipReasons.every(reason => watcher.skipped[reason] === 0)) return
    push(watcher, messages.skipped(watcher.skipped))
    watcher.skipped = nothingSkipped()
  }

  function end(watcher: Watcher, reason: LiveEndReason): void {
    const isStuck = monotonicNowMs() - watcher.movedAtMs >= tickMs && watcher.waitingBytes > 0
    tellSkipped(watcher)
    write(watcher)
    remove(watcher)
    // A stop waits for nobody who does not read.
    if (reason === 'stopping' && isStuck) watcher.reader.drop()
    else watcher.reader.end(messages.end(reason))
  }

  /** One round at a time, and another one for what changed meanwhile. */
  async function checkAll(): Promise<void> {
    checkedAtMs = monotonicNowMs()
    isCheckDue = true
    if (isChecking) return
    isChecking = true
    while (isCheckDue) {
      isCheckDue = false
      const groups = Map.groupBy(everyone(), ({ request }) => `${request.projectId} ${request.accessKey}`)
      for (const watchers of groups.values()) await check(watchers)
    }
    isChecking = false
  }

  async function check(watchers: readonly Watcher[]): Promise<void> {
    let reason: LiveEndReason | null
    try {
      reason = await watchers[0]!.request.whyNot()
    } catch (error) {
      logger.warn({ err: error }, 'whether a live view may go on cannot be found out')
      for (const watcher of watchers)
        if (monotonicNowMs() - watcher.allowedAtMs >= believedMs && !watcher.isGone) end(watcher, 'access_ended')
      return
    }
    const nowMs = monotonicNowMs()
    for (const watcher of watchers) {
      if (reason === null) watcher.allowedAtMs = nowMs
      else if (!watcher.isGone) end(watcher, reason)
    }
  }
}

function nothingSkipped(): Record<SkipReason, number> {
  return { rate: 0, slow: 0, too_large: 0 }
}
