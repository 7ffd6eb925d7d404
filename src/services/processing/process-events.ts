// The worker's main loop: turns the log's records into persons, groups and rows of the event store, chunk by chunk. It decides
// which stream is next and what to do if a store fails. `chunk-pace.ts` decides how large a chunk is, `process-one-chunk.ts`
// has its five steps, and `core/processing/process-chunk.ts` applies the events.

import { formatDeferredCursorName, type LogStream, type Traffic } from '#core/events/log-stream.ts'
import type { ProcessedUntil } from '#core/events/processed-until.ts'
import { addChunkCosts, findHeaviestProject, type ProjectCosts } from '#core/processing/project-costs.ts'
import type { Clock } from '#ports/clock.ts'
import type { Geoip } from '#ports/geoip.ts'
import type { EventLogReader, LogChunk, LogReadOptions } from '#ports/log/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import type { DeferredProjects } from '#ports/state/worker-state.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { FindImplicitJobs } from '../imports/implicit-jobs.ts'
import type { RunningCalls } from '../shared/running-calls.ts'
import { waitOrStop } from '../shared/wait-or-stop.ts'
import type { ChunkDeps, FaultPoint, ProcessingEventStore } from './chunk-deps.ts'
import { ChunkPace } from './chunk-pace.ts'
import { createLagMeter } from './lag-meter.ts'
import { collectLogLosses, warnOfDamagedRecords, warnOfMissingRecords } from './log-losses.ts'
import { type ChunkEnd, processOneChunk } from './process-one-chunk.ts'
import { type ProcessorLimits, processorLimits } from './processor-limits.ts'
import { type StreamCursor, StreamCursors } from './stream-cursors.ts'
import { retryWhileDown } from './wait-for-store.ts'

export type WorkerProcessingState =
  | 'starting'
  | 'ok'
  | 'waiting_for_log'
  | 'waiting_for_state'
  | 'waiting_for_event_store'
  | 'restoring_events'
  | 'stopped'

export interface ProcessorOptions {
  readonly log: Pick<
    EventLogReader,
    'listStreams' | 'read' | 'readRuns' | 'readStreamStatus' | 'listLosses' | 'recordLosses'
  >
  /** Id of the log. */
  readonly logId: string
  readonly state: ChunkStore
  readonly events: ProcessingEventStore
  /** Finds the implicit jobs, for imports without a job; if absent, such imports belong to no job. */
  readonly implicitJobs?: FindImplicitJobs
  /** If absent, no project is ever deferred. */
  readonly deferring?: {
    readonly projects: DeferredProjects
    /** Whether other projects exist that a heavy project would delay. @throws PortError */
    readonly hasOtherProjects: () => Promise<boolean>
  }
  /** Tracks chunks from their load to their commit. */
  readonly underWay?: RunningCalls
  /** Null if no locations are looked up. */
  readonly geoip: Geoip | null
  /** As in `ChunkDeps`. */
  readonly saltOf: ChunkDeps['saltOf']
  readonly clock: Clock
  readonly metrics: Metrics
  readonly logger: Logger
  /** Unique to each worker process. */
  readonly ownerId: string
  readonly limits?: Partial<ProcessorLimits>
  /** 0 ≤ x < 1, used for jitter only. */
  readonly random?: () => number
  readonly onStateChange?: (state: WorkerProcessingState) => void
  /** Called occasionally while there is work. */
  readonly onProcessedUntil?: (traffic: Traffic, until: ProcessedUntil) => void
  readonly onChunkCommitted?: () => void
  /** For tests: awaited between the steps of a chunk. A promise that never resolves simulates a crash. */
  readonly faultPoint?: (name: FaultPoint) => void | Promise<void>
}

export type Processor = ReturnType<typeof createEventProcessor>

/** A chunk and the cursor that read it. */
interface NextChunk {
  readonly cursor: StreamCursor
  readonly chunk: LogChunk
}

export function createEventProcessor(options: ProcessorOptions) {
  const { log, state, clock, metrics, logger, ownerId } = options
  const limits: ProcessorLimits = { ...processorLimits, ...options.limits }
  const random = options.random ?? Math.random
  const { deferring = null } = options
  const cursors = new StreamCursors({ log, state, ownerId, deferred: deferring?.projects ?? null })
  const pace = new ChunkPace(limits)
  const lag = createLagMeter({ log, cursors, clock, metrics, onProcessedUntil: options.onProcessedUntil })
  /** By cursor name: how many of the cursor's next records an earlier worker may have tried without committing them. */
  const perhapsTried = new Map<string, number>()
  let current: WorkerProcessingState = 'starting'
  let compareAtMs = 0
  let reportedUntilAtMs = 0
  /** The live cursor that had the last turn; live cursors take turns. */
  let lastTurn = ''
  /** Whether deferred projects have had a turn since the last turn of an import. */
  let areImportsNext = false

  function enter(next: WorkerProcessingState): void {
    if (next === current) return
    current = next
    options.onStateChange?.(next)
  }

  /**
   * Processes until `signal` aborts or another worker claims a stream. The current chunk is then either finished or has no
   * effect. Never rejects because a store fails: it waits and retries. Call it once.
   */
  async function run(signal: AbortSignal): Promise<'stopped' | 'not_owner'> {
    const lagTimer = setInterval(() => void measureLag(), limits.pollMs)
    lagTimer.unref()
    try {
      await retryPatiently(signal, 'waiting_for_log', () => cursors.list())
      for (const stream of new Set(cursors.all.map(cursor => cursor.stream))) await claim(stream, signal)
      while (!signal.aborted) {
        let next = await readNext(signal)
        if (next === null) {
          if ((await checkPositionsWhenDue(signal)) === 'not_owner') return 'not_owner'
          next = await waitForNext(signal)
        }
        if (next === null) continue
        const end = await processChunk(next, signal)
        if (end === 'not_owner') return 'not_owner'
        if (end === 'position_moved') await claimAgain(next.cursor, signal)
      }
      return 'stopped'
    } finally {
      clearInterval(lagTimer)
      enter('stopped')
    }
  }

  /** Claims all cursors of a stream: the worker that owns the stream owns both of its cursors. */
  async function claim(stream: LogStream, signal: AbortSignal): Promise<void> {
    await retryPatiently(signal, 'waiting_for_state', async () => {
      for (const cursor of cursors.all) {
        if (cursor.stream !== stream) continue
        await cursors.claim(cursor)
        perhapsTried.set(cursor.name, Math.max(limits.recordCountMax, processorLimits.recordCountMax))
      }
      await cursors.loadDeferral(stream)
    })
  }

  /**
   * PostgreSQL may be restored from an older copy while the worker is idle. The worker then continues from the state's position
   * immediately, without waiting for an event to commit.
   */
  async function checkPositionsWhenDue(signal: AbortSignal): Promise<'not_owner' | 'owner'> {
    if (performance.now() < compareAtMs) return 'owner'
    compareAtMs = performance.now() + limits.pollMs
    for (const cursor of cursors.all) {
      let stored: number | null | undefined
      await retryPatiently(signal, 'waiting_for_state', async () => {
        stored = await state.findOwnPosition(cursor.name, ownerId)
      })
      if (stored === null) return 'not_owner'
      if (stored !== undefined && stored !== cursors.positionOf(cursor)) await claimAgain(cursor, signal)
    }
    return 'owner'
  }

  async function claimAgain(cursor: StreamCursor, signal: AbortSignal): Promise<void> {
    const before = cursors.positionOf(cursor)
    await claim(cursor.stream, signal)
    const offset = cursors.positionOf(cursor)
    logger.warn({ stream: cursor.name, before, offset }, 'the position in the state changed; continuing from there')
  }

  /**
   * The live cursors, beginning after the cursor that had the last turn, then the import cursors. Imports take turns with
   * deferred projects, which may keep the worker busy for as long as clients send.
   */
  function orderCursors(): readonly StreamCursor[] {
    const live = cursors.all.filter(({ traffic }) => traffic === 'live')
    const after = live.findIndex(({ name }) => name === lastTurn) + 1
    const imports = cursors.all.filter(({ traffic }) => traffic === 'import')
    const liveInOrder = [...live.slice(after), ...live.slice(0, after)]
    const place = areImportsNext ? liveInOrder.findIndex(({ takesDeferred }) => takesDeferred) : live.length
    return liveInOrder.toSpliced(place, 0, ...imports)
  }

  /** The next chunk of the first cursor in turn that has records; null if none has. */
  async function readNext(signal: AbortSignal): Promise<NextChunk | null> {
    for (const cursor of orderCursors()) {
      if (pace.restMs(cursor) > 0) continue
      if (cursor.takesDeferred) await retryPatiently(signal, 'waiting_for_state', () => releaseDeferred(cursor.stream))
      const chunk = await retryPatiently(signal, 'waiting_for_log', () => read(cursor))
      if (chunk === null) return null
      if (hasNewRecords(cursor, chunk)) return { cursor, chunk }
      // A second cursor keeps its count: if it has no new records, it may merely have caught up with the first cursor.
      if (!cursor.takesDeferred) perhapsTried.delete(cursor.name)
    }
    return null
  }

  /**
   * Waits for the next chunk of any stream.
   * @returns null at the end of a stream's rest, or if nothing arrived within `pollMs`.
   */
  async function waitForNext(signal: AbortSignal): Promise<NextChunk | null> {
    enter('ok')
    const rests = cursors.all.map(cursor => pace.restMs(cursor)).filter(restMs => restMs > 0)
    const maxWaitMs = Math.min(limits.pollMs, ...rests)
    // Waits for first cursors only: a second cursor has new records only once the first cursor of its stream has moved.
    const rested = cursors.all.filter(cursor => pace.restMs(cursor) === 0 && !cursor.takesDeferred)
    if (rested.length === 0) await waitOrStop(maxWaitMs, signal)
    const found = await retryPatiently(signal, 'waiting_for_log', async () => {
      if (rested.length === 0) return null
      const decided = new AbortController()
      const waiting = { maxWaitMs, signal: AbortSignal.any([signal, decided.signal]) }
      const reads = rested.map(async cursor => ({ cursor, chunk: await read(cursor, waiting) }))
      try {
        return await Promise.race(reads)
      } finally {
        // Chunks read by the other cursors are read again later: a read has no side effects.
        decided.abort()
        await Promise.allSettled(reads)
      }
    })
    return found !== null && hasNewRecords(found.cursor, found.chunk) ? found : null
  }

  function read(cursor: StreamCursor, waiting: Pick<LogReadOptions, 'maxWaitMs' | 'signal'> = {}): Promise<LogChunk> {
    const recordCountMax = pace.recordCountMax(cursor)
    return cursors.read(cursor, { recordCountMax, bytesMax: limits.bytesMax, ...waiting })
  }

  function hasNewRecords(cursor: StreamCursor, { nextOffset }: LogChunk): boolean {
    return nextOffset !== cursors.positionOf(cursor)
  }

  async function processChunk({ cursor, chunk }: NextChunk, signal: AbortSignal): Promise<ChunkEnd> {
    const { stream, traffic } = chunk
    const { name } = cursor
    if (traffic === 'live') lastTurn = name
    areImportsNext = cursor.takesDeferred || (areImportsNext && traffic === 'live')
    await options.faultPoint?.('read')
    const paced = pace.begin(cursor, chunk.records.length)
    const losses = collectLogLosses(chunk, clock.nowMs())
    if (losses.length > 0) await retryPatiently(signal, 'waiting_for_log', () => log.recordLosses(...losses))
    warnOfDamagedRecords(chunk, options)
    let { missing } = chunk
    const costs: ProjectCosts = new Map()
    const end = await processOneChunk(chunk, {
      ...options,
      cursor: name,
      random,
      signal,
      rowCountMax: limits.rowCountMax,
      slowStoreMs: limits.slowStoreMs,
      conflictTryCount: limits.conflictTryCount,
      textBytesMax: limits.textBytesMax,
      onSized: size => {
        paced.noteSize(size)
        if (size !== 'too_large' && deferring !== null && !cursor.takesDeferred)
          addChunkCosts(costs, size.loaded, size.processed)
      },
      enterState: enter,
      mayHaveBeenTried: () => (perhapsTried.get(name) ?? 0) > 0,
      mayGoOn: () => paced.mayGoOn(),
      position: () => cursors.positionOf(cursor)!,
      onCommitted: (outcomes, { nextOffset, records }) => {
        paced.noteCommitted(records.length)
        cursors.move(cursor, nextOffset)
        perhapsTried.set(name, Math.max(0, (perhapsTried.get(name) ?? 0) - records.length))
        enter('ok')
        if (missing !== null) warnOfMissingRecords(stream, missing, options)
        missing = null
        for (const { count, outcome, reason, lane } of outcomes)
          metrics.eventsProcessed.inc({ lane, outcome, reason }, count)
        lag.noteCommitted(stream)
        options.onChunkCommitted?.()
        if (performance.now() - reportedUntilAtMs > limits.reportEveryMs) void measureLag()
      },
    })
    pace.adapt(paced)
    if (end === 'committed' && traffic === 'live') await deferHeaviest(cursor, costs, signal)
    return end
  }

  /** While the stream lags, defers the project that took most of a chunk, if other projects exist that wait for it. */
  async function deferHeaviest(cursor: StreamCursor, costs: ProjectCosts, signal: AbortSignal): Promise<void> {
    const heaviest = findHeaviestProject(costs)
    if (deferring === null || heaviest === null) return
    const { projectId, isCostly } = heaviest
    const lagMsMax = isCostly ? limits.deferringLagMs : limits.deferringUsualLagMs
    const { stream } = cursor
    await retryPatiently(signal, 'waiting_for_state', async () => {
      const { appendedAtMs } = await log.readStreamStatus(stream, cursors.positionOf(cursor)!)
      if (appendedAtMs === null || clock.nowMs() - appendedAtMs <= lagMsMax) return
      if (!(await deferring.hasOtherProjects())) return
      const isFirst = cursors.deferredProjects(stream).length === 0
      if (!(await cursors.defer(stream, projectId))) return
      // An earlier worker may have tried records that the second cursor takes from now on.
      const second = formatDeferredCursorName(stream)
      const triedBefore = isFirst ? 0 : (perhapsTried.get(second) ?? 0)
      perhapsTried.set(second, Math.max(triedBefore, perhapsTried.get(cursor.name) ?? 0))
      logger.info({ stream, projectId }, 'project deferred: its events take too long')
    })
    await options.faultPoint?.('defer')
  }

  async function releaseDeferred(stream: LogStream): Promise<void> {
    if (!(await cursors.releaseIfCaughtUp(stream))) return
    logger.info({ stream }, 'the events of a deferred project are processed')
    await options.faultPoint?.('release')
  }

  /** Repeats the task until it succeeds or the processor stops: nothing is ever skipped because a store is down. */
  function retryPatiently<T>(
    signal: AbortSignal,
    waiting: WorkerProcessingState,
    task: () => Promise<T>,
  ): Promise<T | null> {
    const isDown = (cause: unknown): cause is PortError => cause instanceof PortError
    return retryWhileDown(task, { metrics, logger, random, signal }, { onDown: () => enter(waiting), isDown })
  }

  function measureLag(): Promise<void> {
    reportedUntilAtMs = performance.now()
    return lag.measure()
  }

  return { run, state: () => current }
}
