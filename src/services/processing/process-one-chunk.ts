// The five steps of a chunk, and what is done when one of them fails. The crash table beside the steps is the reason for
// their order; the tests crash between each two of them.

import { mergeEventNames } from '#core/events/event-names.ts'
import type { EventIdentity, PersonIdOverride } from '#core/events/stored-event.ts'
import { chargeOnce, lateLiveEvents } from '#core/processing/charge-once.ts'
import type { ChunkChanges, ChunkOutcome, ChunkSubjects } from '#core/processing/chunk.ts'
import { chunkSubjects, type ParsedChunk, parseChunk } from '#core/processing/parse-chunk.ts'
import { ChunkTooLargeError, type ProcessedChunk, processChunk, RecordError } from '#core/processing/process-chunk.ts'
import { type RefusedRow, rejectRefusedRows } from '#core/processing/refused-rows.ts'
import { isFlagCall, type StoredFlagCall } from '#core/processing/thin-flag-calls.ts'
import type { ChunkStore, LoadedChunk } from '#ports/chunk-store.ts'
import type { Clock } from '#ports/clock.ts'
import type { LogChunk } from '#ports/event-log.ts'
import type { EventRows, EventStore } from '#ports/event-store.ts'
import type { Geoip } from '#ports/geoip.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import { backOffMs, waitOrStop } from '../shared/back-off.ts'

/** The gap after the step of this name. */
export type FaultPoint = 'read' | 'load' | 'apply' | 'insert' | 'commit'
export type ChunkEnd = 'committed' | 'not_owner' | 'position_moved' | 'stopped'

/** What processing takes of the event store. */
export type ProcessingEventStore = Pick<EventStore, 'insert' | 'findChargedTimes' | 'findOverrides' | 'findFlagCalls'>

export interface ChunkDependencies {
  readonly state: ChunkStore
  readonly events: ProcessingEventStore
  readonly geoip: Geoip | null
  readonly clock: Clock
  readonly metrics: Metrics
  readonly logger: Logger
  readonly ownerId: string
  readonly random: () => number
  readonly signal: AbortSignal
  /** State rows of one transaction; a chunk that would write more is halved. A single record may write more. */
  readonly rowCountMax: number
  /** Property text that a chunk may load, and that its rows may carry; one that takes more is halved, too. */
  readonly textBytesMax: number
  /** What the chunk takes, or would have to: told before anything is written. */
  readonly onSized?: (size: ChunkSize | 'too_large') => void
  /** Conflicts in a row before a merge is given up, or any other chunk counts as failed: others would have been through. */
  readonly conflictTryCount: number
  /** An insert that takes this long is waited for, but reported as if the store were down. */
  readonly slowStoreMs: number
  readonly enterState: (state: 'waiting_for_state' | 'waiting_for_event_store') => void
  /** Whether a worker before this one may have told the event store of overrides and ended before it could commit them. */
  readonly mayHaveBeenTried: () => boolean
  /** Where the chunk's lane stands, as far as this worker knows: behind what `onCommitted` was told last. */
  readonly position: () => number
  readonly onCommitted: (outcomes: readonly ChunkOutcome[], nextOffset: number) => void
  readonly faultPoint?: (name: FaultPoint) => void | Promise<void>
}

export interface ChunkSize {
  /** State rows to write. */
  readonly rowCount: number
  /** Bytes of the texts that were loaded or of those that the rows carry, whichever is more. */
  readonly textBytes: number
}

/** Tries of a record, alone in its chunk, before it is set aside. */
const recordTryCount = 3

/** A merge that stands alone in its chunk: two persons that others write to all the time can go on as two. */
function isMerge({ records }: LogChunk): boolean {
  const [record] = records
  return records.length === 1 && record?.kind === 'event' && mergeEventNames.has(record.event.name)
}

/** What the latest try got to, for the case that its commit was made but the answer lost. */
interface Try {
  commitOutcomes: readonly ChunkOutcome[] | null
}

/** What the event store was told by tries that may not have been committed: the highest override of each distinct id. */
type ToldOverrides = Map<string, PersonIdOverride>

/**
 * Takes the chunk through load, apply, insert and commit, as often as it needs. A chunk that fails for no reason of a
 * store is halved until the record that makes it fail stands alone; that one goes to the reject store, the rest goes on.
 */
export function processOneChunk(chunk: LogChunk, deps: ChunkDependencies): Promise<ChunkEnd> {
  return processPart(chunk, deps, new Map())
}

async function processPart(chunk: LogChunk, deps: ChunkDependencies, told: ToldOverrides): Promise<ChunkEnd> {
  const failures = new Map<number, string>()
  const lostMerges = new Set<number>()
  let failureCount = 0
  for (let attempt = 0; !deps.signal.aborted; attempt++) {
    const latest: Try = { commitOutcomes: null }
    try {
      const result = await tryChunk(chunk, { failures, lostMerges, deps, latest, told })
      if (result === 'too_large') return await processHalves(chunk, deps, told)
      if (result !== 'version_conflict') return result
      deps.metrics.dependencyFailures.inc({ port: 'chunk-store', code: 'conflict' })
      if (attempt < deps.conflictTryCount) await pause(attempt, deps)
      else if (lostMerges.size > 0 || !isMerge(chunk)) throw new Error('the chunk conflicts with every try')
      else {
        lostMerges.add(chunk.firstOffset)
        attempt = 0
      }
    } catch (cause) {
      if (isStoreDown(cause)) {
        deps.enterState('waiting_for_state')
        noteStoreDown(cause, attempt, deps)
        await pause(attempt, deps)
        if (await wasCommitted(chunk, latest, deps)) return 'committed'
        continue
      }
      failureCount++
      deps.logger.warn({ err: cause, lane: chunk.lane, offset: chunk.firstOffset }, 'a chunk could not be processed')
      const known = cause instanceof RecordError && !failures.has(cause.offset) ? cause.offset : null
      if (known === null && chunk.records.length > 1) return await processHalves(chunk, deps, told)
      if (failureCount >= recordTryCount) setAside(failures, known ?? chunk.firstOffset, cause, deps)
      if (known === null) await pause(attempt, deps)
    }
  }
  return 'stopped'
}

// What a crash leaves after each step:
//
//   step                                          after a crash in the gap that follows
//   1. read records of one lane                   nothing happened; the position is where it was
//   2. load persons, mappings, groups             nothing happened
//   3. apply the events in memory                 nothing happened
//   4. insert rows and overrides, wait (durable)  the rows are there, the state is as before: the chunk runs again from the
//                                                 same persons, so the same rows come out and replace themselves
//   5. commit changes, counters and position      done; reading goes on behind the chunk
//
// Between the crash and the second run the other lane may have changed the persons, and then the overrides of the first
// run are wrong for good: a worker that starts asks the event store for those of its first chunks, and gives higher
// versions to what differs from them.
//
// Step 4 first asks on which day repeats of older events were charged; once they are written, they answer it themselves.
//
// A commit that another worker's has overtaken (`version_conflict`) is computed anew. Its rows replace those of the try
// before; its overrides are given higher versions where they differ from what the event store was told then.
//
// The other order of 4 and 5 would lose rows. A crash inside 4 is a crash before it for the rows that are missing and
// after it for the others; inside 5 nothing is half done, since it is one transaction.
async function tryChunk(
  chunk: LogChunk,
  of: {
    readonly failures: ReadonlyMap<number, string>
    readonly lostMerges: ReadonlySet<number>
    readonly deps: ChunkDependencies
    readonly latest: Try
    readonly told: ToldOverrides
  },
): Promise<ChunkEnd | 'version_conflict' | 'too_large'> {
  const { failures, lostMerges, deps, latest, told } = of
  const { state, clock, ownerId, faultPoint } = deps
  const parsed = parseChunk(chunk, failures)
  // A record that stands alone has to be processed, whatever it takes.
  const textBytesMax = chunk.records.length > 1 ? deps.textBytesMax : Number.POSITIVE_INFINITY
  const loaded = await state.loadChunk(subjectsOf(parsed, told), textBytesMax)
  if (loaded !== 'too_large' && deps.mayHaveBeenTried() && !(await recallTold(loaded, told, deps))) return 'stopped'
  await faultPoint?.('load')
  const flagCalls = loaded === 'too_large' ? [] : await storedFlagCalls(parsed, loaded, deps)
  if (flagCalls === null) return 'stopped'
  const processed =
    loaded === 'too_large' ? loaded : applyChunk(parsed, loaded, { deps, told, lostMerges, flagCalls, textBytesMax })
  if (processed === 'too_large') {
    deps.onSized?.('too_large')
    return 'too_large'
  }
  if (chunk.records.length > 1 && rowCountOf(processed.changes) > deps.rowCountMax) return 'too_large'
  await faultPoint?.('apply')
  const changes = await insertRows(processed, deps)
  if (changes === null) return 'stopped'
  noteTold(told, processed.rows.overrides)
  await faultPoint?.('insert')
  // Not where the chunk begins: the log may have a gap before it.
  const span = { fromOffset: deps.position(), offset: chunk.nextOffset }
  const position = { lane: chunk.lane, ownerId, ...span, committedAtMs: clock.nowMs() }
  latest.commitOutcomes = changes.outcomes
  const result = await state.commitChunk(changes, position)
  if (result === 'committed') deps.onCommitted(changes.outcomes, chunk.nextOffset)
  if (result === 'committed') await faultPoint?.('commit')
  return result
}

/** An id that the event store has an override for counts as touched: another worker may have mapped it elsewhere since. */
function subjectsOf(chunk: ParsedChunk, told: ToldOverrides): ChunkSubjects {
  const subjects = chunkSubjects(chunk)
  return told.size === 0 ? subjects : { ...subjects, distinctIds: [...subjects.distinctIds, ...told.values()] }
}

/** Step 3. */
function applyChunk(
  parsed: ParsedChunk,
  loaded: LoadedChunk,
  of: {
    readonly deps: ChunkDependencies
    readonly told: ToldOverrides
    readonly lostMerges: ReadonlySet<number>
    readonly flagCalls: readonly StoredFlagCall[]
    readonly textBytesMax: number
  },
): ProcessedChunk | 'too_large' {
  const { deps, told, lostMerges, flagCalls, textBytesMax } = of
  const lookUpGeoip = (address: string) => deps.geoip?.lookUp(address) ?? null
  try {
    const options = {
      lookUpGeoip,
      toldOverrides: told.values(),
      lostMerges,
      storedFlagCalls: flagCalls,
      personTextMax: textBytesMax,
    }
    const processed = processChunk(parsed, loaded, options)
    const textBytes = Math.max(loaded.textBytes, processed.personTextLength)
    deps.onSized?.({ rowCount: rowCountOf(processed.changes), textBytes })
    return processed
  } catch (cause) {
    if (cause instanceof ChunkTooLargeError) return 'too_large'
    throw cause
  }
}

/**
 * The stored flag calls that those of the chunk may repeat, for projects that thin them; null when it was stopped while it
 * waited for the event store.
 */
async function storedFlagCalls(
  parsed: ParsedChunk,
  { projects }: LoadedChunk,
  deps: ChunkDependencies,
): Promise<readonly StoredFlagCall[] | null> {
  const thinning = new Set(projects.filter(({ ingestion }) => ingestion.thinsFlagCalls).map(({ id }) => id))
  if (thinning.size === 0) return []
  const calls: EventIdentity[] = []
  for (const record of parsed.records) {
    if (record.kind !== 'event' || !thinning.has(record.event.projectId)) continue
    const { projectId, timestampMs, name, distinctId, uuid } = record.event
    if (isFlagCall(record.event, record.properties))
      calls.push({ projectId, timestampMs, event: name, distinctId, uuid })
  }
  return calls.length === 0 ? [] : patiently(() => deps.events.findFlagCalls(calls), deps)
}

/** What the event store was told by a worker that is no more. @returns false when stopped while waiting. */
async function recallTold(loaded: LoadedChunk, told: ToldOverrides, deps: ChunkDependencies): Promise<boolean> {
  const ids = new Map<string, { projectId: number; distinctId: string }>()
  for (const { projectId, distinctId } of [...loaded.mappings, ...loaded.personMappings])
    ids.set(JSON.stringify([projectId, distinctId]), { projectId, distinctId })
  if (ids.size === 0) return true
  const overrides = await patiently(() => deps.events.findOverrides([...ids.values()]), deps)
  if (overrides === null) return false
  noteTold(told, overrides)
  return true
}

function noteTold(told: ToldOverrides, overrides: readonly PersonIdOverride[]): void {
  for (const override of overrides) {
    const key = JSON.stringify([override.projectId, override.distinctId])
    if ((told.get(key)?.version ?? 0) <= override.version) told.set(key, override)
  }
}

function rowCountOf({ persons, deletedPersons, mappings, personlessDistinctIds, groups }: ChunkChanges): number {
  return persons.length + deletedPersons.length + mappings.length + personlessDistinctIds.length + groups.length
}

/** Step 4. Rows that the store refuses become rejects. @returns the changes to commit; null when stopped while waiting. */
async function insertRows(processed: ProcessedChunk, deps: ChunkDependencies): Promise<ChunkChanges | null> {
  const events = await chargedOnce(processed.rows.events, deps)
  if (events === null) return null
  const refused = await insertPatiently({ ...processed.rows, events }, deps)
  if (refused === null) return null
  if (refused.length === 0) return processed.changes
  const { rejected, changes } = rejectRefusedRows(processed, refused)
  deps.logger.warn({ count: refused.length, message: refused[0]!.message }, 'the event store refused rows')
  const nothing = { events: [], pendingEvents: [], overrides: [], replays: [] }
  const done = await insertPatiently({ ...nothing, rejected }, deps)
  return done === null ? null : changes
}

/** The rows with the day of charge of those that may be repeats of older events; few chunks have any. */
async function chargedOnce(rows: EventRows['events'], deps: ChunkDependencies): Promise<EventRows['events'] | null> {
  const late = lateLiveEvents(rows)
  if (late.length === 0) return rows
  const chargedTimes = await patiently(() => deps.events.findChargedTimes(late), deps)
  return chargedTimes === null ? null : chargeOnce(rows, late, chargedTimes)
}

async function insertPatiently(rows: EventRows, deps: ChunkDependencies): Promise<readonly RefusedRow[] | null> {
  if (Object.values(rows).every(({ length }) => length === 0)) return []
  const inserted = await patiently(() => deps.events.insert(rows), deps)
  return inserted === null ? null : inserted.refused
}

/** Waits as long as the event store is down; the lag is measured meanwhile and nothing is skipped. */
async function patiently<T>(call: () => Promise<T>, deps: ChunkDependencies): Promise<T | null> {
  for (let attempt = 0; !deps.signal.aborted; attempt++) {
    const slow = setTimeout(() => deps.enterState('waiting_for_event_store'), deps.slowStoreMs)
    try {
      return await call()
    } catch (cause) {
      if (!isStoreDown(cause)) throw cause
      deps.enterState('waiting_for_event_store')
      noteStoreDown(cause, attempt, deps)
      await pause(attempt, deps)
    } finally {
      clearTimeout(slow)
    }
  }
  return null
}

async function processHalves(chunk: LogChunk, deps: ChunkDependencies, told: ToldOverrides): Promise<ChunkEnd> {
  const middle = chunk.records.length >> 1
  const middleOffset = chunk.firstOffset + middle
  const first = { ...chunk, records: chunk.records.slice(0, middle), nextOffset: middleOffset }
  const second = { ...chunk, records: chunk.records.slice(middle), firstOffset: middleOffset }
  const end = await processPart(first, deps, told)
  return end === 'committed' ? await processPart(second, deps, told) : end
}

/** A commit whose answer was lost may have been made: the stored position tells, once it can be read again. */
async function wasCommitted(chunk: LogChunk, latest: Try, deps: ChunkDependencies): Promise<boolean> {
  if (latest.commitOutcomes === null) return false
  for (let attempt = 0; !deps.signal.aborted; attempt++) {
    try {
      const { offset } = await deps.state.claimPosition(chunk.lane, deps.ownerId)
      if (offset < chunk.nextOffset) return false
      deps.onCommitted(latest.commitOutcomes, chunk.nextOffset)
      return true
    } catch (cause) {
      if (!isStoreDown(cause)) throw cause
      noteStoreDown(cause, attempt, deps)
      await pause(attempt, deps)
    }
  }
  return false
}

function setAside(failures: Map<number, string>, offset: number, cause: unknown, { logger }: ChunkDependencies): void {
  failures.set(offset, cause instanceof Error ? cause.message : String(cause))
  logger.error({ err: cause, offset }, 'a record cannot be processed and goes to the reject store')
}

/** Another try of the same may help; anything else is about what the chunk holds, or about us. */
function isStoreDown(cause: unknown): cause is PortError {
  return cause instanceof PortError && (cause.retryable || cause.code === 'full')
}

function noteStoreDown(cause: PortError, attempt: number, { metrics, logger }: ChunkDependencies): void {
  metrics.dependencyFailures.inc({ port: cause.port, code: cause.code })
  if (attempt % 10 === 0) logger.warn({ err: cause, attempt }, 'processing waits for a store')
}

function pause(attempt: number, { random, signal }: ChunkDependencies): Promise<void> {
  return waitOrStop(backOffMs(attempt, random()), signal)
}
