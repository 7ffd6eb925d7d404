// Restores rows of the event store from processed records that are still in the log. The records are read, applied to the
// persons as they are now, and inserted. The state does not change: nothing is counted, no person changes, and no existing
// row is replaced.

import { acceptedItemOf } from '#core/events/captured-event.ts'
import type { LogStream } from '#core/events/log-stream.ts'
import type { PersonIdOverride } from '#core/events/stored-event.ts'
import { type ImportJob, isJobPending } from '#core/imports/import-job.ts'
import type { ChunkChanges, LoadedChunk } from '#core/processing/chunk.ts'
import { type EventWriter, noEventRows } from '#ports/events/event-writer.ts'
import type { EventLogReader } from '#ports/log/event-log.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import type { ImportJobStore } from '#ports/state/import-job-store.ts'
import type { EventStoreMarks } from '#ports/state/worker-state.ts'
import type { ChunkDeps, ProcessingEventStore } from './chunk-deps.ts'
import { processOneChunk } from './process-one-chunk.ts'
import { processorLimits } from './processor-limits.ts'

/** A range of a stream's records that were processed before. */
export interface RestoredRange {
  readonly fromOffset: number
  readonly toOffset: number
  /** Whether to leave out a record of the range because it is not processed yet. Default: never. */
  readonly isLeftOut?: (projectId: number, offset: number) => boolean
}

export interface RestoreDeps
  extends Pick<
    ChunkDeps,
    'state' | 'geoip' | 'saltOf' | 'clock' | 'metrics' | 'logger' | 'random' | 'logId' | 'implicitJobs' | 'underWay'
  > {
  readonly log: Pick<EventLogReader, 'read'>
  readonly events: ProcessingEventStore & Pick<EventWriter, 'publishJob' | 'discardJob' | 'deleteSharedJobRows'>
  readonly jobs: Pick<ImportJobStore, 'findImportJob'>
}

const recordCountMax = 2_000

/**
 * Restores the rows of a stream's records from `fromOffset` up to `toOffset`, as far as the log still has them. Ends
 * early when the signal aborts.
 * @returns the number of records restored.
 * @throws PortError if the log cannot be read.
 */
export async function restoreEvents(
  stream: LogStream,
  { fromOffset, toOffset, isLeftOut }: RestoredRange,
  deps: RestoreDeps,
  signal: AbortSignal,
): Promise<number> {
  let offset = fromOffset
  let recordCount = 0
  while (offset < toOffset && !signal.aborted) {
    const read = await deps.log.read(stream, offset, { recordCountMax, bytesMax: processorLimits.bytesMax })
    if (read.nextOffset === offset) break
    const records = read.records.filter(({ offset, record }) => {
      const item = acceptedItemOf(record)
      return offset < toOffset && !(item !== null && isLeftOut?.(item.projectId, offset) === true)
    })
    const chunk = { ...read, records, nextOffset: Math.min(read.nextOffset, toOffset) }
    const end = await processOneChunk(chunk, {
      ...wrapStoresReadOnly(deps),
      isRestoring: true,
      ...processorLimits,
      signal,
      ownerId: '',
      cursor: stream,
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

/**
 * Inserts the overrides of every distinct id: the state has them all, and it is unknown which of them the event store lost.
 * An erasure waits until the pages of overrides that were read before it are inserted.
 */
export async function restoreOverrides(
  state: Pick<EventStoreMarks, 'listOverrides'>,
  { events, underWay }: { readonly events: Pick<ProcessingEventStore, 'insert'> } & Pick<RestoreDeps, 'underWay'>,
  signal: AbortSignal,
): Promise<void> {
  const restorePage = async (after: PersonIdOverride | null): Promise<PersonIdOverride | null> => {
    const page = await state.listOverrides(after, 5_000)
    const overrides = page.filter(isOverride)
    const erasures = new Map(page.map(({ projectId, erasures }) => [projectId, erasures]))
    if (overrides.length > 0) await events.insert({ ...noEventRows, overrides, erasures })
    return page.at(-1) ?? null
  }
  let after: PersonIdOverride | null = null
  while (!signal.aborted) {
    const restoreNext: () => Promise<PersonIdOverride | null> = restorePage.bind(null, after)
    after = await (underWay?.run(restoreNext) ?? restoreNext())
    if (after === null) return
  }
}

/** Wraps the state store so that it is never written, and the event store so that inserts replace nothing. */
function wrapStoresReadOnly(deps: RestoreDeps): Omit<RestoreDeps, 'events'> & Pick<ChunkDeps, 'events'> {
  let overrides: readonly PersonIdOverride[] = []
  const state: ChunkStore = {
    ...deps.state,
    loadChunk: async (subjects, textBytesMax) => {
      const loaded = await deps.state.loadChunk(subjects, textBytesMax)
      overrides = loaded === 'too_large' ? [] : toOverrides(loaded)
      return loaded
    },
    commitChunk: async changes => {
      for (const job of changes.imports?.jobs ?? []) await repeatJobEnd(job, deps)
      return 'committed'
    },
  }
  const events: ProcessingEventStore = {
    ...deps.events,
    // The persons are already merged, so applying the events again gives no overrides: insert the current overrides.
    insert: rows => deps.events.insert({ ...rows, overrides, areRestored: true }),
  }
  return { ...deps, state, events }
}

/**
 * If a job was published or discarded while its rows were rebuilt, the rows were inserted as pending rows, or although the
 * job is gone: publish or discard the rows again. A job that is published or discarded later includes these rows anyway;
 * until then, the undo of a published job needs all of the job's rows. A job that no longer exists was discarded.
 */
async function repeatJobEnd(
  before: NonNullable<ChunkChanges['imports']>['jobs'][number],
  { jobs, events }: RestoreDeps,
): Promise<void> {
  const job = await jobs.findImportJob(before.id)
  if (job === null) return events.discardJob(before.id)
  if (areRowsDiscarded(job)) await (job.day === null ? events.discardJob(job.id) : events.deleteSharedJobRows(job.id))
  else if (isJobPending(before) && areRowsPublished(job)) await events.publishJob(job.id)
}

function areRowsDiscarded({ state, step }: ImportJob): boolean {
  return state === 'discarded' || (state === 'discarding' && step === 'clearing')
}

function areRowsPublished({ state, step }: ImportJob): boolean {
  return state === 'published' || (state === 'publishing' && (step === 'rows' || step === 'clearing'))
}

function toOverrides({ mappings, personMappings }: LoadedChunk): PersonIdOverride[] {
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
