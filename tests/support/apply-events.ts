import { memoryChunkStore } from '#adapters/memory/memory-chunk-store.ts'
import { keyOf, type MemoryState, memoryState } from '#adapters/memory/memory-state.ts'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { StoredEvent } from '#core/events/stored-event.ts'
import type { GeoipLocation } from '#core/geoip.ts'
import type { Person } from '#core/persons/person.ts'
import { chunkSubjects, parseChunk } from '#core/processing/parse-chunk.ts'
import { type ProcessedChunk, processChunk } from '#core/processing/process-chunk.ts'
import type { Project } from '#core/project.ts'
import { loadWhole } from './state.ts'
import { aProject, recordsAt } from './values.ts'

export interface AppliedWorld {
  readonly state: MemoryState
  readonly chunks: ProcessedChunk[]
  readonly rows: StoredEvent[]
  person(distinctId: string): Person | undefined
  mappingVersion(distinctId: string): number | undefined
  warningTypes(): string[]
  /** Applies more events, all those of a call as one chunk. */
  apply(...events: readonly CapturedEvent[]): Promise<void>
}

/** Applies events to a state in memory as the worker does, without a log or an event store. */
export function applyingWorld(
  options: { project?: Partial<Project>; geoip?: Record<string, GeoipLocation> } = {},
): AppliedWorld {
  const state = memoryState([aProject({ geoipEnabled: options.geoip !== undefined, ...options.project })])
  const store = memoryChunkStore(state)
  const chunks: ProcessedChunk[] = []
  const rows: StoredEvent[] = []
  let offset = 0
  return {
    state,
    chunks,
    rows,
    person: distinctId => state.persons.get(keyOf(1, state.mappings.get(keyOf(1, distinctId))?.personUuid ?? '')),
    mappingVersion: distinctId => state.mappings.get(keyOf(1, distinctId))?.version,
    warningTypes: () => state.warnings.map(({ type }) => type),
    async apply(...events) {
      await store.claimPosition('main', 'w')
      const records = recordsAt(
        events.map(event => ({ kind: 'event', event })),
        offset,
      )
      const chunk = parseChunk({ stream: 'main', traffic: 'live', records }, new Map())
      const lookUpGeoip = (address: string) => options.geoip?.[address] ?? null
      const processed = processChunk(chunk, await loadWhole(store, chunkSubjects(chunk)), { logId: 'log', lookUpGeoip })
      offset += records.length
      const position = { stream: 'main', ownerId: 'w', offset, committedAtMs: 0 }
      if ((await store.commitChunk(processed.changes, position)) !== 'committed') throw new Error('not committed')
      chunks.push(processed)
      rows.push(...processed.rows.events)
    },
  }
}
