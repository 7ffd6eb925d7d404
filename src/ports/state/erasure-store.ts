// Erasures of persons. A front removes the persons from the state and records what else must be deleted, in one
// transaction; the worker carries that out and notes when it is complete. Source:
// docs/decisions/0064-erased-persons.md.

import type { Change } from '#core/author.ts'
import type {
  ErasedPerson,
  ErasureCount,
  ErasureOutline,
  ErasureTerms,
  LogEnds,
  PersonErasure,
  RemovedRows,
} from '#core/persons/erasure.ts'
import type { RowRange } from '#core/processing/row-ranges.ts'

export interface NewErasure extends ErasureTerms, LogEnds {
  readonly projectId: number
  /** In the order in which the persons are erased; missing persons are skipped. */
  readonly personIds: readonly number[]
}

export interface ErasureStore {
  /** The persons with these uuids, or with one of these distinct ids; each once, in the order of their ids. */
  findPersonIds(
    projectId: number,
    by: { readonly uuids: readonly string[] } | { readonly distinctIds: readonly string[] },
  ): Promise<readonly number[]>
  /**
   * Removes persons with their distinct ids, flag assignments and memberships, unless the persons are kept; their data in
   * pending imports, if their events are also deleted; and what could restore them when an import is undone. Records the
   * remaining deletions as work for the worker. @returns how many of `personIds` were erased, from the first on, since a
   * transaction is limited. Call it again with the remaining ids.
   */
  erasePersons(erasure: NewErasure, change: Change): Promise<{ takenCount: number; erasedCount: number }>
  /** Newest first. */
  listErasedPersons(
    projectId: number,
    query: { personUuid?: string; isDone?: boolean; limit: number; offset: number },
  ): Promise<{ count: number; results: readonly ErasedPerson[] }>

  /** How many erasures are not done, at a cost that does not grow with the number of erasures that are done. */
  countOpenErasures(): Promise<number>
  /** Erasures that are not done, with ids above `after`, in the order of their ids, up to 1,000. */
  listOpenErasures(after: number): Promise<readonly ErasureOutline[]>
  /** The oldest of these erasures, up to a size limit, at least one if there is any. */
  readErasures(erasureIds: readonly number[]): Promise<readonly PersonErasure[]>
  /** Deletes warnings and import notes that name one of these ids or uuids. */
  deleteMentions(projectId: number, names: readonly string[]): Promise<void>
  /** Stores how many rows were removed, once. Removed rows of pending jobs no longer count as stored for those jobs. */
  saveRemovedRows(
    erasureId: number,
    removed: RemovedRows,
    pendingOfJobs: readonly { readonly importJobId: number; readonly count: number }[],
  ): Promise<void>
  /** Adds ranges of the event store that the removal is about to empty. */
  recordEmptiedRanges(erasureId: number, ranges: readonly RowRange[]): Promise<void>
  /** The ranges from `recordEmptiedRanges`, until the erasures' ids are forgotten. */
  listEmptiedRanges(): Promise<readonly RowRange[]>
  finishErasures(erasureIds: readonly number[], doneAtMs: number): Promise<void>
  /** The oldest done erasures whose distinct ids are still stored, up to the same size limit as in `readErasures`. */
  listErasuresWithIds(): Promise<readonly PersonErasure[]>
  /** Reopens all erasures whose distinct ids are still stored. */
  reopenErasures(): Promise<void>
  /** Forgets the distinct ids of a done erasure, the uuids that derive from them, and the emptied ranges. */
  forgetErasedIds(erasureId: number): Promise<void>
  /**
   * Raises the erasure count of each project to at least this many: an older copy of the state has a lower count than the
   * rows stored since, so the project's next erasure would not count as later than these rows.
   */
  raiseErasureCounts(counts: readonly ErasureCount[]): Promise<void>
}
