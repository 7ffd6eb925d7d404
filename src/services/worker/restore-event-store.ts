// Compares the rows of the event store with the rows that a worker left there. The store is separate from the state, and
// may be removed, emptied, truncated, restored from an older copy or replaced by another one. Lost rows that the log still
// has are restored; all other lost rows are reported, with their time span, until they are back or an operator accepts the
// loss.

import type { LogStream, Traffic } from '#core/events/log-stream.ts'
import { importJobOfPartition, isJobPending } from '#core/imports/import-job.ts'
import { type EventStoreMark, findMissingRanges, mergeRowRanges, type RowRange } from '#core/processing/row-ranges.ts'
import { dayMs } from '#core/time.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventStoreUpkeep, MarkedRowRanges } from '#ports/events/event-store-upkeep.ts'
import { recordingRetentionDays } from '#ports/events/recording-store.ts'
import type { EventLogReader } from '#ports/log/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import type { ErasureStore } from '#ports/state/erasure-store.ts'
import type { ImportJobStore } from '#ports/state/import-job-store.ts'
import type { EventStoreMarks } from '#ports/state/worker-state.ts'
import { type RestoreDeps, type RestoredRange, restoreEvents, restoreOverrides } from '../processing/restore-events.ts'
import {
  findAllProgress,
  isRecordDeferred,
  type ProgressStore,
  type StreamProgress,
} from '../progress/find-progress.ts'
import { runPeriodically } from '../shared/run-periodically.ts'
import type { Serialize } from '../shared/serial-queue.ts'

const everyMs = 10_000
/**
 * Slack for comparing times: the store keeps whole seconds, and an event reaches the log a moment after it is accepted.
 */
const momentMs = 2_000

export type EventStoreRestorer = ReturnType<typeof createEventStoreRestorer>

/** When the missing rows were accepted, epoch ms; null if unknown. */
export type LostSpan = Pick<RowRange, 'oldestMs' | 'newestMs'>

export interface EventStoreRestorerOptions extends Omit<RestoreDeps, 'jobs'> {
  readonly events: RestoreDeps['events'] & EventStoreUpkeep
  readonly log: Pick<EventLogReader, 'listStreams' | 'read' | 'readRuns'>
  readonly marks: EventStoreMarks &
    ProgressStore &
    Pick<ImportJobStore, 'findImportJob'> &
    Pick<ErasureStore, 'raiseErasureCounts' | 'reopenErasures' | 'listEmptiedRanges'>
  readonly rejectRetentionDays: number
  /** The clock by which the event store lets rows expire. */
  readonly expiryClock: Clock
  /** Runs checks so that no other task changes the mark during one. Default: no other task changes it. */
  readonly serialize?: Serialize
  readonly newUuid: () => string
  /** Whether this worker holds the schedule lease, so that it runs the schedules. Default: it has. */
  readonly mayRun?: () => Promise<boolean>
  /** Called when `isRestoring` has changed. */
  readonly onRestoring: () => void
}

/** Tables from which usage is counted. */
const chargedTables: ReadonlySet<string> = new Set(['events', 'deduplicated_flag_calls', 'replay_messages'])

/** Tables whose partition names begin with the import job's number; names with `0-` are for live events. */
const importTables: ReadonlySet<string> = new Set(['events', 'events_pending'])

type Positions = ReadonlyMap<LogStream, StreamProgress>

export function createEventStoreRestorer(options: EventStoreRestorerOptions) {
  const { events, log, marks, logId: instance, clock, logger, serialize = run => run() } = options
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
        'rows are missing from the event store: run `pennon doctor` for the time spans',
      )
    const positions = await findAllProgress(marks, log)
    const found = await findHeldRows(mark?.id ?? null)
    if (isStart && mayBeAheadOfMark(found, mark)) await catchUpErasures()
    if (found === null) return logRefusedAccess()
    const missing = mark === null ? [] : await findLostRanges(mark.held.filter(shouldStillExist), found)
    const isOurs = mark === null ? !hasLostEverything(found, positions) : found.isMarked
    if (isOurs && missing.length === 0) {
      if (isStart && mark !== null) await restore(mark.positions, positions, signal)
      if (!signal.aborted && (mark === null || !isMarkUpToDate(mark, positions))) await saveMark(mark, positions, [])
      return
    }
    logger.error(
      { missing: missing.length, isOurs },
      'the event store has changed: rows are missing, or it is another copy. Restoring rows from the log',
    )
    if (!isStart) await catchUpErasures()
    // Another copy may have rows of persons that were erased since it was made.
    await marks.reopenErasures()
    await restoreOverrides(marks, options, signal)
    await restore({}, positions, signal)
    if (signal.aborted) return
    const gone = await findUnrestorable(mark === null ? [everything] : missing, positions)
    for (const { table, partition, oldestMs, newestMs } of gone)
      logger.error(
        { table, partition, from: formatTimeOrBeginning(oldestMs), to: formatTimeOrBeginning(newestMs) },
        'rows accepted in this time span are missing from the event store and are no longer in the log',
      )
    await saveMark(mark, positions, gone)
  }

  /**
   * An older copy of the state counts fewer erasures than rows that were stored later: raises its counts to those of the
   * rows.
   */
  async function catchUpErasures(): Promise<void> {
    await marks.raiseErasureCounts(await events.findErasureCounts())
  }

  /** If the store fails, creates missing tables and tries again: an emptied database has no tables either. */
  async function findHeldRows(markId: string | null): Promise<MarkedRowRanges | null> {
    try {
      return await events.findRowRanges(instance, markId)
    } catch (cause) {
      if (!(cause instanceof PortError)) throw cause
      await events.migrate()
      return events.findRowRanges(instance, markId)
    }
  }

  /** Finds the missing parts of these ranges, except parts that were removed on purpose. */
  async function findLostRanges(held: readonly RowRange[], found: MarkedRowRanges): Promise<RowRange[]> {
    const missing = findMissingRanges(held, found.ranges)
    return missing.length === 0 ? [] : excludeDiscarded(findMissingRanges(missing, await marks.listEmptiedRanges()))
  }

  function logRefusedAccess(): void {
    if (!wasRefused)
      logger.warn("no access to the event store's system.tables and system.parts: lost rows cannot be detected")
    wasRefused = true
  }

  async function restore(from: EventStoreMark['positions'], to: Positions, signal: AbortSignal): Promise<void> {
    const behind = [...to].filter(([stream, { offset }]) => (from[stream] ?? 0) < offset)
    if (behind.length === 0) return
    setRestoring(true)
    try {
      for (const [stream, progress] of behind) {
        const isLeftOut = (projectId: number, offset: number) => isRecordDeferred(progress, projectId, offset)
        const range = { fromOffset: from[stream] ?? 0, toOffset: progress.offset, isLeftOut }
        const recordCount = await restoreStream(stream, range, signal)
        if (recordCount > 0) logger.info({ stream, recordCount }, 'reprocessed records for the event store')
      }
    } finally {
      setRestoring(false)
    }
  }

  /** An unreadable log is only reported here: it must not keep new events from being processed. */
  async function restoreStream(stream: LogStream, range: RestoredRange, signal: AbortSignal): Promise<number> {
    try {
      return await restoreEvents(stream, range, { ...options, jobs: marks }, signal)
    } catch (cause) {
      if (!(cause instanceof PortError) || cause.retryable) throw cause
      logger.error({ err: cause, stream }, 'cannot read the log: some rows were not restored to the event store')
      return 0
    }
  }

  /** The missing rows that the log can no longer restore. */
  async function findUnrestorable(missing: readonly RowRange[], positions: Positions): Promise<RowRange[]> {
    const since = { live: 0, import: 0 } satisfies Record<Traffic, number>
    for (const { stream, traffic } of await log.listStreams())
      since[traffic] = Math.max(since[traffic], await findLogStartMs(stream, positions.get(stream)?.offset ?? 0))
    return missing.flatMap(range => {
      if (range.table === 'person_distinct_id_overrides') return [] // the state has them
      const isImported = importTables.has(range.table) && !range.partition.startsWith('0-')
      const keptSinceMs = since[isImported ? 'import' : 'live']
      if (keptSinceMs <= (range.oldestMs ?? 0)) return []
      const newestMs = Math.min(range.newestMs ?? Number.POSITIVE_INFINITY, keptSinceMs)
      return [{ ...range, newestMs: Number.isFinite(newestMs) ? newestMs : clock.nowMs() }]
    })
  }

  /**
   * Returns the time, epoch ms, from which on the log still has every record: 0 if it lost none, infinity if it has no
   * record.
   */
  async function findLogStartMs(stream: LogStream, position: number): Promise<number> {
    const { runs, missing } = await log.readRuns(stream, 0, 1)
    if (position === 0 || (runs.length > 0 && missing === null)) return 0
    return (runs[0]?.appendedAtMs ?? Number.POSITIVE_INFINITY) - momentMs
  }

  /**
   * Saves a mark in the event store first, then in the state: if the second step never happens, the store's mark still
   * names the state's current mark (`former`).
   */
  async function saveMark(
    former: EventStoreMark | null,
    positions: Positions,
    gone: readonly RowRange[],
  ): Promise<void> {
    const id = options.newUuid()
    await events.writeMark({ instance, id, former: former?.id ?? null })
    const found = await events.findRowRanges(instance, id)
    if (found === null) return
    const before = former === null ? [] : former.missing.flatMap(range => findMissingRanges([range], found.ranges))
    const missing = [...before, ...gone].filter(shouldStillExist)
    const done = Object.fromEntries(Array.from(positions, ([stream, { doneOffset }]) => [stream, doneOffset]))
    await marks.saveEventStoreMark({ id, positions: done, held: mergeRowRanges(found.ranges), missing })
  }

  /** Leaves out ranges removed on purpose: rows of discarded imports, and pending rows of published imports. */
  async function excludeDiscarded(ranges: readonly RowRange[]): Promise<RowRange[]> {
    const kept: RowRange[] = []
    for (const range of ranges) {
      const importJobId = importTables.has(range.table) ? importJobOfPartition(range.partition) : null
      const job = importJobId === null ? null : await marks.findImportJob(importJobId)
      // A job that no longer exists was discarded.
      const isGone =
        importJobId !== null &&
        (job === null ||
          (range.table === 'events_pending'
            ? !isJobPending(job)
            : job.state === 'discarding' || job.state === 'discarded'))
      if (!isGone) kept.push(range)
    }
    return kept
  }

  /** Whether rows should still exist: expired rows disappear on their own. */
  function shouldStillExist({ table, newestMs }: RowRange): boolean {
    const days = table === 'rejected_events' ? options.rejectRetentionDays : recordingRetentionDays.row
    if (newestMs === null || (table !== 'rejected_events' && table !== 'replay_messages')) return true
    return newestMs > options.expiryClock.nowMs() - (days - 1) * dayMs
  }

  async function runCheck(signal: AbortSignal): Promise<void> {
    await serialize(() => check(!isChecked, signal))
    isChecked = true
  }

  /** After another worker held the schedule lease, the next check is like the one at a start. */
  async function mayRun(): Promise<boolean> {
    const may = (await options.mayRun?.()) ?? true
    if (!may) isChecked = false
    return may
  }

  /**
   * Spans in which rows of charged events or recordings are missing now, including rows that are about to be restored.
   * @throws PortError if state or store cannot be read.
   */
  async function findLostSpans(): Promise<readonly LostSpan[]> {
    const mark = await marks.findEventStoreMark()
    const found = mark === null ? null : await findHeldRows(mark.id)
    if (mark === null || found === null) return []
    const missing = [...mark.missing, ...(await findLostRanges(mark.held, found))]
    return missing.filter(range => chargedTables.has(range.table) && shouldStillExist(range))
  }

  return {
    /** Whether rows are being restored. */
    isRestoring: () => isRestoring,
    findLostSpans,
    /** False until the first check is complete; until then, the log may still be needed. */
    isChecked: () => isChecked,
    /**
     * Call before anything is processed. Restores rows that are missing, or may be missing because a worker was killed.
     * Does nothing if another worker holds the schedule lease, since that worker makes this check.
     * @throws PortError if the caller must try again.
     */
    checkAtStart: async (signal: AbortSignal): Promise<void> => {
      if (await mayRun()) await runCheck(signal)
    },
    /** Checks again every 10 s, and records the positions up to which the store has its rows. */
    run: (signal: AbortSignal) =>
      runPeriodically(() => runCheck(signal), { everyMs, what: 'checking the event store', logger, signal, mayRun }),
    /** Records the positions a last time, so that the next start has nothing to restore. */
    leave: async (): Promise<void> => {
      try {
        if (await mayRun()) await serialize(() => check(false, new AbortController().signal))
      } catch (cause) {
        if (!(cause instanceof PortError)) throw cause
        logger.warn({ err: cause }, 'cannot mark the event store; the next start reprocesses the last records')
      }
    },
  }
}

/** The range to report for an empty event store without a mark: its former contents are unknown. */
const everything: RowRange = {
  ...{ table: 'events', tableId: '', partition: '', from: 0, to: 0 },
  oldestMs: null,
  newestMs: null,
}

/** Whether the store may have rows written after the mark; true for ranges of a whole table, which cannot show that. */
function mayBeAheadOfMark(found: MarkedRowRanges | null, mark: EventStoreMark | null): boolean {
  if (found === null || mark === null || found.ranges.some(({ partition }) => partition === '')) return true
  return findMissingRanges(found.ranges, mark.held).length > 0
}

function hasLostEverything({ ranges }: MarkedRowRanges, positions: Positions): boolean {
  return [...positions.values()].some(({ offset }) => offset > 0) && ranges.length === 0
}

/** A mark leaves out records processed beyond deferred ones, so it is not up to date while any record is deferred. */
function isMarkUpToDate(mark: EventStoreMark, positions: Positions): boolean {
  return [...positions].every(([stream, { offset }]) => mark.positions[stream] === offset)
}

function formatTimeOrBeginning(ms: number | null): string {
  return ms === null ? 'the beginning' : new Date(ms).toISOString()
}
