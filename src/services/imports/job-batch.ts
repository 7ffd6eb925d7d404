// Runs one batch of publishing or undoing a job, or of repairing persons: loads, computes, inserts overrides, commits, and
// retries after a conflict. The commits leave the position unchanged; they only require that this worker owns the log's
// import stream.

import { computeBackOffMs } from '#core/back-off.ts'
import type { LogStream } from '#core/events/log-stream.ts'
import type { PersonIdOverride } from '#core/events/stored-event.ts'
import { type ImportChanges, noImportChanges } from '#core/imports/import-changes.ts'
import type { ImportJob } from '#core/imports/import-job.ts'
import { type ChunkSubjects, type LoadedChunk, noChunkChanges } from '#core/processing/chunk.ts'
import type { JobBatch, PublishedBatch } from '#core/processing/imports/publish-staging.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventHistory } from '#ports/events/event-history.ts'
import { type EventWriter, noEventRows } from '#ports/events/event-writer.ts'
import type { ImportedRows } from '#ports/events/imported-rows.ts'
import type { EventLogReader } from '#ports/log/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import type { GroupStore } from '#ports/state/group-store.ts'
import type { ImportJobStore, ImportWorkStore } from '#ports/state/import-job-store.ts'
import type { PersonRepairStore, PersonStore } from '#ports/state/person-store.ts'
import type { Logger } from '#telemetry/log.ts'
import type { ProgressStore } from '../progress/find-progress.ts'
import type { RunningCalls } from '../shared/running-calls.ts'
import type { Serialize } from '../shared/serial-queue.ts'
import { waitOrStop } from '../shared/wait-or-stop.ts'
import { isQueryFailure, retryQuery } from './query-failures.ts'

export interface ImportWorkDeps {
  readonly state: ChunkStore
  readonly jobs: ImportJobStore &
    ImportWorkStore &
    ProgressStore &
    PersonRepairStore &
    Pick<PersonStore, 'listDistinctIds'> &
    Pick<GroupStore, 'startDeletingGroupType' | 'deleteGroupsOfType' | 'listGroups'>
  readonly events: Pick<
    EventWriter,
    | 'insert'
    | 'countPendingDistinctIds'
    | 'addKnownProperties'
    | 'publishJob'
    | 'discardJob'
    | 'deleteSharedJobRows'
    | 'findOverrides'
  > &
    EventHistory &
    Pick<ImportedRows, 'hasRowsOfGroupType' | 'countPendingRows'>
  readonly log: Pick<EventLogReader, 'listStreams' | 'readStreamStatus'>
  readonly clock: Clock
  readonly logger: Logger
  /** The owner id under which this worker holds its streams' positions. */
  readonly ownerId: string
  readonly random: () => number
  /** Runs batches of concurrent jobs one at a time, in the order of their calls. */
  readonly serialize: Serialize
  /** Tracks each batch from its load to its commit. */
  readonly underWay?: RunningCalls
}

/** Another worker owns the import stream and continues with the job. */
export class NotOwnerError extends Error {}

export const textBytesMax = 64 * 1024 * 1024
const conflictTryCount = 50
/** After this many conflicts a batch is halved, since live events change few of its persons at a time. */
const conflictsOfWholeMax = 3
/**
 * After this many conflicts, a single item is left as it is if its caller allows that, since the rest of the job waits for
 * it.
 */
const conflictsOfOneMax = 16
const conflictBackOff = { firstMs: 50, longestMs: 800 }

type Compute<Item> = (
  items: readonly Item[],
  loaded: LoadedChunk,
  published: readonly PersonIdOverride[],
) => PublishedBatch | Promise<PublishedBatch>

/**
 * @param items the batch is halved if the persons of its items, or the queries about them, are too large together, or if it keeps
 * conflicting.
 * @param compute called again after a conflict, with freshly loaded data.
 * @param computeUnanswered computes a batch of one item that cannot be computed: its persons, or the queries about them, are too
 * large, the event store keeps failing to answer, or live events change it again and again. Called with nothing loaded.
 * @throws PortError, NotOwnerError; earlier commits stay in effect.
 */
export async function runJobBatch<Item>(
  deps: ImportWorkDeps,
  signal: AbortSignal,
  items: readonly Item[],
  subjectsOf: (items: readonly Item[]) => ChunkSubjects,
  compute: Compute<Item>,
  computeUnanswered?: Compute<Item>,
): Promise<void> {
  if (items.length === 0) return
  const { underWay } = deps
  const isOne = items.length === 1
  // An item may never be computable: anybody with the project's key can link large persons with this one, or send its
  // events without end.
  const mayGiveUp = !isOne || computeUnanswered !== undefined
  const subjects = subjectsOf(items)
  const published = new Map<string, PersonIdOverride>()
  const askedIds = subjects.distinctIds.filter(({ projectId }) => projectId > 0)
  addPublishedOverrides(published, await deps.events.findOverrides(askedIds))
  let hasPublished = false
  for (let attempt = 1; !signal.aborted; attempt++) {
    const end = await deps.serialize(() => underWay?.run(tryOnce) ?? tryOnce())
    if (end === 'done') return
    const conflictsMax = isOne ? conflictsOfOneMax : conflictsOfWholeMax
    // A single item whose overrides are published must be committed.
    if (end === 'too_large' || (mayGiveUp && !(isOne && hasPublished) && attempt >= conflictsMax)) break
    if (attempt > conflictTryCount)
      throw new PortError('state', 'conflict', new Error('a batch conflicts with every try'))
    // Waits outside of `serialize`, so that batches of other projects can run in the meantime.
    await waitOrStop(computeBackOffMs(conflictBackOff, attempt - 1, deps.random()), signal)
  }
  if (signal.aborted) return
  if (isOne) {
    const toSubjects = () => ({ distinctIds: [], groups: [], projectIds: subjects.projectIds })
    return runJobBatch(deps, signal, items, toSubjects, computeUnanswered!)
  }
  const middle = Math.ceil(items.length / 2)
  await runJobBatch(deps, signal, items.slice(0, middle), subjectsOf, compute, computeUnanswered)
  await runJobBatch(deps, signal, items.slice(middle), subjectsOf, compute, computeUnanswered)

  async function tryOnce(): Promise<'done' | 'conflict' | 'too_large'> {
    const loaded = await deps.state.loadChunk(subjects, mayGiveUp ? textBytesMax : Number.POSITIVE_INFINITY)
    if (loaded === 'too_large') return loaded
    const batch = await computeBatch(loaded, [...published.values()])
    if (batch === 'too_large') return batch
    const { changes, overrides } = batch
    if (overrides.length > 0) {
      addPublishedOverrides(published, overrides)
      hasPublished = true
      await deps.events.insert({ ...noEventRows, overrides, ...(loaded.erasures && { erasures: loaded.erasures }) })
    }
    return (await commitChanges(deps, addUnchangedRows(changes, loaded))) === 'committed' ? 'done' : 'conflict'
  }

  async function computeBatch(
    loaded: LoadedChunk,
    published: readonly PersonIdOverride[],
  ): Promise<PublishedBatch | 'too_large'> {
    try {
      const run = async () => compute(items, loaded, published)
      return await (isOne && mayGiveUp ? retryQuery(run, { random: deps.random, signal }) : run())
    } catch (cause) {
      if (computeUnanswered === undefined || !isQueryFailure(cause)) throw cause
      deps.logger.warn(
        { err: cause, itemCount: items.length },
        'the event store could not answer a query about a batch',
      )
      return 'too_large'
    }
  }
}

/**
 * Persons or mappings are removed if nothing else uses them. This function makes the commit conflict if any loaded person
 * has come into use since: while a job is undone, a use counts as a change (`ProjectState.findPerson`).
 */
function addUnchangedRows(changes: PublishedBatch['changes'], loaded: LoadedChunk): PublishedBatch['changes'] {
  const { imports } = changes
  if (imports === undefined) return changes
  const removes = [...imports.removedPersons, ...imports.removedMappings].some(({ projectId }) => projectId > 0)
  if (!removes) return changes
  const written = new Set([
    ...changes.persons.map(({ row }) => row.uuid),
    ...changes.deletedPersons.map(({ uuid }) => uuid),
    ...imports.removedPersons.map(({ uuid }) => uuid),
  ])
  const unchangedPersons = loaded.persons
    .filter(({ projectId, uuid }) => projectId > 0 && !written.has(uuid))
    .map(({ projectId, uuid, version }) => ({ projectId, uuid, loadedVersion: version }))
  return { ...changes, imports: { ...imports, unchangedPersons } }
}

/** @throws NotOwnerError, PortError */
async function commitChanges(deps: ImportWorkDeps, changes: PublishedBatch['changes']): Promise<'committed' | 'again'> {
  const { state, ownerId, clock } = deps
  const { stream, offset } = await findOwnImportPosition(deps)
  const position = { stream, ownerId, fromOffset: offset, offset, committedAtMs: clock.nowMs() }
  const end = await state.commitChunk(changes, position)
  if (end === 'not_owner') throw new NotOwnerError(`another worker owns ${stream}`)
  return end === 'committed' ? end : 'again'
}

/** Commits changes that depend on nothing in the state. @throws NotOwnerError, PortError */
export async function commitImportChanges(
  deps: ImportWorkDeps,
  signal: AbortSignal,
  imports: Partial<ImportChanges>,
): Promise<void> {
  const changes = { ...noChunkChanges, imports: { ...noImportChanges, ...imports } }
  const noSubjects = { distinctIds: [], groups: [], projectIds: [] }
  await runJobBatch(
    deps,
    signal,
    [changes],
    () => noSubjects,
    () => ({ overrides: [], changes }),
  )
}

/** This worker's position in the stream of imports. @throws NotOwnerError, PortError */
export async function findOwnImportPosition({
  state,
  log,
  ownerId,
}: Pick<ImportWorkDeps, 'state' | 'log' | 'ownerId'>): Promise<{
  readonly stream: LogStream
  readonly offset: number
}> {
  const stream = await findImportStream(log)
  const offset = await state.findOwnPosition(stream, ownerId)
  if (offset === null) throw new NotOwnerError(`another worker owns ${stream}`)
  return { stream, offset }
}

/** The first stream of imports, whose owner publishes and undoes jobs. @throws PortError */
async function findImportStream(log: Pick<EventLogReader, 'listStreams'>): Promise<LogStream> {
  const streams = await log.listStreams()
  const first = streams.find(({ traffic }) => traffic === 'import')
  if (first === undefined)
    throw new PortError('event-log', 'unavailable', new Error('the log has no stream of imports'))
  return first.stream
}

function addPublishedOverrides(published: Map<string, PersonIdOverride>, overrides: readonly PersonIdOverride[]): void {
  for (const override of overrides)
    if ((published.get(override.distinctId)?.version ?? -1) <= override.version)
      published.set(override.distinctId, override)
}

/** Creates the input that all batches of a job have in common. */
export function createJobBatch(
  job: Pick<ImportJob, 'id' | 'projectId' | 'options'>,
  loaded: LoadedChunk,
  published: readonly PersonIdOverride[],
): JobBatch {
  return {
    importJobId: job.id,
    projectId: job.projectId,
    options: job.options,
    loaded,
    publishedOverrides: published,
  }
}
