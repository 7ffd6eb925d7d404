// Shows watchers what a project's clients send, as it is accepted. There is one live view per front. It reads the end of
// the log (`log-tail.ts`), only while there are watchers, so watching costs capture nothing. The caller decides what a
// message looks like and where it is sent. Nothing waits for a watcher: events that cannot be shown to a watcher are
// counted and the count is sent to the watcher, so shown and counted events together are exactly those that matched.

import type { DecodedRecord } from '#core/events/captured-event.ts'
import { findTrafficOfLane, type LogStream } from '#core/events/log-stream.ts'
import { LiveEvent, type LiveFilter, type LiveMatch, matchesLiveFilter } from '#core/live/live-filter.ts'
import { kindEvent, kindReject } from '#core/log/record-layout.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Timer, Timers } from '#ports/clock.ts'
import type { EventLogReader } from '#ports/log/event-log.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import {
  type LiveEndReason,
  type LiveReader,
  type LiveRequest,
  LiveWatcher,
  type LiveWatcherOptions,
} from './live-watcher.ts'
import { type LogTail, startLogTail } from './log-tail.ts'

export interface LiveSlot {
  /** Begins to show events. Call it once. */
  watch(reader: LiveReader): void
  leave(): void
}

export type LiveRefusal = 'closed' | 'full' | 'project_full'

export type LiveEvents = ReturnType<typeof createLiveEventBroadcaster>

export interface LiveEventsOptions extends Timers, LiveWatcherOptions {
  readonly log: Pick<EventLogReader, 'listStreams' | 'readRuns' | 'readStreamStatus'>
  readonly watchersMax: number
  readonly watchersPerProjectMax: number
  readonly metrics: Pick<Metrics, 'liveViews' | 'liveViewsDropped'>
  readonly logger: Logger
  readonly nowMs: () => number
  /** As `LogTailOptions.workedMs`. */
  readonly workedMs: () => number
}

/** Recordings are left out, since they are not readable as text. */
const shownKinds: ReadonlySet<number> = new Set([kindEvent, kindReject])
const tickMs = 1_000
const recheckMs = 5_000
/** How long a watcher may stay while its permission cannot be checked. */
const uncheckedMsMax = 30_000

export function createLiveEventBroadcaster(options: LiveEventsOptions) {
  const { log, messages, metrics, logger, monotonicNowMs } = options
  const watchersOf = new Map<number, Set<LiveWatcher>>()
  const tails = new Map<LogStream, LogTail>()
  /** Tails that have not ended yet, including those that are stopping. */
  const tailsEnding = new Set<Promise<void>>()
  const placesOf = new Map<number, number>()
  const written = new Set<LiveWatcher>()
  let placeCount = 0
  let timer: Timer | null = null
  let isChecking = false
  let isCheckDue = false
  let checkedAtMs = 0
  let isClosed = false

  return {
    /** Takes a place, which the caller must leave again. @throws PortError when the log cannot be read. */
    async enter(request: LiveRequest): Promise<Result<LiveSlot, LiveRefusal>> {
      const { projectId } = request
      if (isClosed) return err('closed')
      if (placeCount >= options.watchersMax) return err('full')
      if ((placesOf.get(projectId) ?? 0) >= options.watchersPerProjectMax) return err('project_full')
      changePlaceCount(projectId, 1)
      let watcher: LiveWatcher | null = null
      let hasLeft = false
      const leave = () => {
        if (hasLeft) return
        hasLeft = true
        changePlaceCount(projectId, -1)
        if (watcher !== null) remove(watcher)
      }
      try {
        const traffics = new Set([...request.filter.lanes].map(findTrafficOfLane))
        const streams = (await log.listStreams()).filter(({ traffic }) => traffics.has(traffic))
        const ends = await Promise.all(
          streams.map(async ({ stream }) => [stream, (await log.readStreamStatus(stream, 0)).endOffset] as const),
        )
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
    /** Call when a stream has new records. Cheap and repeatable. */
    wake: (stream: LogStream) => tails.get(stream)?.wake(),
    /** Ends watchers that may no longer watch. Call it when keys or projects changed. */
    recheck: () => void checkAll(),
    /** Ends every watcher and accepts no more watchers. Resolves when the log is no longer read. */
    async close() {
      isClosed = true
      for (const watcher of listWatchers()) end(watcher, 'stopping')
      await Promise.all(tailsEnding)
    },
  }

  function changePlaceCount(projectId: number, change: 1 | -1): void {
    placeCount += change
    const count = (placesOf.get(projectId) ?? 0) + change
    if (count === 0) placesOf.delete(projectId)
    else placesOf.set(projectId, count)
  }

  function listWatchers(): LiveWatcher[] {
    return [...watchersOf.values()].flatMap(watchers => [...watchers])
  }

  function add(request: LiveRequest, ends: readonly (readonly [LogStream, number])[], reader: LiveReader): LiveWatcher {
    const from = new Map(ends.map(([stream, end]) => [stream, Math.max(end, tails.get(stream)?.position ?? 0)]))
    const watcher = new LiveWatcher(request, from, reader, options)
    const watchers = watchersOf.get(request.projectId) ?? new Set()
    watchersOf.set(request.projectId, watchers.add(watcher))
    metrics.liveViews.inc()
    // The view was closed after this watcher entered, so `close` has not ended it.
    if (isClosed) end(watcher, 'stopping')
    else {
      timer ??= options.startTimer(tick, tickMs)
      for (const [stream, offset] of from) if (!tails.has(stream)) startTail(stream, offset)
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
    for (const stream of watcher.from.keys())
      if (!listWatchers().some(({ from }) => from.has(stream))) {
        tails.get(stream)?.stop()
        tails.delete(stream)
      }
    if (watchersOf.size > 0) return
    timer?.cancel()
    timer = null
  }

  function startTail(stream: LogStream, fromOffset: number): void {
    const { nowMs, workedMs, startTimeout } = options
    const tail = startLogTail({
      log,
      stream,
      fromOffset,
      isWanted: (projectId, kind) => shownKinds.has(kind) && watchersOf.has(projectId),
      take: (record, offset) => show(record, stream, offset),
      rest: writeAll,
      onLost: reason => {
        const message = messages.lost(stream, reason)
        for (const watcher of listWatchers()) if (watcher.from.has(stream)) push(watcher, message)
        writeAll()
      },
      onFailed: () => {
        for (const watcher of listWatchers()) if (watcher.from.has(stream)) end(watcher, 'failed')
      },
      nowMs,
      monotonicNowMs,
      workedMs,
      startTimeout,
      logger,
    })
    tails.set(stream, tail)
    const stopped = tail.ended.finally(() => tailsEnding.delete(stopped))
    tailsEnding.add(stopped)
  }

  /** Damaged records are left to the worker. */
  function show(record: DecodedRecord, stream: LogStream, offset: number): void {
    if (record.kind === 'event') {
      const event = new LiveEvent(record.event)
      const encode = () => messages.event(record.event, stream, offset)
      offer(record.event.projectId, stream, offset, filter => event.matches(filter), encode)
    } else if (record.kind === 'reject') {
      const { reject } = record
      const encode = () => messages.reject(reject, stream, offset)
      offer(reject.projectId, stream, offset, filter => (matchesLiveFilter(filter, reject) ? 'yes' : 'no'), encode)
    }
  }

  function offer(
    projectId: number,
    stream: LogStream,
    offset: number,
    match: (filter: LiveFilter) => LiveMatch,
    encode: () => Uint8Array,
  ): void {
    const nowMs = monotonicNowMs()
    let message: Uint8Array | null = null
    for (const watcher of watchersOf.get(projectId) ?? []) {
      const from = watcher.from.get(stream)
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
    for (const watcher of listWatchers()) {
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

  /** Runs one round of checks at a time, and another round for changes made during it. */
  async function checkAll(): Promise<void> {
    checkedAtMs = monotonicNowMs()
    isCheckDue = true
    if (isChecking) return
    isChecking = true
    while (isCheckDue) {
      isCheckDue = false
      const groups = Map.groupBy(listWatchers(), ({ request }) => `${request.projectId} ${request.accessKey}`)
      for (const watchers of groups.values()) await check(watchers)
    }
    isChecking = false
  }

  async function check(watchers: readonly LiveWatcher[]): Promise<void> {
    let reason: LiveEndReason | null
    try {
      reason = await watchers[0]!.request.findEndReason()
    } catch (error) {
      logger.warn({ err: error }, 'cannot check whether a live view is still allowed')
      for (const watcher of watchers)
        if (monotonicNowMs() - watcher.allowedAtMs >= uncheckedMsMax && !watcher.isGone) end(watcher, 'access_ended')
      return
    }
    const nowMs = monotonicNowMs()
    for (const watcher of watchers) {
      if (reason === null) watcher.allowedAtMs = nowMs
      else if (!watcher.isGone) end(watcher, reason)
    }
  }
}
