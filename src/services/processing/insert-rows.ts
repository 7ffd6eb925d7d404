// Writes the rows of a chunk to the event store and waits for them to be durable: step 4 of `process-one-chunk.ts`.

import { chargeLateEventsOnce, findLateLiveEvents } from '#core/processing/charge-once.ts'
import type { ChunkChanges } from '#core/processing/chunk.ts'
import type { ProcessedChunk } from '#core/processing/process-chunk.ts'
import { type RefusedRow, rejectRefusedRows } from '#core/processing/refused-rows.ts'
import { type EventRows, noEventRows } from '#ports/events/event-writer.ts'
import type { ChunkDeps } from './chunk-deps.ts'
import { retryWhileStoreDown } from './wait-for-store.ts'

/** Rows that the store refuses become rejects. @returns the changes to commit; null if stopped while waiting. */
export async function insertRows(processed: ProcessedChunk, deps: ChunkDeps): Promise<ChunkChanges | null> {
  const events = await addChargedTimes(processed.rows.events, deps)
  if (events === null) return null
  const refused = await insertWhenStoreIsUp({ ...processed.rows, events }, deps)
  if (refused === null) return null
  if (refused.length === 0) return processed.changes
  const { rejected, changes } = rejectRefusedRows(processed, refused)
  deps.logger.warn({ count: refused.length, message: refused[0]!.message }, 'the event store rejected rows')
  const nothing = { ...noEventRows, erasures: processed.rows.erasures }
  const done = await insertWhenStoreIsUp({ ...nothing, rejected }, deps)
  return done === null ? null : changes
}

/** Gives rows that may repeat older events the charge day of those events. Few chunks have such rows. */
async function addChargedTimes(rows: EventRows['events'], deps: ChunkDeps): Promise<EventRows['events'] | null> {
  const late = findLateLiveEvents(rows)
  if (late.length === 0) return rows
  const chargedTimes = await retryWhileStoreDown(() => deps.events.findChargedTimes(late), deps)
  return chargedTimes === null ? null : chargeLateEventsOnce(rows, late, chargedTimes)
}

async function insertWhenStoreIsUp(rows: EventRows, deps: ChunkDeps): Promise<readonly RefusedRow[] | null> {
  if (isEmpty(rows)) return []
  const inserted = await retryWhileStoreDown(() => deps.events.insert(rows), deps)
  return inserted === null ? null : inserted.refused
}

function isEmpty({ events, pendingEvents, overrides, recordings, rejected, deduplicated = [] }: EventRows): boolean {
  return [events, pendingEvents, overrides, recordings, rejected, deduplicated].every(({ length }) => length === 0)
}
