// The rows of one import job, published or not, for its report and its verification.

import type { BatchSummary } from '#core/events/batch-summary.ts'
import type { EventIdentity } from '#core/events/stored-event.ts'
import type { DayAndEvent, ImportedCount, ImportedRowCounts } from '#core/imports/imported-counts.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import type { EventView } from './event-queries.ts'

export interface ImportedCountsQuery {
  readonly projectId: number
  readonly importJobId: number
  /** Null for the first page. */
  readonly after: DayAndEvent | null
  readonly limit: number
}

/** Some events of one project. */
export interface BatchIdentities {
  readonly summary: BatchSummary
  /** The identities of these events, each once; only called when some of the events may be stored. */
  listIdentities(): MaybePromise<readonly Omit<EventIdentity, 'projectId'>[]>
}

/**
 * @throws PortError from every method, as in `EventQueries`; `QueryTooLargeError` where the same method may succeed for
 *   fewer ids or groups. Methods with a signal serve users, and queue with the other queries of the project.
 */
export interface ImportedRows {
  countImportedRows(projectId: number, importJobId: number, signal?: AbortSignal): Promise<ImportedRowCounts>
  /** One page, by day, then by name in byte order, starting after `after`. */
  listImportedCounts(query: ImportedCountsQuery, signal?: AbortSignal): Promise<readonly ImportedCount[]>
  /** How many pending rows a job has, each identity once. */
  countPendingRows(projectId: number, importJobId: number): Promise<number>
  /** The rows with these uuids, regardless of who their persons are now. */
  findImportedRows(
    projectId: number,
    importJobId: number,
    uuids: readonly string[],
    signal?: AbortSignal,
  ): Promise<readonly EventView[]>
  /**
   * How many of these events are stored, visible or pending, live or imported. Only a few calls of a project may wait at
   * once: a further call fails as `full`.
   */
  countStoredEvents(projectId: number, batch: BatchIdentities): Promise<number>
  /** Whether rows other than this job's, visible or pending, name a group of this type. */
  hasRowsOfGroupType(projectId: number, importJobId: number, typeIndex: number): Promise<boolean>
}
