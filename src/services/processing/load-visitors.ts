// Loads the state of a chunk's cookieless visitors and settles their events, before persons are loaded. A chunk without
// such events, which is the usual case, costs one pass over its records.

import { isDayOpen } from '#core/cookieless/visitor-day.ts'
import type { ParsedChunk } from '#core/processing/parse-chunk.ts'
import {
  assignVisitorIds,
  countIdentifyEvents,
  findVisitorEvents,
  listWantedIdentifies,
  listWantedSaltDays,
  listWantedSessions,
} from '#core/processing/settle-visitors.ts'
import type { VisitorChanges } from '#core/processing/visitors.ts'
import type { ChunkDeps } from './chunk-deps.ts'

export interface SettledChunk {
  readonly chunk: ParsedChunk
  /** Null for a chunk without events of stateful visitors. */
  readonly changes: VisitorChanges | null
}

/** @throws PortError if the state or the salts cannot be read. */
export async function loadAndAssignVisitorIds(chunk: ParsedChunk, deps: ChunkDeps): Promise<SettledChunk> {
  const events = findVisitorEvents(chunk)
  if (events.length === 0) return { chunk, changes: null }
  const wanted = listWantedIdentifies(events, chunk.traffic)
  const counted = countIdentifyEvents(events, wanted, await deps.state.loadIdentifies(wanted))
  const salts = await readSalts(listWantedSaltDays(events, counted.counts), deps)
  const sessions = await deps.state.loadSessions(listWantedSessions(events, counted.counts))
  const isLive = chunk.traffic === 'live'
  const isRestoring = isLive && deps.isRestoring === true
  const settled = assignVisitorIds(chunk, events, { counted, sessions, salts, isRestoring })
  // Rerouted events are days late: they neither end sessions nor start new visitors.
  return isLive ? settled : { chunk: settled.chunk, changes: null }
}

/** Leaves out days that have ended: they have no salt, and must not get one again. */
async function readSalts(days: ReadonlySet<string>, { saltOf, clock }: ChunkDeps): Promise<Map<string, Uint8Array>> {
  const salts = new Map<string, Uint8Array>()
  for (const day of days) if (isDayOpen(day, clock.nowMs())) salts.set(day, await saltOf(day))
  return salts
}
