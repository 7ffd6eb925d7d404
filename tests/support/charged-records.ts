import type { MemoryState } from '#adapters/memory/memory-state.ts'
import { thinnedReason } from '#core/processing/thin-flag-calls.ts'
import type { LogBindingStore } from '#ports/state/log-binding.ts'

/** `sumChargedRecords` of the SQL stores, for a state in memory. */
export function sumChargedRecords(state: MemoryState): ReturnType<LogBindingStore['sumChargedRecords']> {
  const counts = new Map<number, number>()
  for (const { projectId, outcome, reason, count } of state.outcomes)
    if (outcome === 'stored' || reason === thinnedReason) counts.set(projectId, (counts.get(projectId) ?? 0) + count)
  return Promise.resolve(Array.from(counts, ([projectId, recordCount]) => ({ projectId, recordCount })))
}
