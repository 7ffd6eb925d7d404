// The worker's main line: the log's records become persons, groups and rows of the event store, chunk by chunk. Which
// lane is next, how large a chunk is, and what to do when the world fails, is decided here; what an event means is
// `core/processing/process-chunk.ts`. `process-one-chunk.ts` has the five steps of a chunk.

import { type LogLane, logLanes } from '#core/events/captured-event.ts'
import type { ChunkOutcome } from '#core/processing/chunk.ts'
import type { ChunkStore } from '#ports/chunk-store.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventLogReader, LogChunk, LogLoss } from '#ports/event-log.ts'
import type { Geoip } from '#ports/geoip.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import { backOffMs, waitOrStop } from '../shared/back-off.ts'
import {
  type ChunkEnd,
  type ChunkSize,
  type FaultPoint,
  type ProcessingEventStore,
  processOneChunk,
} from './process-one-chunk.ts'

export interface ProcessorLimits {
  /** Records of one chunk. */
  readonly recordCountMax: number
  /** State rows of one transaction, so that no other writer waits long for its lock. */
  readonly rowCountMax: number
  readonly bytesMax: number
  /**
   * Property text that a chunk may load, and that its rows may carry: small events may belong to persons of any size that
   * a client chose. Parsed, it takes up to 14 times its length.
   */
  readonly textBytesMax: number
  /** How long an import chunk may hold its persons, load to commit; its size follows from what the last ones took. */
  readonly importChunkMs: number
  /** The least time between the starts of two chunks that were far from full, lest a trickle becomes a part per event. */
  readonly restMs: number
  /** An insert that takes this long is reported as if the event store were down. */
  readonly slowStoreMs: number
  /** Tries of a chunk before other writers to the same persons count as there to stay. */
  readonly conflictTryCount: number
  /** How often the log is looked at without a nudge. */
  readonly pollMs: number
  /** How often the processor reports how far it is, while there is work. */
  readonly tellEveryMs: number
}

export const processorLimits: ProcessorLimits = {
  // A part of the event store costs much the same for 2,000 rows and for 10,000: a lag is worked off in large chunks.
  recordCountMax: 10_000,
  rowCountMax: 2_000,
  bytesMax: 16 * 1024 * 1024,
  textBytesMax: 32 * 1024 * 1024,
  importChunkMs: 50,
  restMs: 100,
  slowStoreMs: 5_000,
  conflictTryCount: 10,
  pollMs: 1_000,
  tellEveryMs: 250,
}

/** How much of a damaged record is kept beside the log. */
const keptBytesMax = 16 * 1024
/** A chunk is never made smaller than this for being slow or large. */
const recordCountMin = 50
/** A chunk that turns out to write too much is applied twice, so chunks stay a little below. */
const aimedShare = 0.85

export type ProcessingState =
  | 'starting'
  | 'ok'
  | 'waiting_for_log'
  | 'waiting_for_state'
  | 'waiting_for_event_store'
  | 'restoring_events'
  | 'stopped'

export interface ProcessorOptions {
  readonly log: Pick<EventLogReader, 'read' | 'status' | 'keepLoss'>
  readonly state: ChunkStore
  readonly events: ProcessingEventStore
  /** Null when locations are not looked up. */
  readonly geoip: Geoip | null
  readonly clock: Clock
  readonly metrics: Metrics
  readonly logger: Logger
  /** Live first; `logLanes` has them in that order. */
  readonly lanes?: readonly LogLane[]
  /** New with each worker process. */
  readonly ownerId: string
  readonly limits?: Partial<ProcessorLimits>
  /** 0 ≤ x < 1, for jitter only. */
  readonly random?: () => number
  /** After each committed chunk, with what became of its records. */
  readonly onCommitted?: (lane: LogLane, outcomes: readonly ChunkOutcome[]) => void
  readonly onStateChange?: (state: ProcessingState) => void
  /** Now and then, while there is work: everything of the lane that was appended before (epoch ms) is processed. */
  readonly onProcessedUntil?: (lane: LogLane, appendedBeforeMs: number) => void
  /** Tests only: awaited between the steps of a chunk; one that never resolves is a crash. */
  readonly faultPoint?: (name: FaultPoint) => void | Promise<void>
}

export interface Processor {
  /**
   * Processes until `signal` aborts (the chunk at hand is finished or left as it was) or another worker claims a lane.
   * Never rejects for a failing store: it waits and tries again. Call once.
   */
  run(signal: AbortSignal): Promise<'stopped' | 'not_owner'>
  /** Something was appended to the lane. Cheap, may be called at any time. */
  nudge(lane: LogLane): void
  state(): ProcessingState
}

export function createProcessor(options: ProcessorOptions): Processor {
  const { log, state, clock, metrics, logger, ownerId } = options
  const limits = { ...processorLimits, ...options.limits }
  const lanes = options.lanes ?? logLanes
  const random = options.random ?? Math.random
  const positions = new Map<LogLane, number>()
  /** Records before this offset may have been tried by a worker that ended before it could commit them. */
  const triedUntil = new Map<LogLane, number>()
  const restUntilMs = new Map<LogLane, number>()
  /** How many records the next chunk of a lane takes; follows from what the last ones were like. */
  const recordCounts = new Map<LogLane, number>(lanes.map(lane => [lane, Math.min(500, limits.recordCountMax)]))
  let current: ProcessingState = 'starting'
  let wake: (() => void) | null = null
  let nudged = false
  let compareAtMs = 0
  let toldUntilAtMs = 0
  /** Told once at the start as well: an import may wait behind live events for long before its lane has a turn. */
  const untilToTell = new Set(lanes)

  function enter(next: ProcessingState): void {
    if (next === current) return
    current = next
    options.onStateChange?.(next)
  }

  async function run(signal: AbortSignal): Promise<'stopped' | 'not_owner'> {
    const lagTimer = setInterval(() => void measureLag(), limits.pollMs)
    lagTimer.unref()
    try {
      for (const lane of lanes) await claim(lane, signal)
      while (!signal.aborted) {
        const end = await processNextChunk(signal)
        if (end === 'not_owner') return 'not_owner'
        if (end !== 'nothing_new') continue
        await idle(signal)
        if ((await compareWhenDue(signal)) === 'not_owner') return 'not_owner'
      }
      return 'stopped'
    } finally {
      clearInterval(lagTimer)
      enter('stopped')
    }
  }

  async function claim(lane: LogLane, signal: AbortSignal): Promise<void> {
    await patiently(signal, 'waiting_for_state', async () => {
      const { offset } = await state.claimPosition(lane, ownerId)
      positions.set(lane, offset)
      triedUntil.set(lane, offset + Math.max(limits.recordCountMax, processorLimits.recordCountMax))
    })
  }

  /**
   * PostgreSQL may come back from an older copy under a worker that has nothing to do: it goes on where the state stands by
   * then, without waiting for an event to commit.
   */
  async function compareWhenDue(signal: AbortSignal): Promise<'not_owner' | 'owner'> {
    if (performance.now() < compareAtMs) return 'owner'
    compareAtMs = performance.now() + limits.pollMs
    for (const lane of lanes) {
      let stored: number | null | undefined
      await patiently(signal, 'waiting_for_state', async () => {
        stored = await state.findOwnPosition(lane, ownerId)
      })
      if (stored === null) return 'not_owner'
      if (stored !== undefined && stored !== positions.get(lane)) await claimAgain(lane, signal)
    }
    return 'owner'
  }

  async function claimAgain(lane: LogLane, signal: AbortSignal): Promise<void> {
    const before = positions.get(lane)
    await claim(lane, signal)
    const offset = positions.get(lane)
    logger.warn({ lane, before, offset }, 'the state stands elsewhere than it was left; processing goes on from there')
  }

  /** One chunk of the first lane that has something, live first. */
  async function processNextChunk(signal: AbortSignal): Promise<ChunkEnd | 'nothing_new'> {
    for (const lane of lanes) {
      if (performance.now() < (restUntilMs.get(lane) ?? 0)) continue
      const recordCountMax = recordCounts.get(lane)!
      let chunk: LogChunk | null = null
      await patiently(signal, 'waiting_for_log', async () => {
        chunk = await log.read(lane, positions.get(lane)!, { recordCountMax, bytesMax: limits.bytesMax })
      })
      if (chunk === null) return 'stopped'
      const end = await processIfAny(chunk, recordCountMax, signal)
      if (end === 'position_moved') await claimAgain(lane, signal)
      if (end !== 'nothing_new') return end
    }
    return 'nothing_new'
  }

  /** A file of the log is gone or damaged before it was processed: nothing tells whose events these were. */
  function noteMissing({ lane, fromOffset, toOffset, file }: LogLoss): void {
    const why = file === null ? 'a file of it was removed' : `${file} is damaged`
    const recordCount = toOffset - fromOffset
    logger.error({ lane, recordCount, fromOffset, toOffset }, `records are missing from the log: ${why}`)
    metrics.eventsProcessed.inc({ lane, outcome: 'rejected', reason: 'log_record_missing' }, recordCount)
  }

  /** Call it before the position passes them, so that a crash reports them twice rather than never. */
  async function keepMissing(chunk: LogChunk, signal: AbortSignal): Promise<LogLoss | null> {
    const { lane, firstOffset, holeIn = null } = chunk
    const fromOffset = positions.get(lane)!
    if (firstOffset <= fromOffset) return null
    const loss = { lane, fromOffset, toOffset: firstOffset, file: holeIn, noticedAtMs: clock.nowMs() }
    await patiently(signal, 'waiting_for_log', () => log.keepLoss(loss))
    return loss
  }

  /** As `keepMissing`: records that are there, and of which nothing tells whose they are. */
  async function keepDamaged({ lane, firstOffset, records }: LogChunk, signal: AbortSignal): Promise<void> {
    const losses = records.flatMap((record, index): LogLoss[] => {
      if (record.kind !== 'damaged') return []
      const fromOffset = firstOffset + index
      const body = Buffer.from(record.body.subarray(0, keptBytesMax)).toString('base64')
      return [{ lane, fromOffset, toOffset: fromOffset + 1, file: null, noticedAtMs: clock.nowMs(), body }]
    })
    await patiently(signal, 'waiting_for_log', () => log.keepLoss(...losses))
    for (const { fromOffset: offset } of losses)
      logger.error({ lane, offset }, 'a record of the log is damaged and becomes a reject')
  }

  async function processIfAny(chunk: LogChunk, recordCountMax: number, signal: AbortSignal) {
    const { lane } = chunk
    if (chunk.records.length === 0 && chunk.firstOffset <= positions.get(lane)!) {
      triedUntil.delete(lane)
      return 'nothing_new'
    }
    await options.faultPoint?.('read')
    const startedMs = performance.now()
    let missing = await keepMissing(chunk, signal)
    if (chunk.records.some(({ kind }) => kind === 'damaged')) await keepDamaged(chunk, signal)
    let committedCount = 0
    let largestPartCount = 0
    let isTooLarge = false
    let largestShare = 0
    const end = await processOneChunk(chunk, {
      ...options,
      random,
      signal,
      rowCountMax: limits.rowCountMax,
      slowStoreMs: limits.slowStoreMs,
      conflictTryCount: limits.conflictTryCount,
      textBytesMax: limits.textBytesMax,
      onSized: size => {
        if (size === 'too_large') isTooLarge = true
        else largestShare = Math.max(largestShare, shareOf(size))
      },
      enterState: enter,
      mayHaveBeenTried: () => positions.get(lane)! < (triedUntil.get(lane) ?? 0),
      position: () => positions.get(lane)!,
      onCommitted: (outcomes, nextOffset) => {
        committedCount = nextOffset - positions.get(lane)!
        largestPartCount = Math.max(largestPartCount, committedCount)
        positions.set(lane, nextOffset)
        enter('ok')
        if (missing !== null) noteMissing(missing)
        missing = null
        for (const { count, outcome, reason, lane: of } of outcomes)
          metrics.eventsProcessed.inc({ lane: of, outcome, reason }, count)
        options.onCommitted?.(lane, outcomes)
        untilToTell.add(lane)
        if (performance.now() - toldUntilAtMs > limits.tellEveryMs) void measureLag()
      },
    })
    const tookMs = performance.now() - startedMs
    const recordCount = chunk.records.length
    // How much too large the chunk was is not known, but what fitted is.
    if (isTooLarge) resizeChunk(lane, largestPartCount)
    else if (largestShare > 1) adaptChunk(lane, recordCount, tookMs, largestShare)
    else if (committedCount < recordCount) resizeChunk(lane, committedCount)
    else if (recordCount === recordCountMax) adaptChunk(lane, recordCount, tookMs, largestShare)
    if (recordCount < recordCountMax / 4) restUntilMs.set(lane, startedMs + limits.restMs)
    return end
  }

  /** How much of what a chunk may take it takes; more than 1 is too much. */
  function shareOf({ rowCount, textBytes }: ChunkSize): number {
    return Math.max(rowCount / limits.rowCountMax, textBytes / limits.textBytesMax)
  }

  /** Live chunks grow as far as memory and a transaction hold what they take; import chunks keep to their time as well. */
  function adaptChunk(lane: LogLane, recordCount: number, tookMs: number, share: number): void {
    const room = aimedShare / Math.max(share, 0.001)
    const growth = lane === 'historical' ? Math.min(room, limits.importChunkMs / Math.max(tookMs, 1)) : room
    resizeChunk(lane, recordCount * Math.min(Math.max(growth, 0.5), 1.5))
  }

  function resizeChunk(lane: LogLane, wanted: number): void {
    recordCounts.set(lane, Math.round(Math.min(Math.max(wanted, recordCountMin), limits.recordCountMax)))
  }

  /** Until a nudge, the end of a lane's rest, or the next poll. */
  async function idle(signal: AbortSignal): Promise<void> {
    enter('ok')
    const nowMs = performance.now()
    const rests = lanes.map(lane => (restUntilMs.get(lane) ?? 0) - nowMs).filter(restMs => restMs > 0)
    const waitMs = Math.min(limits.pollMs, ...rests)
    if (nudged && rests.length === 0) {
      nudged = false
      return
    }
    const waiting = new AbortController()
    const stop = () => waiting.abort()
    wake = stop
    signal.addEventListener('abort', stop, { once: true })
    await waitOrStop(signal.aborted ? 0 : waitMs, waiting.signal)
    signal.removeEventListener('abort', stop)
    wake = null
    nudged = false
  }

  /** Repeats until it works or the processor stops. Nothing is ever skipped because a store is down. */
  async function patiently(signal: AbortSignal, waiting: ProcessingState, task: () => Promise<void>): Promise<void> {
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        return await task()
      } catch (cause) {
        if (!(cause instanceof PortError)) throw cause
        enter(waiting)
        metrics.dependencyFailures.inc({ port: cause.port, code: cause.code })
        if (attempt % 10 === 0) logger.warn({ err: cause, attempt }, 'processing waits for a store')
        await waitOrStop(backOffMs(attempt, random()), signal)
      }
    }
  }

  async function measureLag(): Promise<void> {
    toldUntilAtMs = performance.now()
    for (const lane of lanes) {
      const offset = positions.get(lane)
      if (offset === undefined) continue
      try {
        const lookedAtMs = clock.nowMs()
        const { endOffset, appendedAtMs } = await log.status(lane, offset)
        if (untilToTell.has(lane)) {
          if (appendedAtMs === null) untilToTell.delete(lane)
          options.onProcessedUntil?.(lane, appendedAtMs ?? lookedAtMs)
        }
        metrics.logLagRecords.set({ lane }, Math.max(0, endOffset - offset))
        metrics.logLagSeconds.set(
          { lane },
          appendedAtMs === null ? 0 : Math.max(0, clock.nowMs() - appendedAtMs) / 1000,
        )
      } catch (cause) {
        if (!(cause instanceof PortError)) throw cause
        metrics.dependencyFailures.inc({ port: cause.port, code: cause.code })
      }
    }
  }

  return {
    run,
    nudge: () => {
      nudged = true
      wake?.()
    },
    state: () => current,
  }
}
