// What a worker does with an event store besides writing rows: creates its tables, notices that rows were lost or that
// the store is not the copy it last wrote to (docs/decisions/0026), counts, erases, and mirrors persons and groups.

import type { ErasureCount, PersonErasure, RemovedRows } from '#core/persons/erasure.ts'
import type {
  MirroredGroup,
  MirroredGroupKey,
  MirroredPerson,
  MirroredPersonKey,
} from '#core/processing/mirror-subjects.ts'
import type { RowRange } from '#core/processing/row-ranges.ts'
import type { EventUsage } from '#core/usage.ts'

/** @throws PortError from every method, like `EventWriter`. */
export interface EventStoreUpkeep {
  /**
   * Creates or upgrades tables. Several processes may do so at the same time, and while the store is in use.
   * @returns changes of existing tables: names of migrations, and tables whose retention has changed.
   * @throws PortError `conflict` when another version created the tables; then nothing was changed.
   */
  migrate(): Promise<readonly string[]>
  /**
   * Reports what the store holds now, without reading rows. Repeats, merges and replaced rows leave no gap in the ranges;
   * lost rows do.
   * @param markId a mark that `writeMark` wrote for this instance, or null. Marks can be found for at least a week.
   * @returns null if the store's user lacks the permission for this.
   * @throws PortError `unavailable` also while tables are missing: call `migrate` first.
   */
  findRowRanges(instance: string, markId: string | null): Promise<MarkedRowRanges | null>
  /**
   * Deletes rejects, recordings and cached counts that are past their retention, and packed items of recordings by whole
   * UTC days. Does nothing if a server deletes them by its own clock.
   * @param by.isTrusted whether `nowMs` can be relied on: then rows dated further in the future than their retention, which
   * come from a wrong clock, are deleted as well; otherwise they would stay for too long.
   */
  deleteExpired(by: { readonly nowMs: number; readonly isTrusted: boolean }): Promise<void>
  /**
   * For each project whose rows have erasure counts (`EventRows.erasures`): the highest of these counts. Reads a column of
   * all rows.
   */
  findErasureCounts(): Promise<readonly ErasureCount[]>
  /** Resolves when the mark is durable. */
  writeMark(mark: StoreMark): Promise<void>
}

export interface MarkedRowRanges {
  readonly ranges: readonly RowRange[]
  /** Whether the store has the requested mark, or a mark that names it as `former`. */
  readonly isMarked: boolean
}

export interface StoreMark {
  /** Id of the log whose events are stored, so that two instances in one database do not see each other's marks. */
  readonly instance: string
  readonly id: string
  /** The previous mark, which the state still has if the worker crashed before it saved this mark; null or '' if none. */
  readonly former: string | null
}

/** Counts charged usage from the stored events themselves. */
export interface ChargedUsage {
  /**
   * Counts each identity once, on the UTC day of its `chargedAtMs`, and a recorded session on the day of its first
   * recording. Days are inclusive, `YYYY-MM-DD`; days without usage are left out. May take minutes: the limit on users'
   * queries does not apply. Aborting `signal` ends the query and rejects with the signal's reason. @throws PortError
   * `unavailable`, `timeout`, `full`.
   */
  countUsage(projectId: number, fromDay: string, toDay: string, signal?: AbortSignal): Promise<readonly UsageDay[]>
}

export interface UsageDay extends EventUsage {
  /** `YYYY-MM-DD`, UTC. */
  readonly day: string
}

// Removes the rows of erased persons from the event store. Only rows created before the erasure are removed, regardless of
// when and how often the removal runs: each row records how often persons of its project had been erased
// (`EventRows.erasures`).

export interface CountedRows extends RemovedRows {
  /** The pending rows, by import job. */
  readonly pendingOfJobs: readonly { readonly importJobId: number; readonly count: number }[]
}

/** @throws PortError from every method: repeat the call. */
export interface PersonEraser {
  /**
   * The current row counts of each erasure, by id; each event counts once. `under_way` while rows are being removed, for
   * these or other erasures: call it again.
   */
  countErasedRows(erasures: readonly PersonErasure[]): Promise<ReadonlyMap<number, CountedRows> | 'under_way'>
  /**
   * Checks which rows remain, and begins to remove them; a removal in progress continues. Call it until it is `done`.
   * @param beforeRemoving awaited with the ranges of rows (`EventStoreUpkeep.findRowRanges`) that will become empty.
   */
  removeErasedRows(
    erasures: readonly PersonErasure[],
    beforeRemoving: (emptied: readonly RowRange[]) => Promise<void>,
  ): Promise<'done' | 'under_way'>
}

// The mirror: current persons and groups next to the events, for queries that filter by a person's or group's current
// properties. The state is authoritative, and the worker writes what was committed there
// (`services/worker/mirror-subjects.ts`, docs/decisions/0051).

/** @throws PortError from every method, like `EventWriter`. Repeat the call. */
export interface SubjectMirror {
  /**
   * Resolves when the rows are durable and every query returns them. Of two rows of a subject, the row with the higher
   * version wins, and at equal versions the later row. A deleted subject is no longer returned; it may reappear with a
   * later row.
   */
  writeSubjects(rows: MirrorRows, version: number): Promise<void>
  /**
   * The current contents of the mirror, without reading properties. @param withVersion reads the version of every row.
   */
  findMirrorState(withVersion: boolean): Promise<MirrorState>
  /**
   * Empties the mirror, durably. From now on, queries that need it are refused until `completeMirrorFill`.
   * @param version at least the version of any earlier call.
   */
  beginMirrorFill(fillId: string, version: number): Promise<void>
  /** Lets queries use the mirror. @param version higher than in the call of `beginMirrorFill`. */
  completeMirrorFill(fillId: string, version: number): Promise<void>
}

export interface MirrorRows {
  readonly persons?: readonly MirroredPerson[]
  readonly deletedPersons?: readonly MirroredPersonKey[]
  readonly groups?: readonly MirroredGroup[]
  readonly deletedGroups?: readonly MirroredGroupKey[]
}

export interface MirrorState {
  /** The most recently begun fill; null before the first. */
  readonly fillId: string | null
  readonly isComplete: boolean
  /** The highest version of all rows and fills, 0 when there are none; null when it was not requested. */
  readonly version: number | null
  /** Null when the store's user lacks the permission. */
  readonly ranges: readonly RowRange[] | null
}
