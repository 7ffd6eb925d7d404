// Shows watchers what a project's clients send, as it is accepted. There is one per front. It reads the end of the log
// (`log-tail.ts`) only while somebody watches, so that watching costs capture nothing. The caller decides what a message
// looks like and where it goes. Nothing waits for a watcher: what it cannot be shown is counted, and it gets the count, so
// that what is shown and what is counted together are exactly what matched.

import { type DecodedRecord, type LogLane, logLaneOf } from '#core/events/captured-event.ts'
import { LiveEvent, type LiveFilter, type LiveMatch, rejectMatches } from '#core/live/live-filter.ts'
import { kindEvent, kindReject } from '#core/log/record-layout.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { EventLogReader } from '#ports/event-log.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import {
  type LiveEndReason,
  type LiveMessages,
  type LiveReader,
  type LiveRequest,
  LiveWatcher,
} from './live-watcher.ts'
import { type LogTail, startLogTail } from './log-tail.ts'

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
  /** As `LogTailOptions.workedMs`. */
  readonly workedMs: () => number
  /** Repeats until it is cancelled. */
  readonly startTimer: (callback: () => void, everyMs: number) => { cancel(): void }
  readonly startTimeout: (callback: () => void, afterMs: number) => { cancel(): void }
}

/** Not replays: they are nothing that a person reads. */
const shownKinds: ReadonlySet<number> = new Set([kindEvent, kindReject])
const tickMs = 1_000
const recheckMs = 5_000
/** How long a watcher goes on while it cannot be found out whether it still may. */
const believedMs = 30_000

export function createLiveEvents(options: LiveEventsOptions): LiveEvents {
  const { log, messages, metrics, logger, monotonicNowMs } = options
  const watchersOf = new Map<number, Set<LiveWatcher>>()
  const tails = new Map<LogLane, LogTail>()
  /** Those that stop, too. */
  const tailsEnding = new Set<Promise<void>>()
  const placesOf = new Map<number, number>()
  const written = new Set<LiveWatcher>()
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
      let watcher: LiveWatcher | null = null
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

  function everyone(): LiveWatcher[] {
    return [...watchersOf.values()].flatMap(watchers => [...watchers])
  }

  function add(request: LiveRequest, ends: readonly (readonly [LogLane, number])[], reader: LiveReader): LiveWatcher {
    const from = new Map(ends.map(([lane, end]) => [lane, Math.max(end, tails.get(lane)?.position ?? 0)]))
    const watcher = new LiveWatcher(request, from, reader, options)
    const watchers = watchersOf.get(request.projectId) ?? new Set()
    watchersOf.set(request.projectId, watchers.add(watcher))
    metrics.liveViews.inc()
    // The view was closed while this watcher came in, so it has to be told.
    if (isClosed) end(watcher, 'stopping')
    else {
      timer ??= options.startTimer(tick, tickMs)
      for (const [lane, offset] of from) if (!tails.has(lane)) startTail(lane, offset)
    }
    return watcher
  }

  function remove(watcher: LiveWatcher): void {
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
    const { nowMs, workedMs, startTimeout } = options
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
      workedMs,
      startTimeout,
      logger,
    })
    tails.set(lane, tail)
    const stopped = tail.ended.finally(() => tailsEnding.delete(stopped))
    tailsEnding.add(stopped)
  }

  /** Damaged records are left to the worker. */
  function show(record: DecodedRecord, lane: LogLane, offset: number): void {
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
    const nowMs = monotonicNowMs()
    let message: Uint8Array | null = null
    for (const watcher of watchersOf.get(projectId) ?? []) {
      const from = watcher.from.get(lane)
      if (from === undefined || offset < from) continue
      const matches = match(watcher.request.filter)
      if (matches === 'too_large') watcher.skip(matches)
      else if (matches === 'yes' && watcher.takesOneMore(nowMs)) {
        message ??= encode()
        push(watcher, message)
      }
    }
  }

  function push(watcher: LiveWatcher, message: Uint8Array): void {
    watcher.push(message)
    written.add(watcher)
  }

  function writeAll(): void {
    for (const watcher of written) watcher.write()
    written.clear()
  }

  function tick(): void {
    const nowMs = monotonicNowMs()
    for (const watcher of everyone()) {
      if (watcher.isStuck(nowMs)) {
        metrics.liveViewsDropped.inc()
        end(watcher, 'too_slow')
      } else watcher.tick(nowMs)
    }
    if (nowMs - checkedAtMs >= recheckMs) void checkAll()
  }

  function end(watcher: LiveWatcher, reason: LiveEndReason): void {
    remove(watcher)
    // A stop does not wait for watchers that do not read.
    if (reason === 'stopping' && watcher.isStuck(monotonicNowMs(), tickMs)) watcher.drop()
    else watcher.end(reason)
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

  async function check(watchers: readonly LiveWatcher[]): Promise<void> {
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
