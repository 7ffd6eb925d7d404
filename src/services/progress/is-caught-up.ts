// Checks, for answers that count events, whether all accepted events are in the event store: the worker lags after a start
// and when overloaded.

import type { Clock } from '#ports/clock.ts'
import type { EventLogReader } from '#ports/log/event-log.ts'
import { findStreamProgress, type ProgressStore } from './find-progress.ts'

export interface CaughtUpDeps {
  readonly log: Pick<EventLogReader, 'listStreams' | 'readStreamStatus'>
  readonly positions: ProgressStore
  readonly clock: Clock
  /** When this process started, epoch ms. */
  readonly startedAtMs: number
  /** Whether the worker is running, and is not refilling an event store that lost rows. */
  readonly isProcessing: () => boolean
}

/** Events usually wait for less than this before they are processed. */
const usualWaitMs = 2_000

/**
 * Whether all events of a project that were accepted before this process started, or longer than `usualWaitMs` ago, are
 * processed. Call it before counting: events processed in between may or may not be counted.
 * @throws PortError
 */
export async function isCaughtUp(deps: CaughtUpDeps, projectId: number): Promise<boolean> {
  if (!deps.isProcessing()) return false
  const nowMs = deps.clock.nowMs()
  // If the clock was set back since the start, the start time is not comparable and is ignored.
  const dueMs = Math.max(deps.startedAtMs > nowMs ? 0 : deps.startedAtMs, nowMs - usualWaitMs)
  for (const { stream } of await deps.log.listStreams()) {
    const { offset, deferral } = await findStreamProgress(deps.positions, stream)
    const isDeferred = deferral?.projects.some(each => each.projectId === projectId) === true
    const { appendedAtMs } = await deps.log.readStreamStatus(
      stream,
      isDeferred ? Math.min(offset, deferral.offset) : offset,
    )
    if (appendedAtMs !== null && appendedAtMs < dueMs) return false
  }
  return true
}
