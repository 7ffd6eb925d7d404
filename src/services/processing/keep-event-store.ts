// Compares what is in the event store with what a worker left there: the store lies in another place than the state, and may
// be removed, emptied, cut, restored from an older copy, or be another one. What the log still has is brought back; the rest
// is reported, with its span, until it is there again or an operator accepts the loss.

import { type LogLane, logLanes } from '#core/events/captured-event.ts'
import { type EventStoreMark, findMissing, type HeldRange, joinRanges } from '#core/processing/held-rows.ts'
import { dayMs } from '#core/time.ts'
import type { EventLogReader } from '#ports/event-log.ts'
import { type EventStore, type HeldRows, replayRetentionDays } from '#ports/event-store.ts'
import type { EventStoreMarkStore, ManagementStore } from '#ports/management-store.ts'
import { PortError } from '#ports/port-error.ts'
import { runPeriodically } from '../shared/run-periodically.ts'
import { readFirstOffsets } from './bind-log.ts'
import { type RestoreDependencies, restoreEvents, restoreOverrides } from './restore-events.ts'

const everyMs = 10_000
/** The store's times are whole seconds, and an event is in the log a moment after it was accepted. */
const momentMs = 2_000

export interface EventStoreKeeper {
  /**
   * Before anything is processed: brings back what is missing, and what may be, since a worker was killed.
   * @throws PortError: try again.
   */
  checkAtStart(signal: AbortSignal): Promise<void>
  /** Looks again every 10 s, and notes how far the store is. */
  run(signal: AbortSignal): Promise<void>
  /** Whether rows are being brought back. */
  isRestoring(): boolean
  /**
   * Spans whose rows of charged events and replays are missing now, including those that are about to be brought back.
   * @throws PortError when state or store cannot be read.
   */
  findLostSpans(): Promise<readonly LostSpan[]>
  /** False until the first check is through: until then the log may be needed. */
  isChecked(): boolean
  /** Notes it a last time, so that the next start has nothing to bring back. */
  leave(): Promise<void>
}

/** When the missing rows were accepted, epoch ms; null when that is not known. */
export type LostSpan = Pick<HeldRange, 'oldestMs' | 'newestMs'>

export interface EventStoreKeeperOptions extends RestoreDependencies {
  readonly events: RestoreDependencies['events'] & Pick<EventStore, 'findHeldRows' | 'writeMark' | 'migrate'>
  readonly log: Pick<EventLogReader, 'read' | 'readRuns'>
  readonly marks: EventStoreMarkStore & Pick<ManagementStore, 'findLogPosition'>
  /** Id of the log that the state follows. */
  readonly instance: string
  readonly rejectRetentionDays: number
  readonly newUuid: () => string
  /** Told when `isRestoring` has changed. */
  readonly onRestoring: () => void
}

/** Tables that usage is counted from. */
const chargedTables: ReadonlySet<string> = new Set(['events', 'thinned_flag_calls', 'replay_messages'])

type Positions = Readonly<Record<LogLane, number>>

export function createEventStoreKeeper(options: EventStoreKeeperOptions): EventStoreKeeper {
  const { events, log, marks, instance, clock, logger } = options
  let wasRefused = false
  let isRestoring = false
  let isChecked = false

  function setRestoring(now: boolean): void {
    isRestoring = now
    options.onRestoring()
  }

  async function check(isStart: boolean, signal: AbortSignal): Promise<void> {
    const mark = await marks.findEventStoreMark()
    if (isStart && mark !== null && mark.missing.length > 0)
      logger.warn(
        { spans: mark.missing.length },
        'rows of some spans are missing in the event store: `pennon doctor` has them',
      )
    const positions = await readFirstOffsets(marks)
    const found = await findHeld(mark?.id ?? null)
    if (found === null) return noteRefused()
    const missing = mark === null ? [] : findMissing(mark.held.filter(isKept), found.ranges)
    const isOurs = mark === null ? !isLost(found, positions) : found.isMarked
    if (isOurs && missing.length === 0) {
      if (isStart && mark !== null) await restore(mark.positions, positions, signal)
      if (!signal.aborted && (mark === null || !isAt(mark, positions))) await leaveMark(mark, positions, [])
      return
    }
    logger.error(
      { missing: missing.length, isOurs },
      'the event store is not as it was left: rows are gone, or it is another copy. What the log has is brought back',
    )
    await restoreOverrides(marks, events, signal)
    await restore({}, positions, signal)
    if (signal.aborted) return
    const gone = await beyondLog(mark === null ? [everything] : missing, positions)
    for (const { table, partition, oldestMs, newestMs } of gone)
      logger.error(
        { table, partition, from: timeText(oldestMs), to: timeText(newestMs) },
        'rows of what was accepted in this span are gone from the event store, and the log does not have it any more',
      )
    await leaveMark(mark, positions, gone)
  }

  /** A database that was emptied has no tables either. */
  async function findHeld(markId: string | null): Promise<HeldRows | null> {
    try {
      return await events.findHeldRows(instance, markId)
    } catch (cause) {
      if (!(cause instanceof PortError)) throw cause
      await events.migrate()
      return events.findHeldRows(instance, markId)
    }
  }

  function noteRefused(): void {
    if (!wasRefused)
      logger.warn('the event store does not say what it has (system.tables, system.parts): lost rows go unnoticed')
    wasRefused = true
  }

  async function restore(from: EventStoreMark['positions'], to: Positions, signal: AbortSignal): Promise<void> {
    if (logLanes.every(lane => (from[lane] ?? 0) >= to[lane])) return
    setRestoring(true)
    try {
      for (const lane of logLanes) {
        const range = { fromOffset: from[lane] ?? 0, toOffset: to[lane] }
        const recordCount = await restoreLane(lane, range, signal)
        if (recordCount > 0) logger.info({ lane, recordCount }, 'records were processed again for the event store')
      }
    } finally {
      setRestoring(false)
    }
  }

  /** What cannot be read of the log is not what keeps new events from being processed. */
  async function restoreLane(
    lane: LogLane,
    range: { readonly fromOffset: number; readonly toOffset: number },
    signal: AbortSignal,
  ): Promise<number> {
    try {
      return await restoreEvents(lane, range, options, signal)
    } catch (cause) {
      if (!(cause instanceof PortError) || cause.retryable) throw cause
      logger.error({ err: cause, lane }, 'the log cannot be read: not all of it was brought back to the event store')
      return 0
    }
  }

  /** What of the missing rows the log cannot give back. */
  async function beyondLog(missing: readonly HeldRange[], positions: Positions): Promise<HeldRange[]> {
    const since = new Map<LogLane, number>()
    for (const lane of logLanes) since.set(lane, await keptSince(lane, positions[lane]))
    return missing.flatMap(range => {
      if (range.table === 'person_distinct_id_overrides') return [] // the state has them
      const keptSinceMs = since.get(range.partition.startsWith('1-') ? 'historical' : 'main')!
      if (keptSinceMs <= (range.oldestMs ?? 0)) return []
      const newestMs = Math.min(range.newestMs ?? Number.POSITIVE_INFINITY, keptSinceMs)
      return [{ ...range, newestMs: Number.isFinite(newestMs) ? newestMs : clock.nowMs() }]
    })
  }

  /** Epoch ms; 0 when everything is there that was ever appended, infinity when nothing is. */
  async function keptSince(lane: LogLane, position: number): Promise<number> {
    const { runs, firstOffset } = await log.readRuns(lane, 0, 1)
    if (position === 0 || (runs.length > 0 && firstOffset === 0)) return 0
    return (runs[0]?.appendedAtMs ?? Number.POSITIVE_INFINITY) - momentMs
  }

  /** The store's first: what it has and the state does not know of is known by the mark before. */
  async function leaveMark(
    former: EventStoreMark | null,
    positions: Positions,
    gone: readonly HeldRange[],
  ): Promise<void> {
    const id = options.newUuid()
    await events.writeMark({ instance, id, former: former?.id ?? null })
    const found = await events.findHeldRows(instance, id)
    if (found === null) return
    const before = former === null ? [] : former.missing.flatMap(range => findMissing([range], found.ranges))
    const missing = [...before, ...gone].filter(isKept)
    await marks.saveEventStoreMark({ id, positions, held: joinRanges(found.ranges), missing })
  }

  /** What expires goes by itself. */
  function isKept({ table, newestMs }: HeldRange): boolean {
    const days = table === 'rejected_events' ? options.rejectRetentionDays : replayRetentionDays.row
    if (newestMs === null || (table !== 'rejected_events' && table !== 'replay_messages')) return true
    return newestMs > clock.nowMs() - (days - 1) * dayMs
  }

  async function findLostSpans(): Promise<HeldRange[]> {
    const mark = await marks.findEventStoreMark()
    const found = mark === null ? null : await findHeld(mark.id)
    if (mark === null || found === null) return []
    const missing = [...mark.missing, ...findMissing(mark.held, found.ranges)]
    return missing.filter(range => chargedTables.has(range.table) && isKept(range))
  }

  return {
    isRestoring: () => isRestoring,
    findLostSpans,
    isChecked: () => isChecked,
    checkAtStart: async signal => {
      await check(true, signal)
      isChecked = true
    },
    run: signal =>
      runPeriodically(() => check(false, signal), { everyMs, what: 'looking after the event store', logger, signal }),
    leave: async () => {
      try {
        await check(false, new AbortController().signal)
      } catch (cause) {
        if (!(cause instanceof PortError)) throw cause
        logger.warn(
          { err: cause },
          'the event store could not be marked; the next start processes the last records again',
        )
      }
    },
  }
}

/** What is missing when the state is older than marks and its event store has nothing. */
const everything: HeldRange = {
  ...{ table: 'events', tableId: '', partition: '', from: 0, to: 0 },
  oldestMs: null,
  newestMs: null,
}

function isLost({ ranges }: HeldRows, positions: Positions): boolean {
  return logLanes.some(lane => positions[lane] > 0) && ranges.length === 0
}

function isAt(mark: EventStoreMark, positions: Positions): boolean {
  return logLanes.every(lane => mark.positions[lane] === positions[lane])
}

function timeText(ms: number | null): string {
  return ms === null ? 'the beginning' : new Date(ms).toISOString()
}
