// Reads from the state store how far a stream is processed. The answer stays valid while the worker continues.

import { formatDeferredCursorName, type LogStream } from '#core/events/log-stream.ts'
import type { EventLogReader } from '#ports/log/event-log.ts'
import type { Deferral, DeferredProjects, LogBindingStore } from '#ports/state/worker-state.ts'

export type ProgressStore = Pick<LogBindingStore, 'findLogPosition'> & Pick<DeferredProjects, 'findDeferral'>

export interface StreamProgress {
  /** Every record before this offset was processed or belongs to a deferred project. */
  readonly offset: number
  /** Every record before this offset was processed. At most `offset`. */
  readonly doneOffset: number
  readonly deferral: Deferral | null
}

/** @throws PortError */
export async function findStreamProgress(store: ProgressStore, stream: LogStream): Promise<StreamProgress> {
  // The position is read before the deferral: a project released between the two reads is then processed up to `offset`,
  // and a project deferred between them starts there.
  const { offset } = await store.findLogPosition(stream)
  const deferral = await store.findDeferral(stream)
  return { offset, doneOffset: Math.min(offset, deferral?.offset ?? offset), deferral }
}

/** The progress in every stream of the log. @throws PortError */
export async function findAllProgress(
  store: ProgressStore,
  log: Pick<EventLogReader, 'listStreams'>,
): Promise<ReadonlyMap<LogStream, StreamProgress>> {
  const streams = await log.listStreams()
  return new Map(
    await Promise.all(streams.map(async ({ stream }) => [stream, await findStreamProgress(store, stream)] as const)),
  )
}

/** Whether a record waits for the second cursor, which has not reached it yet. */
export function isRecordDeferred({ deferral }: StreamProgress, projectId: number, offset: number): boolean {
  if (deferral === null || offset < deferral.offset) return false
  return deferral.projects.some(each => each.projectId === projectId && each.fromOffset <= offset)
}

/** Whether every record of a project before this offset was processed. */
export function isRecordProcessed({ offset, deferral }: StreamProgress, projectId: number, endOffset: number): boolean {
  if (offset < endOffset) return false
  if (deferral === null || deferral.offset >= endOffset) return true
  return !deferral.projects.some(each => each.projectId === projectId && each.fromOffset < endOffset)
}

/** Every position of the state, including those of second cursors that have records to process. */
export async function readAllPositions(
  store: ProgressStore,
  streams: readonly LogStream[],
): Promise<Record<string, number>> {
  const positions: Record<string, number> = {}
  const deferred: Record<string, number> = {}
  for (const stream of streams) {
    const { offset, deferral } = await findStreamProgress(store, stream)
    positions[stream] = offset
    if (deferral !== null) deferred[formatDeferredCursorName(stream)] = deferral.offset
  }
  return { ...positions, ...deferred }
}
