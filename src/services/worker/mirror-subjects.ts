// Keeps the mirror of persons and groups in the event store in sync with the state. Rows are read from the state after a commit,
// never taken from a chunk's pending changes, so an uncommitted try leaves no trace. Changes of many chunks are written
// together: a person that changes constantly is written a few times a second.
//
// After a crash:
//   between a commit and writing its rows          the state lists the change as unsettled: it is written again
//   between writing and recording the version      the step runs again with the same version: the later rows win
//   while the mirror is being filled               filling continues after the last recorded page
// One worker at a time does this. A worker that stalled past its lease finds another version recorded when it returns.

import { findMissingRanges, mergeRowRanges, type RowRange } from '#core/processing/row-ranges.ts'
import type { MirrorState, SubjectMirror } from '#ports/events/event-store-upkeep.ts'
import type { ErasureStore } from '#ports/state/erasure-store.ts'
import type { MirrorFill, MirrorProgress, SubjectMirrorSource } from '#ports/state/subject-mirror-source.ts'
import type { Logger } from '#telemetry/log.ts'
import { runPeriodically } from '../shared/run-periodically.ts'

export type SubjectMirrorUpdater = ReturnType<typeof createSubjectMirrorUpdater>

export interface SubjectMirrorUpdaterOptions {
  readonly state: SubjectMirrorSource & Pick<ErasureStore, 'listEmptiedRanges'>
  readonly events: SubjectMirror
  readonly logger: Logger
  readonly newUuid: () => string
  /** Whether this worker holds the schedule lease, so that it runs the schedules. Default: it has. */
  readonly mayRun?: () => Promise<boolean>
  /** For tests: awaited between the parts of a step. A promise that never resolves simulates a crash. */
  readonly faultPoint?: (name: MirrorFaultPoint) => void | Promise<void>
}

export type MirrorFaultPoint = 'begun' | 'emptied' | 'written' | 'noted' | 'settled'

/** How long changes are collected while more keep arriving. */
const pauseMs = 200
/**
 * How often to look for changes while none are known: other workers change persons too, and the private API deletes groups.
 */
const pollMs = 1_000
const compareEveryMs = 10_000

export function createSubjectMirrorUpdater(options: SubjectMirrorUpdaterOptions) {
  const { state, events, logger } = options
  /** False until this worker has compared the mirror with the state. */
  let isCompared = false
  let compareAtMs = 0
  /** Why the mirror is being filled. */
  let fillReason = 'an earlier worker did not finish'
  /** Whether this worker has copied any row: in a new instance there is nothing to copy, and nothing to log. */
  let isCopying = false
  let wake: (() => void) | null = null
  let isWokenUp = false

  /** Compares if due, fills missing rows, and writes some of the changes. @returns whether more changes are waiting. */
  async function work(signal: AbortSignal): Promise<boolean> {
    if (!((await options.mayRun?.()) ?? true)) {
      isCompared = false
      return false
    }
    if (!isCompared || performance.now() >= compareAtMs) await compare()
    // Changes are written between pages, so that few are waiting when queries may use the mirror for the first time.
    while (!signal.aborted && (await fillOnePage())) await writeChanges()
    return !signal.aborted && (await writeChanges())
  }

  /** Checks whether the event store has the mirror that the state filled; if not, starts filling it again. */
  async function compare(): Promise<void> {
    const before = await state.findMirrorProgress()
    // Versions are compared only at a start: a copy that replaces a running store has lost rows, which is detected anyway.
    const held = await events.findMirrorState(!isCompared)
    const loss = findLossReason(before, held, await state.listEmptiedRanges())
    const ranges = held.ranges === null || before.fill?.phase === 'begun' ? null : mergeRowRanges(held.ranges)
    const fill: MirrorFill =
      loss === null
        ? { ...before.fill!, held: ranges }
        : { id: options.newUuid(), phase: 'begun', after: null, rowsVersion: 0, held: null }
    if (loss !== null) {
      fillReason = loss
      isCopying = false
    }
    // The previous worker may still be writing with the next version, so this worker begins above it.
    const version = isCompared && loss === null ? before.version : Math.max(before.version, held.version ?? 0) + 1
    if (!(await save({ version, fill }, before))) return
    isCompared = true
    compareAtMs = performance.now() + compareEveryMs
  }

  /** @returns whether more pages may have to be filled. */
  async function fillOnePage(): Promise<boolean> {
    const progress = await state.findMirrorProgress()
    const { fill } = progress
    if (fill === null || fill.phase === 'complete') return false
    if (fill.phase === 'begun') {
      await options.faultPoint?.('begun')
      await events.beginMirrorFill(fill.id, progress.version)
      await options.faultPoint?.('emptied')
      return save({ version: progress.version, fill: { ...fill, phase: 'persons' } }, progress)
    }
    const version = progress.version + 1
    const { rows, next } = await readPage(fill)
    if (next !== null) {
      if (!isCopying) logger.info({ why: fillReason }, 'copying persons and groups into the event store')
      isCopying = true
      await events.writeSubjects(rows, version)
      await options.faultPoint?.('written')
      return save({ version, fill: { ...fill, after: next, rowsVersion: version } }, progress)
    }
    if (fill.phase === 'persons')
      return save({ version: progress.version, fill: { ...fill, phase: 'groups', after: null } }, progress)
    const last = await state.findMirrorProgress()
    await events.completeMirrorFill(fill.id, last.version + 1)
    await options.faultPoint?.('written')
    const { ranges } = await events.findMirrorState(false)
    const held = ranges === null ? null : mergeRowRanges(ranges)
    const rowsVersion = last.fill?.rowsVersion ?? 0
    const complete: MirrorFill = { ...fill, phase: 'complete', after: null, rowsVersion, held }
    if ((await save({ version: last.version + 1, fill: complete }, last)) && isCopying)
      logger.info('persons and groups are copied into the event store')
    return false
  }

  async function readPage({ phase, after }: MirrorFill) {
    if (phase === 'persons') {
      const { persons, next } = await state.listMirroredPersons(after as number | null)
      return { rows: { persons }, next }
    }
    const { groups, next } = await state.listMirroredGroups(after as Exclude<MirrorFill['after'], number>)
    return { rows: { groups }, next }
  }

  /** @returns whether more changes may have to be written. */
  async function writeChanges(): Promise<boolean> {
    const progress = await state.findMirrorProgress()
    const { persons, groups, changeIds } = await state.findChangedSubjects()
    if (changeIds.length === 0) return false
    const version = progress.version + 1
    for (let at = 0; at < persons.length; ) {
      const { lookedUp, persons: found } = await state.readMirroredPersons(persons.slice(at))
      const uuids = new Set(found.map(({ projectId, uuid }) => `${projectId} ${uuid}`))
      const deletedPersons = persons
        .slice(at, at + lookedUp)
        .filter(({ projectId, uuid }) => !uuids.has(`${projectId} ${uuid}`))
      await events.writeSubjects({ persons: found, deletedPersons }, version)
      at += lookedUp
    }
    for (let at = 0; at < groups.length; ) {
      const { lookedUp, groups: found } = await state.readMirroredGroups(groups.slice(at))
      const keys = new Set(found.map(({ projectId, typeIndex, key }) => `${projectId} ${typeIndex} ${key}`))
      const deletedGroups = groups
        .slice(at, at + lookedUp)
        .filter(({ projectId, typeIndex, key }) => !keys.has(`${projectId} ${typeIndex} ${key}`))
      await events.writeSubjects({ groups: found, deletedGroups }, version)
      at += lookedUp
    }
    await options.faultPoint?.('written')
    const fill = progress.fill === null ? null : { ...progress.fill, rowsVersion: version }
    if (!(await save({ version, fill }, progress))) return false
    await options.faultPoint?.('noted')
    await state.settleChanges(changeIds)
    await options.faultPoint?.('settled')
    return true
  }

  /** @returns false if another worker has taken over: it does the rest. */
  async function save(progress: MirrorProgress, before: MirrorProgress): Promise<boolean> {
    const isSaved = await state.saveMirrorProgress(progress, before.version)
    if (!isSaved) isCompared = false
    return isSaved
  }

  async function waitForWakeUp(signal: AbortSignal): Promise<void> {
    if (!isWokenUp && !signal.aborted)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, pollMs)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
        signal.addEventListener('abort', wake, { once: true })
      })
    if (wake !== null) signal.removeEventListener('abort', wake)
    wake = null
    isWokenUp = false
  }

  return {
    /** Fills the mirror if needed, and writes all changes made until now. @throws PortError if a store fails: call it again. */
    async settle(signal: AbortSignal): Promise<void> {
      while (await work(signal));
    },
    /** Call after a chunk was committed. Cheap. */
    wakeUp(): void {
      isWokenUp = true
      wake?.()
    },
    /** Runs until the signal aborts. Remaining changes are written at the next start. */
    run: (signal: AbortSignal) =>
      runPeriodically(
        async () => {
          await waitForWakeUp(signal)
          if (await work(signal)) isWokenUp = true
        },
        { everyMs: pauseMs, what: 'writing persons and groups to the event store', logger, signal },
      ),
  }
}

/** Why the mirror is not the one that the state filled; null when it is. */
function findLossReason(
  { fill, version }: MirrorProgress,
  held: MirrorState,
  emptied: readonly RowRange[],
): string | null {
  if (fill === null) return 'they were never copied'
  // A fill that has begun is perhaps not yet recorded in the event store, so its absence is not a loss.
  if (fill.phase === 'begun') return null
  if (held.fillId !== fill.id) return 'the event store was replaced'
  if (held.version !== null && held.version < fill.rowsVersion) return 'the event store is an older copy'
  // A version higher by 1 is normal: one step may have written its rows without recording its version.
  if (held.version !== null && held.version > version + 1) return 'the state is an older copy'
  if (fill.phase === 'complete' && !held.isComplete) return 'the event store is an older copy'
  if (
    fill.held !== null &&
    held.ranges !== null &&
    findMissingRanges(findMissingRanges(fill.held, held.ranges), emptied).length > 0
  )
    return 'some of their rows are missing from the event store'
  return null
}
