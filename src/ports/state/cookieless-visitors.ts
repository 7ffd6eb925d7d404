// Cookieless visitors of projects that store their state: what fronts look up, and how the visitors of a day are deleted.
// The worker writes them with its chunks (`chunk-store.ts`).

import type { DayRange } from '#core/cookieless/visitor-day.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'

export interface CookielessVisitors {
  /**
   * How many `$identify` events of a visitor the worker has processed; 0 for a visitor that is unknown, or whose day
   * has ended. As fresh as `SubjectStore.findPerson`. May answer at once or with a promise.
   * @param hash the base hash, 22 characters.
   * @throws (or rejects with) PortError if the state cannot be read.
   */
  countIdentifies(projectId: number, hash: string): MaybePromise<number>
}

/** @throws PortError from every method, like `ManagementStore`. */
export interface CookielessVisitorUpkeep {
  /**
   * Deletes what is known about visitors of all days outside `kept`, including later days, in all projects. @param days
   * further days to keep.
   * @param rowCountMax how many rows of each kind one call deletes at most.
   * @returns how many rows were deleted; 0 when none remains.
   */
  deleteVisitorsExcept(kept: DayRange, days: readonly string[], rowCountMax: number): Promise<number>
}

// The salts used to hash visitors without cookies: one per day for the whole installation, deleted when the day has ended.
// No log or backup contains a salt.

export interface CookielessSalts {
  /**
   * The salt of a day, 16 bytes, the same for every caller.
   * @param day `2026-11-28`.
   * @param fresh becomes the day's salt if the day has none: the first caller wins.
   * @throws PortError
   */
  findOrCreateSalt(day: string, fresh: Uint8Array): Promise<Uint8Array>
  /**
   * Deletes the salts of all days outside `kept`, including later days. @returns the days that had a salt.
   * @throws PortError, after it deleted what it could.
   */
  deleteSaltsExcept(kept: DayRange): Promise<readonly string[]>
  close(): Promise<void>
}
