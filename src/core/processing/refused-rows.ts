// Turns rows that the event store refused because of their content into rejects, and counts them as rejected.

import { anonymizeReject, createRejectFromEvent, createRejectFromRecording } from '#core/processing/rejects/rejects.ts'
import type { RejectedEvent } from '../events/stored-event.ts'
import type { ChunkChanges, ChunkOutcome } from './chunk.ts'
import type { ProcessedChunk } from './process-chunk.ts'

/** A refused row and the store's message. */
export interface RefusedRow {
  readonly list: 'events' | 'pendingEvents' | 'recordings'
  readonly index: number
  readonly message: string
}

/** @returns the rejects to store, and the chunk's changes with corrected counts. */
export function rejectRefusedRows(
  processed: ProcessedChunk,
  refused: readonly RefusedRow[],
): { rejected: readonly RejectedEvent[]; changes: ChunkChanges } {
  const counts = new Map(processed.changes.outcomes.map(outcome => [buildKey(outcome), { ...outcome }]))
  const { stream } = processed.sources
  const refusedOfJobs = new Map<number, number>()
  const rejected = refused.map(({ list, index, message }) => {
    if (list === 'recordings') {
      const { offset, recording } = processed.sources.recordings[index]!
      moveToRejected(counts, recording.projectId, 'replay')
      return createRejectFromRecording({ stream, offset }, recording, 'row_refused', message)
    }
    const { offset, event } = processed.sources[list][index]!
    moveToRejected(counts, event.projectId, event.lane)
    if (list === 'pendingEvents') refusedOfJobs.set(event.importJobId, 1 + (refusedOfJobs.get(event.importJobId) ?? 0))
    return anonymizeReject(
      createRejectFromEvent({ stream, offset }, event, 'row_refused', message),
      processed.anonymousProjectIds,
    )
  })
  const outcomes = [...counts.values()].filter(({ count }) => count > 0)
  const { imports } = processed.changes
  if (imports === undefined) return { rejected, changes: { ...processed.changes, outcomes } }
  const storedRows = imports.storedRows.map(({ importJobId, count }) => {
    return { importJobId, count: Math.max(0, count - (refusedOfJobs.get(importJobId) ?? 0)) }
  })
  return { rejected, changes: { ...processed.changes, outcomes, imports: { ...imports, storedRows } } }
}

type Counts = Map<string, { -readonly [Key in keyof ChunkOutcome]: ChunkOutcome[Key] }>

function moveToRejected(counts: Counts, projectId: number, lane: ChunkOutcome['lane']): void {
  const stored = { projectId, lane, outcome: 'stored', reason: '' } as const
  addToCount(counts, { ...stored, count: -1 })
  addToCount(counts, { ...stored, outcome: 'rejected', reason: 'row_refused', count: 1 })
}

function addToCount(counts: Counts, by: ChunkOutcome): void {
  const known = counts.get(buildKey(by))
  if (known === undefined) counts.set(buildKey(by), { ...by })
  else known.count += by.count
}

function buildKey({ projectId, lane, outcome, reason }: ChunkOutcome): string {
  return JSON.stringify([projectId, lane, outcome, reason])
}
