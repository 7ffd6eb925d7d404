// What becomes of rows that the event store refused for their content: rejects instead of stored, in the same balance.

import type { RejectedEvent } from '../events/stored-event.ts'
import type { ChunkChanges, ChunkOutcome } from './chunk.ts'
import type { ProcessedChunk } from './process-chunk.ts'
import { anonymized, rejectOfEvent, rejectOfReplay } from './rejects.ts'

/** Which row, and what the store said. */
export interface RefusedRow {
  readonly list: 'events' | 'pendingEvents' | 'replays'
  readonly index: number
  readonly message: string
}

/** @returns the rejects to store and the chunk's changes with its counts put right. */
export function rejectRefusedRows(
  processed: ProcessedChunk,
  refused: readonly RefusedRow[],
): { rejected: readonly RejectedEvent[]; changes: ChunkChanges } {
  const counts = new Map(processed.changes.outcomes.map(outcome => [keyOf(outcome), { ...outcome }]))
  const rejected = refused.map(({ list, index, message }) => {
    if (list === 'replays') {
      const { offset, replay } = processed.sources.replays[index]!
      moveToRejected(counts, replay.projectId, 'replay')
      return rejectOfReplay(offset, replay, 'row_refused', message)
    }
    const { offset, event } = processed.sources[list][index]!
    moveToRejected(counts, event.projectId, event.lane)
    return anonymized(rejectOfEvent(offset, event, 'row_refused', message), processed.anonymousProjectIds)
  })
  const outcomes = [...counts.values()].filter(({ count }) => count > 0)
  return { rejected, changes: { ...processed.changes, outcomes } }
}

type Counts = Map<string, { -readonly [Key in keyof ChunkOutcome]: ChunkOutcome[Key] }>

function moveToRejected(counts: Counts, projectId: number, lane: ChunkOutcome['lane']): void {
  const stored = { projectId, lane, outcome: 'stored', reason: '' } as const
  move(counts, { ...stored, count: -1 })
  move(counts, { ...stored, outcome: 'rejected', reason: 'row_refused', count: 1 })
}

function move(counts: Counts, by: ChunkOutcome): void {
  const known = counts.get(keyOf(by))
  if (known === undefined) counts.set(keyOf(by), { ...by })
  else known.count += by.count
}

function keyOf({ projectId, lane, outcome, reason }: ChunkOutcome): string {
  return JSON.stringify([projectId, lane, outcome, reason])
}
