// Brings rows back into the event store from records that were processed before and are still in the log. They are read,
// applied to the persons as they are today, and inserted, while the state stays as it is: nothing is counted, no person
// changes, and no row that is there is replaced.

import type { LogLane } from '#core/events/captured-event.ts'
import type { PersonIdOverride } from '#core/events/stored-event.ts'
import type { LoadedChunk } from '#core/processing/chunk.ts'
import type { ChunkStore } from '#ports/chunk-store.ts'
import type { EventLogReader } from '#ports/event-log.ts'
import type { EventStoreMarkStore } from '#ports/management-store.ts'
import { processorLimits } from './process-events.ts'
import { type ChunkDependencies, type ProcessingEventStore, processOneChunk } from './process-one-chunk.ts'

export interface RestoreDependencies
  extends Pick<ChunkDependencies, 'state' | 'events' | 'geoip' | 'clock' | 'metrics' | 'logger' | 'random'> {
  readonly log: Pick<EventLogReader, 'read'>
}

const recordCountMax = 2_000

/**
 * The records of a lane from `fromOffset` up to `toOffset`, or what is kept of them.
 * @returns how many there were. Ends early when the signal aborts.
 * @throws PortError when the log cannot be read.
 */
export async function restoreEvents(
  lane: LogLane,
  { fromOffset, toOffset }: { readonly fromOffset: number; readonly toOffset: number },
  deps: RestoreDependencies,
  signal: AbortSignal,
): Promise<number> {
  let offset = fromOffset
  let recordCount = 0
  while (offset < toOffset && !signal.aborted) {
    const read = await deps.log.read(lane, offset, { recordCountMax, bytesMax: processorLimits.bytesMax })
    const records = read.records.slice(0, Math.max(0, toOffset - read.firstOffset))
    if (records.length === 0) break
    const chunk = { ...read, records, nextOffset: Math.min(read.nextOffset, toOffset) }
    const end = await processOneChunk(chunk, {
      ...withoutEffect(deps),
      ...processorLimits,
      signal,
      ownerId: '',
      enterState: () => undefined,
      mayHaveBeenTried: () => false,
      position: () => offset,
      onCommitted: () => undefined,
    })
    if (end !== 'committed') break
    recordCount += records.length
    offset = chunk.nextOffset
  }
  return recordCount
}

/** The overrides of every distinct id: the state has them all, and which of them the event store lost is not known. */
export async function restoreOverrides(
  state: Pick<EventStoreMarkStore, 'listOverrides'>,
  events: Pick<ProcessingEventStore, 'insert'>,
  signal: AbortSignal,
): Promise<void> {
  let after: PersonIdOverride | null = null
  while (!signal.aborted) {
    const page: readonly PersonIdOverride[] = await state.listOverrides(after, 5_000)
    const overrides = page.filter(isOverride)
    if (overrides.length > 0)
      await events.insert({ events: [], pendingEvents: [], overrides, replays: [], rejected: [] })
    after = page.at(-1) ?? null
    if (after === null) return
  }
}

/** A state that is loaded from and never written to, and inserts that replace nothing. */
function withoutEffect(deps: RestoreDependencies): RestoreDependencies {
  let overrides: readonly PersonIdOverride[] = []
  const state: ChunkStore = {
    ...deps.state,
    loadChunk: async (subjects, textBytesMax) => {
      const loaded = await deps.state.loadChunk(subjects, textBytesMax)
      overrides = loaded === 'too_large' ? [] : overridesOf(loaded)
      return loaded
    },
    commitChunk: async () => 'committed',
  }
  const events: ProcessingEventStore = {
    ...deps.events,
    // The merges were made before, so applying the events again reports none: the overrides that stand are written again.
    insert: rows => deps.events.insert({ ...rows, overrides, areRestored: true }),
  }
  return { ...deps, state, events }
}

function overridesOf({ mappings, personMappings }: LoadedChunk): PersonIdOverride[] {
  return [...mappings, ...personMappings].filter(isOverride).map(mapping => ({
    projectId: mapping.projectId,
    distinctId: mapping.distinctId,
    personId: mapping.personUuid,
    version: mapping.version,
  }))
}

function isOverride({ version }: { readonly version: number }): boolean {
  return version > 0
}
