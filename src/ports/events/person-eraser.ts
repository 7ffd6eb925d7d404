// Removes the rows of erased persons from the event store. Only rows that were made before their erasure go, whenever it is
// carried out and however often: each says how often persons of its project had been erased (`EventRows.erasures`).

import type { PersonErasure, RemovedRows } from '#core/persons/erasure.ts'
import type { HeldRange } from '#core/processing/held-rows.ts'

export interface CountedRows extends RemovedRows {
  /** The pending rows, by import job. */
  readonly pendingOfJobs: readonly { readonly importJobId: number; readonly count: number }[]
}

/** @throws PortError from every method: repeat the call. */
export interface PersonEraser {
  /**
   * What the store has of each of them now, by id; each event once. `under_way` while rows are being removed, of these or
   * others: call it again.
   */
  countErased(erasures: readonly PersonErasure[]): Promise<ReadonlyMap<number, CountedRows> | 'under_way'>
  /**
   * Looks what is left of them, and begins to remove it; what runs already is left to go on. Call it until it is `done`.
   * @param beforeRemoving awaited with the ranges of rows (`EventStoreUpkeep.findHeldRows`) of which nothing will be left.
   */
  removeErased(
    erasures: readonly PersonErasure[],
    beforeRemoving: (emptied: readonly HeldRange[]) => Promise<void>,
  ): Promise<'done' | 'under_way'>
}
