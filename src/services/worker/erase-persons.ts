// Carries out the erasures of persons that are recorded in the state: removes their rows from the event store and mentions of
// their ids elsewhere, and records when nothing is left. Every step can be repeated after a crash, since it starts from the data
// that exists.
//
//   step                                         after a crash before the next step
//   1. wait for chunks that were loaded before   their rows are removed with the others
//   2. delete mentions of the ids                the remaining ones are deleted
//   3. count the rows, save the counts           counted once, before the first row is removed
//   4. note which parts will be empty, remove    remaining rows are found again; mutations continue on their own
//   5. check whether anything is left            the same
//   6. record that the erasure is done           done
//
// An erasure is done only once all earlier records of the log are processed and the mirror has made a later step, since either
// may still write rows until then. While an erasure waits for that, neither the event store nor the list of erasures is read;
// afterwards, steps 2 to 5 are repeated.

import type { LogStream } from '#core/events/log-stream.ts'
import type { ErasureOutline, PersonErasure } from '#core/persons/erasure.ts'
import { findMissingRanges } from '#core/processing/row-ranges.ts'
import type { Clock } from '#ports/clock.ts'
import type { PersonEraser } from '#ports/events/event-store-upkeep.ts'
import type { EventLogReader } from '#ports/log/event-log.ts'
import type { ErasureStore } from '#ports/state/erasure-store.ts'
import type { SubjectMirrorSource } from '#ports/state/subject-mirror-source.ts'
import type { EventStoreMarks } from '#ports/state/worker-state.ts'
import type { Logger } from '#telemetry/log.ts'
import {
  findAllProgress,
  isRecordProcessed,
  type ProgressStore,
  type StreamProgress,
} from '../progress/find-progress.ts'
import { runPeriodically } from '../shared/run-periodically.ts'
import type { RunningCalls } from '../shared/running-calls.ts'
import type { Serialize } from '../shared/serial-queue.ts'

export type ErasureWorker = ReturnType<typeof createErasureWorker>

export type ErasureFaultPoint = 'settled' | 'mentions' | 'counted' | 'noted' | 'removed' | 'marked'

export interface ErasureWorkerOptions {
  readonly state: ErasureStore & EventStoreMarks & ProgressStore & Pick<SubjectMirrorSource, 'findMirrorProgress'>
  readonly events: PersonEraser
  readonly log: Pick<EventLogReader, 'listStreams' | 'readRuns'>
  /** Id of the log. */
  readonly logId: string
  /** The running calls that load from the state and then write to the event store. */
  readonly underWay: Pick<RunningCalls, 'settled'>
  /** Prevents a removal while the event store is compared with its mark. */
  readonly serialize: Serialize
  readonly clock: Clock
  readonly logger: Logger
  readonly mayRun?: () => Promise<boolean>
  /** For tests: awaited after a step. A promise that never resolves simulates a crash. */
  readonly faultPoint?: (name: ErasureFaultPoint) => void | Promise<void>
}

/** `ending`: all earlier records are processed, and the mirror has made a later step. */
type Stage = 'removing' | 'ending'

interface DueErasure {
  readonly erasure: PersonErasure
  readonly stage: Stage
}

const everyMs = 500
const forgetEveryMs = 60_000

export function createErasureWorker(options: ErasureWorkerOptions) {
  const { state, events, log, logId, underWay, serialize, clock, logger, faultPoint } = options

  /** For each open erasure: the stage at which warnings and notes that mention its ids were last deleted. */
  const mentionsDeleted = new Map<number, Stage>()
  /** Open erasures with nothing left to remove: they are not checked again until they can end. */
  const cleared = new Set<number>()
  /** All open erasures as last listed, if all of them had to wait; otherwise empty. */
  let waiting: readonly ErasureOutline[] = []

  /** Does one step of the pending work. @returns whether work is left. @throws PortError if a store fails: call it again. */
  async function work(): Promise<boolean> {
    const { due, isAnyOpen } = await findDue()
    if (due.length === 0) return isAnyOpen
    await underWay.settled()
    await faultPoint?.('settled')
    await deleteMentions(due)
    await faultPoint?.('mentions')
    if (!(await countOnce(due.map(({ erasure }) => erasure)))) return true
    await faultPoint?.('counted')
    // Never runs during a check of `restore-event-store.ts`, so that rows which it restores or finds in another copy are
    // removed too.
    const end = await serialize(() => removeAndFinish(due))
    if (end === 'under_way') await faultPoint?.('removed')
    return true
  }

  async function removeAndFinish(due: readonly DueErasure[]): Promise<'done' | 'under_way'> {
    const erasures = due.map(({ erasure }) => erasure)
    if ((await removeRows(erasures)) === 'under_way') return 'under_way'
    for (const { id } of erasures) cleared.add(id)
    const ended = due.filter(({ stage }) => stage === 'ending').map(({ erasure }) => erasure)
    if (ended.length > 0) await finish(ended)
    return 'done'
  }

  /** The first erasures that can end now, or that may have rows left; others wait without delaying later ones. */
  async function findDue(): Promise<{ due: readonly DueErasure[]; isAnyOpen: boolean }> {
    const openCount = await state.countOpenErasures()
    if (openCount === 0) return { due: [], isAnyOpen: false }
    const { version } = await state.findMirrorProgress()
    const progress = await findAllProgress(state, log)
    const canEnd = (erasure: ErasureOutline) =>
      (erasure.keepsPerson || version > erasure.mirrorVersion) && isInStores(erasure, progress)
    // A waiting erasure cannot have ended elsewhere, so a changed count means that erasures were added or reopened.
    if (waiting.length === openCount && !waiting.some(canEnd)) return { due: [], isAnyOpen: true }
    waiting = []
    const listed: ErasureOutline[] = []
    const stages = new Map<number, Stage>()
    while (stages.size === 0) {
      const page = await state.listOpenErasures(listed.at(-1)?.id ?? 0)
      if (page.length === 0) {
        waiting = listed
        break
      }
      for (const erasure of page) {
        if (canEnd(erasure)) stages.set(erasure.id, 'ending')
        else if (!cleared.has(erasure.id)) stages.set(erasure.id, 'removing')
      }
      listed.push(...page)
    }
    const erasures = await state.readErasures([...stages.keys()])
    return { due: erasures.map(erasure => ({ erasure, stage: stages.get(erasure.id)! })), isAnyOpen: true }
  }

  async function deleteMentions(due: readonly DueErasure[]): Promise<void> {
    const undeleted = due.filter(({ erasure, stage }) => mentionsDeleted.get(erasure.id) !== stage)
    for (const [projectId, ofProject] of Map.groupBy(undeleted, ({ erasure }) => erasure.projectId)) {
      const names = ofProject.flatMap(({ erasure }) => [...erasure.distinctIds, ...erasure.personUuids])
      await state.deleteMentions(projectId, names)
      for (const { erasure, stage } of ofProject) mentionsDeleted.set(erasure.id, stage)
    }
  }

  /** @returns false while rows of other erasures are being removed. */
  async function countOnce(erasures: readonly PersonErasure[]): Promise<boolean> {
    const uncounted = erasures.filter(({ isCounted }) => !isCounted)
    if (uncounted.length === 0) return true
    const counts = await events.countErasedRows(uncounted)
    if (counts === 'under_way') return false
    for (const [id, { pendingOfJobs, ...removed }] of counts) await state.saveRemovedRows(id, removed, pendingOfJobs)
    return true
  }

  function removeRows(erasures: readonly PersonErasure[]): Promise<'done' | 'under_way'> {
    return events.removeErasedRows(erasures, async emptied => {
      // The emptied ranges are recorded with the first erasure, since the rows of all erasures are removed together.
      await state.recordEmptiedRanges(erasures[0]!.id, emptied)
      await faultPoint?.('noted')
    })
  }

  /** Whether all records of the project that the log had at the time of the erasure are processed. */
  function isInStores(erasure: ErasureOutline, progress: ReadonlyMap<LogStream, StreamProgress>): boolean {
    // Another log has no records from that time, so none can be unprocessed.
    if (erasure.logId !== logId) return true
    return Object.entries(erasure.endOffsets).every(([stream, endOffset]) => {
      const ofStream = progress.get(stream)
      return ofStream !== undefined && isRecordProcessed(ofStream, erasure.projectId, endOffset)
    })
  }

  /** Records the ends of erasures. First removes empty data parts from the mark: they disappear soon and are not lost. */
  async function finish(done: readonly PersonErasure[]): Promise<void> {
    const mark = await state.findEventStoreMark()
    const emptied = await state.listEmptiedRanges()
    if (mark !== null && emptied.length > 0)
      await state.saveEventStoreMark({ ...mark, held: findMissingRanges(mark.held, emptied) })
    await faultPoint?.('marked')
    const ids = done.map(({ id }) => id)
    await state.finishErasures(ids, clock.nowMs())
    for (const id of ids) {
      cleared.delete(id)
      mentionsDeleted.delete(id)
    }
    logger.info({ erasures: ids }, 'persons erased')
  }

  /**
   * Forgets the distinct ids of which the log no longer has records, after a last check of the event store. Call it only while
   * no work is left.
   * @throws PortError
   */
  async function forget(): Promise<void> {
    const kept = await state.listErasuresWithIds()
    const gone: PersonErasure[] = []
    for (const erasure of kept) if (!(await mayBeInLog(erasure))) gone.push(erasure)
    if (gone.length === 0) return
    // A worker that stalled may since have written rows of the erased persons again: the erased ids are forgotten only once
    // those rows are removed.
    if ((await removeRows(gone)) === 'under_way') return
    for (const { id } of gone) await state.forgetErasedIds(id)
  }

  async function mayBeInLog({ logId: ofLog, endOffsets }: PersonErasure): Promise<boolean> {
    if (ofLog !== logId) return false
    for (const { stream } of await log.listStreams()) {
      const { runs } = await log.readRuns(stream, 0, 1)
      const first = runs[0]?.offsets[0]
      if (first !== undefined && first < (endOffsets[stream] ?? 0)) return true
    }
    return false
  }

  return {
    work,
    forget,
    run: (signal: AbortSignal): Promise<void> => {
      let forgetAtMs = performance.now() + forgetEveryMs
      const round = async (): Promise<void> => {
        if ((await work()) || performance.now() < forgetAtMs) return
        forgetAtMs = performance.now() + forgetEveryMs
        await forget()
      }
      return runPeriodically(round, { everyMs, what: 'erasing persons', logger, signal, mayRun: options.mayRun })
    },
  }
}
