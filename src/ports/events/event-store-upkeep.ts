// Keeps an event store usable: creates its tables, and helps a worker notice that rows were lost or that the store is
// not the copy it last wrote to (docs/decisions/0026).

import type { ErasureCount } from '#core/persons/erasure.ts'
import type { HeldRange } from '#core/processing/held-rows.ts'

/** @throws PortError from every method, like `EventWriter`. */
export interface EventStoreUpkeep {
  /**
   * Creates or upgrades tables. Several processes may do so at the same time, and while the store is in use.
   * @returns changes of existing tables: names of migrations, and tables whose retention has changed.
   * @throws PortError `conflict` when another version made the tables; then nothing was changed.
   */
  migrate(): Promise<readonly string[]>
  /**
   * Reports what the store holds now, without reading rows. Repeats, merges and replaced rows leave no hole in its
   * ranges; lost rows do.
   * @param markId a mark that `writeMark` wrote for this instance, or null. Marks can be found for at least a week.
   * @returns null if the store's user lacks the permission for this.
   * @throws PortError `unavailable` also while tables are missing: call `migrate` first.
   */
  findHeldRows(instance: string, markId: string | null): Promise<HeldRows | null>
  /**
   * Deletes rejects, recordings and cached counts past their retention; packed items of recordings by whole UTC days.
   * Does nothing where a server deletes them by its own clock.
   * @param by.isTrusted whether rows that are further in the future than their retention are deleted as well, since
   *   they
   *   would stay for as long as a clock was wrong.
   */
  deleteExpired(by: { readonly nowMs: number; readonly isTrusted: boolean }): Promise<void>
  /**
   * By project: the highest erasure count in its rows (`EventRows.erasures`), for projects that have any. Reads a
   * column of all rows.
   */
  findErasureCounts(): Promise<readonly ErasureCount[]>
  /** Resolves when the mark is durable. */
  writeMark(mark: StoreMark): Promise<void>
}

export interface HeldRows {
  readonly ranges: readonly HeldRange[]
  /** Whether the store has the requested mark, or one that names it as `former`. */
  readonly isMarked: boolean
}

export interface StoreMark {
  /** Id of the log whose events are stored, so that two instances in one database do not see each other's marks. */
  readonly instance: string
  readonly id: string
  /** The previous mark, which the state still has if it crashed before it saved this one; null or '' if none. */
  readonly former: string | null
}
