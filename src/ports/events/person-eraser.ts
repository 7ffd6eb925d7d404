// Removes the rows of erased persons from the event store. Only rows made before the erasure are removed, whenever and
// however often it is carried out: each row says how often persons of its project had been erased
// (`EventRows.erasures`).

import type { PersonErasure, RemovedRows } from '#core/persons/erasure.ts'
import type { HeldRange } from '#core/processing/held-rows.ts'

export interface CountedRows extends RemovedRows {
  /** The pending rows, by import job. */
  readonly pendingOfJobs: readonly { readonly importJobId: number; readonly count: number }[]
}

/** @throws PortError from every method: repeat the call. */
export interface PersonEraser {
  /**
   * The current rows of each of them, by id; each event once. `under_way` while rows are being removed, for these or
   * other erasures: call it again.
   */
  countErased(erasures: readonly PersonErasure[]): Promise<ReadonlyMap<number, CountedRows> | 'under_way'>
  /**
   * Checks which rows remain, and begins to remove them; a removal in progress continues. Call it until it is `done`.
   * @param beforeRemoving awaited with the ranges of rows (`EventStoreUpkeep.findHeldRows`) that will become empty.
   */
  removeErased(
    erasures: readonly PersonErasure[],
    beforeRemoving: (emptied: readonly HeldRange[]) => Promise<void>,
  ): Promise<'done' | 'under_way'>
}
