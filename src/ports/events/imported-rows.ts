// The rows of one import job, published or not, for its report, its verification and its undo.

import type { BatchSummary } from '#core/events/batch-summary.ts'
import type { EventIdentity } from '#core/events/stored-event.ts'
import type { DayAndEvent, ImportedCount, ImportedRowCounts } from '#core/imports/imported-counts.ts'
import type { ImportedGroupKey, ImportedKey, LaterWrite, OtherGroupUse, OtherUse } from '#core/imports/other-use.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import type { EventView } from './event-queries.ts'

/**
 * Limits the uses returned per requested id, because any client with a project's public key can create more. Uses that
 * link requested ids with each other come first.
 */
export const otherUseCountMax = 1_000
export const laterWriteCountMax = 20
/** The maximum that one call of `ImportedRows` finds; above it, the call throws a `QueryTooLargeError`. */
export const foundRowsMax = 100_000
export const foundCharsMax = 64 * 1024 * 1024

export interface ImportedCountsQuery {
  readonly projectId: number
  readonly importJobId: number
  /** Null for the first page. */
  readonly after: DayAndEvent | null
  readonly limit: number
}

/** The visible rows of some import jobs, and those of imports without a job that were stored from `sinceMs` on. */
export interface LaterImports {
  readonly projectId: number
  readonly jobIds: readonly number[]
  readonly sinceMs: number
}

/** Some events of one project. */
export interface AskedBatch {
  readonly summary: BatchSummary
  /** The same events, each once; only called when some of them may be stored. */
  identities(): MaybePromise<readonly Omit<EventIdentity, 'projectId'>[]>
}

/**
 * @throws PortError from every method, as in `EventQueries`; `QueryTooLargeError` where the same method may succeed for
 *   fewer ids or groups. Methods with a signal serve users, and queue with the other queries of the project.
 */
export interface ImportedRows {
  countImportedRows(projectId: number, importJobId: number, signal?: AbortSignal): Promise<ImportedRowCounts>
  /** By day, then by name in byte order, starting after `after`: a page of very many. */
  listImportedCounts(query: ImportedCountsQuery, signal?: AbortSignal): Promise<readonly ImportedCount[]>
  /** How many pending rows a job has, each identity once. */
  countPendingRows(projectId: number, importJobId: number): Promise<number>
  /** The rows with these uuids, whoever their persons are now. */
  findImportedRows(
    projectId: number,
    importJobId: number,
    uuids: readonly string[],
    signal?: AbortSignal,
  ): Promise<readonly EventView[]>
  /**
   * How many of these events are stored, visible or pending, live or by any job. Only a few calls of a project may wait
   * at once: a further one is `full`.
   */
  countStored(projectId: number, batch: AskedBatch): Promise<number>
  /** The distinct ids whose persons appear in visible rows other than this job's. */
  findUsedIds(projectId: number, importJobId: number, distinctIds: readonly string[]): Promise<readonly string[]>
  /**
   * Finds how visible rows of other jobs and live events use the persons of these distinct ids, each kind of use once,
   * and the later rows that link other distinct ids with these ids: at most `otherUseCountMax` per requested id.
   * @param sinceMs rows of live events and of imports without a job are later if they were stored from then on.
   */
  findOtherUses(
    projectId: number,
    importJobId: number,
    distinctIds: readonly string[],
    sinceMs: number,
  ): Promise<readonly OtherUse[]>
  /**
   * What live events stored from `sinceMs` on write to these keys in `$set` and `$set_once`, each value once: at most
   * `laterWriteCountMax` per distinct id, key and kind of write; the latest of `$set`, the earliest of `$set_once` and
   * of `$set` of `filteredProperties`. Also the latest event that has the key in `$unset`.
   */
  findLaterWrites(
    projectId: number,
    distinctIds: readonly string[],
    keys: readonly string[],
    sinceMs: number,
  ): Promise<readonly LaterWrite[]>
  /**
   * The last value that each of these imports wrote to these keys of the persons of these distinct ids, and the time of
   * the first write.
   */
  findImportedKeys(
    imports: LaterImports,
    distinctIds: readonly string[],
    keys: readonly string[],
  ): Promise<readonly ImportedKey[]>
  /** The last value that each of these imports wrote to these keys of these groups, and the time of the first write. */
  findImportedGroupKeys(
    imports: LaterImports,
    groups: readonly Pick<OtherGroupUse, 'typeName' | 'key'>[],
    keys: readonly string[],
  ): Promise<readonly ImportedGroupKey[]>
  /** The groups that `$groupidentify` events other than this job's describe. */
  findOtherGroupUses(
    projectId: number,
    importJobId: number,
    groups: readonly Pick<OtherGroupUse, 'typeName' | 'key'>[],
  ): Promise<readonly OtherGroupUse[]>
  /** Whether rows other than this job's, visible or pending, name a group of this type. */
  hasRowsOfGroupType(projectId: number, importJobId: number, typeIndex: number): Promise<boolean>
}
