// What becomes of rows that the event store refused for their content: rejects instead of stored, in the same balance.

import type { ChunkChanges, ChunkOutcome } from './chunk.ts'
import type { ProcessedChunk } from './process-chunk.ts'
import { rejectOfEvent } from './rejects.ts'
import type { RejectedEvent } from './stored-event.ts'

/** Which row, and what the store said. */
export interface RefusedRow {
  readonly list: 'events' | 'pendingEvents'
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
    const { offset, event } = processed.sources[list][index]!
    const stored = { projectId: event.projectId, lane: lane(processed), outcome: 'stored', reason: '' } as const
    move(counts, { ...stored, count: -1 })
    move(counts, { ...stored, outcome: 'rejected', reason: 'row_refused', count: 1 })
    return rejectOfEvent(offset, event, 'row_refused', message)
  })
  const outcomes = [...counts.values()].filter(({ count }) => count > 0)
  return { rejected, changes: { ...processed.changes, outcomes } }
}

/** A chunk is of one lane; a refused row was counted, so there is at least one outcome. */
function lane(processed: ProcessedChunk): ChunkOutcome['lane'] {
  return processed.changes.outcomes[0]!.lane
}

function move(
  counts: Map<string, { -readonly [Key in keyof ChunkOutcome]: ChunkOutcome[Key] }>,
  by: ChunkOutcome,
): void {
  const known = counts.get(keyOf(by))
  if (known === undefined) counts.set(keyOf(by), { ...by })
  else known.count += by.count
}

function keyOf({ projectId, outcome, reason }: ChunkOutcome): string {
  return JSON.stringify([projectId, outcome, reason])
}
