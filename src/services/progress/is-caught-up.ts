// Tells an answer that counts events whether they are all there: after a start, or while there is too much for it, the worker
// is behind what was accepted.

import type { Clock } from '#ports/clock.ts'
import type { EventLogReader } from '#ports/log/event-log.ts'
import { findProgress, type ProgressStore } from './find-progress.ts'

export interface CaughtUpDeps {
  readonly log: Pick<EventLogReader, 'streams' | 'status'>
  readonly positions: ProgressStore
  readonly clock: Clock
  /** When this process started, epoch ms. */
  readonly startedAtMs: number
  /** Whether the worker is there and fills nothing up again, such as an event store that lost rows. */
  readonly isProcessing: () => boolean
}

/** Events that are processed as usual wait for less. */
const usualWaitMs = 2_000

/**
 * Whether everything of a project that was accepted before this process started, or some seconds ago, is processed. Ask before
 * counting: what is processed meanwhile is counted, or not.
 * @throws PortError
 */
export async function isCaughtUp(deps: CaughtUpDeps, projectId: number): Promise<boolean> {
  if (!deps.isProcessing()) return false
  const nowMs = deps.clock.nowMs()
  // A clock that was set back since the start says nothing about what was accepted before.
  const dueMs = Math.max(deps.startedAtMs > nowMs ? 0 : deps.startedAtMs, nowMs - usualWaitMs)
  for (const { stream } of await deps.log.streams()) {
    const { offset, deferral } = await findProgress(deps.positions, stream)
    const isDeferred = deferral?.projects.some(each => each.projectId === projectId) === true
    const { appendedAtMs } = await deps.log.status(stream, isDeferred ? Math.min(offset, deferral.offset) : offset)
    if (appendedAtMs !== null && appendedAtMs < dueMs) return false
  }
  return true
}
