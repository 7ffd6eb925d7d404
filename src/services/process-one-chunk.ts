// The five steps of a chunk, and what is done when one of them fails. The crash table beside the steps is the reason for
// their order; the tests crash between each two of them.

import type { ChunkChanges, ChunkOutcome } from '#core/events/chunk.ts'
import { chunkSubjects, parseChunk } from '#core/events/parse-chunk.ts'
import { type ProcessedChunk, processChunk, RecordError } from '#core/events/process-chunk.ts'
import { type RefusedRow, rejectRefusedRows } from '#core/events/refused-rows.ts'
import type { ChunkStore } from '#ports/chunk-store.ts'
import type { Clock } from '#ports/clock.ts'
import type { LogChunk } from '#ports/event-log.ts'
import type { EventRows, EventStore } from '#ports/event-store.ts'
import type { Geoip } from '#ports/geoip.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import { backOffMs, waitOrStop } from './back-off.ts'

/** The gap after the step of this name. */
export type FaultPoint = 'read' | 'load' | 'apply' | 'insert' | 'commit'
export type ChunkEnd = 'committed' | 'not_owner' | 'stopped'

export interface ChunkDependencies {
  readonly state: ChunkStore
  readonly events: Pick<EventStore, 'insert'>
  readonly geoip: Geoip | null
  readonly clock: Clock
  readonly metrics: Metrics
  readonly logger: Logger
  readonly ownerId: string
  readonly random: () => number
  readonly signal: AbortSignal
  /** State rows of one transaction; a chunk that would write more is halved. A single record may write more. */
  readonly rowCountMax: number
  /** How many state rows the chunk writes, or would have to: told before anything is written. */
  readonly onApplied?: (rowCount: number) => void
  /** An insert that takes this long is waited for, and told of as if the store were down. */
  readonly slowStoreMs: number
  readonly enterState: (state: 'waiting_for_state' | 'waiting_for_event_store') => void
  readonly onCommitted: (outcomes: readonly ChunkOutcome[], nextOffset: number) => void
  readonly faultPoint?: (name: FaultPoint) => void | Promise<void>
}

/** Tries of a record, alone in its chunk, before it is set aside. */
const recordTryCount = 3
/** Conflicts in a row before a chunk counts as failed: other writers would have been through by then. */
const conflictTryCount = 10

/** What the latest try got to, for the case that its commit was made but the answer lost. */
interface Try {
  commitOutcomes: readonly ChunkOutcome[] | null
}

/**
 * Takes the chunk through load, apply, insert and commit, as often as it needs. A chunk that fails for no reason of a
 * store is halved until the record that makes it fail stands alone; that one goes to the reject store, the rest goes on.
 */
export async function processOneChunk(chunk: LogChunk, deps: ChunkDependencies): Promise<ChunkEnd> {
  const failures = new Map<number, string>()
  let failureCount = 0
  for (let attempt = 0; !deps.signal.aborted; attempt++) {
    const latest: Try = { commitOutcomes: null }
    try {
      const result = await tryChunk(chunk, failures, deps, latest)
      if (result === 'too_many_rows') return await processHalves(chunk, deps)
      if (result !== 'version_conflict') return result
      deps.metrics.dependencyFailures.inc({ port: 'chunk-store', code: 'conflict' })
      if (attempt >= conflictTryCount) throw new Error('the chunk conflicts with every try')
      await pause(attempt, deps)
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
      if (known === null && chunk.records.length > 1) return await processHalves(chunk, deps)
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
// The other order of 4 and 5 would lose rows. A crash inside 4 is a crash before it for the rows that are missing and
// after it for the others; inside 5 nothing is half done, since it is one transaction.
async function tryChunk(
  chunk: LogChunk,
  failures: ReadonlyMap<number, string>,
  deps: ChunkDependencies,
  latest: Try,
): Promise<ChunkEnd | 'version_conflict' | 'too_many_rows'> {
  const { state, clock, ownerId, geoip, faultPoint } = deps
  const parsed = parseChunk(chunk, failures)
  const loaded = await state.loadChunk(chunkSubjects(parsed))
  await faultPoint?.('load')
  const lookUpGeoip = (address: string) => geoip?.lookUp(address) ?? null
  const processed = processChunk(parsed, loaded, { lookUpGeoip })
  const rowCount = rowCountOf(processed.changes)
  deps.onApplied?.(rowCount)
  if (chunk.records.length > 1 && rowCount > deps.rowCountMax) return 'too_many_rows'
  await faultPoint?.('apply')
  const changes = await insertRows(processed, deps)
  if (changes === null) return 'stopped'
  await faultPoint?.('insert')
  const position = { lane: chunk.lane, ownerId, offset: chunk.nextOffset, committedAtMs: clock.nowMs() }
  latest.commitOutcomes = changes.outcomes
  const result = await state.commitChunk(changes, position)
  if (result === 'committed') deps.onCommitted(changes.outcomes, chunk.nextOffset)
  if (result === 'committed') await faultPoint?.('commit')
  return result
}

function rowCountOf({ persons, deletedPersons, mappings, personlessDistinctIds, groups }: ChunkChanges): number {
  return persons.length + deletedPersons.length + mappings.length + personlessDistinctIds.length + groups.length
}

/** Step 4. Rows that the store refuses become rejects. @returns the changes to commit; null when stopped while waiting. */
async function insertRows(processed: ProcessedChunk, deps: ChunkDependencies): Promise<ChunkChanges | null> {
  const refused = await insertPatiently(processed.rows, deps)
  if (refused === null) return null
  if (refused.length === 0) return processed.changes
  const { rejected, changes } = rejectRefusedRows(processed, refused)
  deps.logger.warn({ count: refused.length, message: refused[0]!.message }, 'the event store refused rows')
  const done = await insertPatiently({ events: [], pendingEvents: [], overrides: [], rejected }, deps)
  return done === null ? null : changes
}

/** Waits as long as the event store is down; the lag is measured meanwhile and nothing is skipped. */
async function insertPatiently(rows: EventRows, deps: ChunkDependencies): Promise<readonly RefusedRow[] | null> {
  const rowCount = rows.events.length + rows.pendingEvents.length + rows.overrides.length + rows.rejected.length
  if (rowCount === 0) return []
  for (let attempt = 0; !deps.signal.aborted; attempt++) {
    const slow = setTimeout(() => deps.enterState('waiting_for_event_store'), deps.slowStoreMs)
    try {
      return (await deps.events.insert(rows)).refused
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

async function processHalves(chunk: LogChunk, deps: ChunkDependencies): Promise<ChunkEnd> {
  const middle = chunk.records.length >> 1
  const middleOffset = chunk.firstOffset + middle
  const first = { ...chunk, records: chunk.records.slice(0, middle), nextOffset: middleOffset }
  const second = { ...chunk, records: chunk.records.slice(middle), firstOffset: middleOffset }
  const end = await processOneChunk(first, deps)
  return end === 'committed' ? await processOneChunk(second, deps) : end
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
