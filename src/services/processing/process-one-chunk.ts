// Takes a chunk through its five steps, and handles the failure of each. The crash table above the steps explains their
// order; the tests crash between every two steps.

import { mergeEventNames } from '#core/events/event-names.ts'
import type { EventIdentity, PersonIdOverride } from '#core/events/stored-event.ts'
import type { ChunkChanges, ChunkOutcome, ChunkSubjects } from '#core/processing/chunk.ts'
import { isFlagCall, type StoredFlagCall } from '#core/processing/deduplicate-flag-calls.ts'
import { listChunkSubjects, listImportsWithoutJob, type ParsedChunk, parseChunk } from '#core/processing/parse-chunk.ts'
import {
  ChunkTooLargeError,
  type ImplicitJobs,
  type ProcessedChunk,
  processChunk,
  RecordError,
} from '#core/processing/process-chunk.ts'
import type { VisitorChanges } from '#core/processing/visitors.ts'
import type { LogChunk } from '#ports/log/event-log.ts'
import type { LoadedChunk } from '#ports/state/chunk-store.ts'
import type { ChunkDeps } from './chunk-deps.ts'
import { insertRows } from './insert-rows.ts'
import { loadAndAssignVisitorIds } from './load-visitors.ts'
import { isStoreDown, retryWhileDown, retryWhileStoreDown, waitBeforeRetry, waitForStore } from './wait-for-store.ts'

export type ChunkEnd = 'committed' | 'not_owner' | 'position_moved' | 'stopped'

/** How often a chunk fails before the record at fault is set aside. */
const recordTryCount = 3

/**
 * Whether the chunk is a single merge. The merge may be given up if other workers keep writing to its two persons, which then
 * stay separate.
 */
function isSingleMerge({ records }: LogChunk): boolean {
  const record = records[0]?.record
  return records.length === 1 && record?.kind === 'event' && mergeEventNames.has(record.event.name)
}

function findFirstOffset({ records, nextOffset }: LogChunk): number {
  return records[0]?.offset ?? nextOffset
}

/** The outcomes that the latest try was about to commit, in case the commit succeeded but its answer was lost. */
interface Try {
  commitOutcomes: readonly ChunkOutcome[] | null
}

/** For each distinct id, the override of the highest version that any try wrote to the event store, committed or not. */
type PublishedOverrides = Map<string, PersonIdOverride>

/**
 * Takes the chunk through load, apply, insert and commit, as often as necessary. A chunk that fails while the stores work is
 * halved until the record at fault is alone; that record goes to the reject store, and the rest is processed.
 */
export function processOneChunk(chunk: LogChunk, deps: ChunkDeps): Promise<ChunkEnd> {
  return processPart(chunk, deps, new Map())
}

async function processPart(chunk: LogChunk, deps: ChunkDeps, published: PublishedOverrides): Promise<ChunkEnd> {
  const failures = new Map<number, string>()
  const lostMerges = new Set<number>()
  let failureCount = 0
  for (let attempt = 0; !deps.signal.aborted; attempt++) {
    const latest: Try = { commitOutcomes: null }
    try {
      const context = { failures, lostMerges, deps, latest, published, isRetry: attempt > 0 }
      const result = await (deps.underWay?.run(() => runChunkSteps(chunk, context)) ?? runChunkSteps(chunk, context))
      if (result === 'too_large') return await processHalves(chunk, deps, published)
      if (result !== 'version_conflict') return result
      deps.metrics.dependencyFailures.inc({ port: 'chunk-store', code: 'conflict' })
      if (attempt < deps.conflictTryCount) await waitBeforeRetry(attempt, deps)
      else if (lostMerges.size > 0 || !isSingleMerge(chunk)) throw new Error('the chunk conflicts with every try')
      else {
        lostMerges.add(findFirstOffset(chunk))
        attempt = 0
      }
    } catch (cause) {
      if (isStoreDown(cause)) {
        deps.enterState('waiting_for_state')
        await waitForStore(cause, attempt, deps)
        if (await confirmCommit(chunk, latest, deps)) return 'committed'
        continue
      }
      failureCount++
      const offset = findFirstOffset(chunk)
      deps.logger.warn({ err: cause, lane: chunk.stream, offset }, 'cannot process a chunk')
      const known = cause instanceof RecordError && !failures.has(cause.offset) ? cause.offset : null
      if (known === null && chunk.records.length > 1) return await processHalves(chunk, deps, published)
      if (failureCount >= recordTryCount) setRecordAside(failures, known ?? offset, cause, deps)
      if (known === null) await waitBeforeRetry(attempt, deps)
    }
  }
  return 'stopped'
}

// What a crash after each step leaves:
//
// step                                          after a crash before the next step
// 1. read records of one stream                 nothing happened; the position is where it was
// 2. load visitors, persons, mappings, groups   nothing happened
// 3. apply the events in memory                 nothing happened
// 4. insert rows and overrides, wait (durable)  the rows are stored, the state is as before: the chunk runs again
// from the same persons and makes the same rows, which replace those
// 5. commit changes, counters and position      done; reading continues after the chunk
//
// Between the crash and the second run, another stream may have changed the persons. The overrides of the first run would then
// stay wrong, so a starting worker queries the event store for the overrides of its first chunks, and gives higher versions to
// overrides that differ from them.
//
// Step 4 first queries on which day repeats of older events were charged. Once the repeats are written, their own rows have
// that day.
//
// A chunk whose commit conflicted with another worker's (`version_conflict`) is recomputed. Its rows replace those of the
// earlier try; overrides that differ from those of the earlier try get higher versions.
//
// The reverse order of steps 4 and 5 would lose rows. A crash inside step 4 counts as a crash before it for the rows that
// are missing, and as a crash after it for the rows that are stored; step 5 is one transaction, so it is never half done.
async function runChunkSteps(
  chunk: LogChunk,
  context: {
    readonly failures: ReadonlyMap<number, string>
    readonly lostMerges: ReadonlySet<number>
    readonly deps: ChunkDeps
    readonly latest: Try
    readonly published: PublishedOverrides
    readonly isRetry: boolean
  },
): Promise<ChunkEnd | 'version_conflict' | 'too_large'> {
  const { failures, lostMerges, deps, latest, published } = context
  const { state, clock, ownerId, faultPoint } = deps
  const { chunk: parsed, changes: visitors } = await loadAndAssignVisitorIds(parseChunk(chunk, failures), deps)
  // A record that is alone in its chunk must be processed, however much text it needs.
  const textBytesMax = chunk.records.length > 1 ? deps.textBytesMax : Number.POSITIVE_INFINITY
  const implicitJobs = await findImplicitJobs(parsed, context.isRetry, deps)
  const subjects = addJobIds(collectSubjects(parsed, published, deps), implicitJobs)
  const loaded = await state.loadChunk(subjects, textBytesMax)
  if (loaded !== 'too_large' && deps.mayHaveBeenTried() && !(await loadPublishedOverrides(loaded, published, deps)))
    return 'stopped'
  await faultPoint?.('load')
  const flagCalls = loaded === 'too_large' ? [] : await findStoredFlagCalls(parsed, loaded, deps)
  if (flagCalls === null) return 'stopped'
  const processed =
    loaded === 'too_large'
      ? loaded
      : applyChunk(parsed, loaded, { deps, published, lostMerges, flagCalls, textBytesMax, implicitJobs })
  if (processed === 'too_large') {
    deps.onSized?.('too_large')
    return 'too_large'
  }
  const rowCount = countChangedRows(processed.changes) + countVisitorRows(visitors)
  if (chunk.records.length > 1 && rowCount > deps.rowCountMax) return 'too_large'
  await faultPoint?.('apply')
  const written = await insertRows(processed, deps)
  if (written === null) return 'stopped'
  addPublishedOverrides(published, processed.rows.overrides)
  await faultPoint?.('insert')
  // The span begins at the position, not at the chunk's first record: there may be offsets without records in between.
  const span = { fromOffset: deps.position(), offset: chunk.nextOffset }
  const changes = visitors === null ? written : { ...written, visitors }
  const position = { stream: deps.cursor, ownerId, ...span, committedAtMs: clock.nowMs() }
  latest.commitOutcomes = changes.outcomes
  const result = await state.commitChunk(changes, position)
  if (result === 'committed') deps.onCommitted(changes.outcomes, chunk)
  if (result === 'committed') await faultPoint?.('commit')
  return result
}

/** @returns null for a chunk in which no import lacks a job, which is the usual case. */
async function findImplicitJobs(chunk: ParsedChunk, isRetry: boolean, deps: ChunkDeps): Promise<ImplicitJobs | null> {
  if (deps.implicitJobs === undefined || chunk.traffic !== 'import') return null
  const items = listImportsWithoutJob(chunk)
  return items.length === 0 ? null : deps.implicitJobs(items, { isRetry, mayCreate: deps.isRestoring !== true })
}

function addJobIds(subjects: ChunkSubjects, jobs: ImplicitJobs | null): ChunkSubjects {
  return jobs === null
    ? subjects
    : { ...subjects, importJobIds: [...(subjects.importJobIds ?? []), ...collectJobIds(jobs)] }
}

function collectJobIds(jobs: ImplicitJobs): number[] {
  return [...jobs.values()].flat().map(({ id }) => id)
}

/** Also loads ids with an override in the event store: another worker may have mapped them elsewhere since. */
function collectSubjects(chunk: ParsedChunk, published: PublishedOverrides, { isRestoring }: ChunkDeps): ChunkSubjects {
  const subjects = listChunkSubjects(chunk, isRestoring)
  return published.size === 0
    ? subjects
    : { ...subjects, distinctIds: [...subjects.distinctIds, ...published.values()] }
}

/** Step 3. */
function applyChunk(
  parsed: ParsedChunk,
  loaded: LoadedChunk,
  context: {
    readonly deps: ChunkDeps
    readonly published: PublishedOverrides
    readonly lostMerges: ReadonlySet<number>
    readonly flagCalls: readonly StoredFlagCall[]
    readonly textBytesMax: number
    readonly implicitJobs: ImplicitJobs | null
  },
): ProcessedChunk | 'too_large' {
  const { deps, published, lostMerges, flagCalls, textBytesMax, implicitJobs } = context
  const lookUpGeoip = (address: string) => deps.geoip?.lookUp(address) ?? null
  try {
    const options = {
      logId: deps.logId,
      lookUpGeoip,
      publishedOverrides: published.values(),
      lostMerges,
      storedFlagCalls: flagCalls,
      personTextMax: textBytesMax,
      isRestoring: deps.isRestoring === true,
      ...(implicitJobs !== null && { implicitJobs }),
    }
    const processed = processChunk(parsed, loaded, options)
    const textBytes = Math.max(loaded.textBytes, processed.personTextLength)
    deps.onSized?.({ rowCount: countChangedRows(processed.changes), textBytes, loaded, processed })
    return processed
  } catch (cause) {
    if (cause instanceof ChunkTooLargeError) return 'too_large'
    throw cause
  }
}

/**
 * The stored flag calls that the chunk's calls may repeat, for projects that deduplicate them; null if stopped while waiting
 * for the event store.
 */
async function findStoredFlagCalls(
  parsed: ParsedChunk,
  { projects }: LoadedChunk,
  deps: ChunkDeps,
): Promise<readonly StoredFlagCall[] | null> {
  const deduplicating = new Set(projects.filter(({ ingestion }) => ingestion.deduplicatesFlagCalls).map(({ id }) => id))
  if (deduplicating.size === 0) return []
  const calls: EventIdentity[] = []
  for (const record of parsed.records) {
    if (record.kind !== 'event' || !deduplicating.has(record.event.projectId)) continue
    const { projectId, timestampMs, name, distinctId, uuid } = record.event
    if (isFlagCall(record.event, record.properties))
      calls.push({ projectId, timestampMs, event: name, distinctId, uuid })
  }
  return calls.length === 0 ? [] : retryWhileStoreDown(() => deps.events.findFlagCalls(calls), deps)
}

/** Reads the overrides that an earlier worker left in the event store. @returns false if stopped while waiting. */
async function loadPublishedOverrides(
  loaded: LoadedChunk,
  published: PublishedOverrides,
  deps: ChunkDeps,
): Promise<boolean> {
  const ids = new Map<string, { projectId: number; distinctId: string }>()
  // Ids of staging overlays have no overrides.
  for (const { projectId, distinctId } of [...loaded.mappings, ...loaded.personMappings])
    if (projectId > 0) ids.set(JSON.stringify([projectId, distinctId]), { projectId, distinctId })
  if (ids.size === 0) return true
  const overrides = await retryWhileStoreDown(() => deps.events.findOverrides([...ids.values()]), deps)
  if (overrides === null) return false
  addPublishedOverrides(published, overrides)
  return true
}

function addPublishedOverrides(published: PublishedOverrides, overrides: readonly PersonIdOverride[]): void {
  for (const override of overrides) {
    const key = JSON.stringify([override.projectId, override.distinctId])
    if ((published.get(key)?.version ?? 0) <= override.version) published.set(key, override)
  }
}

function countChangedRows({ persons, deletedPersons, mappings, personlessDistinctIds, groups }: ChunkChanges): number {
  return persons.length + deletedPersons.length + mappings.length + personlessDistinctIds.length + groups.length
}

function countVisitorRows(visitors: VisitorChanges | null): number {
  return visitors === null ? 0 : visitors.identifies.length + visitors.sessions.length
}

async function processHalves(chunk: LogChunk, deps: ChunkDeps, published: PublishedOverrides): Promise<ChunkEnd> {
  const middle = chunk.records.length >> 1
  const first = { ...chunk, records: chunk.records.slice(0, middle), nextOffset: chunk.records[middle]!.offset }
  const second = { ...chunk, records: chunk.records.slice(middle) }
  const end = await processPart(first, deps, published)
  if (end !== 'committed' || deps.mayGoOn?.() === false) return end
  return await processPart(second, deps, published)
}

/** Finds out whether a commit whose answer was lost has succeeded: the stored position shows it once it can be read. */
async function confirmCommit(chunk: LogChunk, latest: Try, deps: ChunkDeps): Promise<boolean> {
  if (latest.commitOutcomes === null) return false
  const position = await retryWhileDown(() => deps.state.claimPosition(deps.cursor, deps.ownerId), deps)
  if (position === null || position.offset < chunk.nextOffset) return false
  deps.onCommitted(latest.commitOutcomes, chunk)
  return true
}

function setRecordAside(failures: Map<number, string>, offset: number, cause: unknown, { logger }: ChunkDeps): void {
  failures.set(offset, cause instanceof Error ? cause.message : String(cause))
  logger.error({ err: cause, offset }, 'cannot process a record; storing it as a reject')
}
