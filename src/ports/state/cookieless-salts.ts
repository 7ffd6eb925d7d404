// The salts used to hash visitors without cookies: one a day for the whole installation, deleted when the day has
// ended. No log or backup contains one.

import type { DayRange } from '#core/cookieless/visitor-day.ts'

export interface CookielessSalts {
  /**
   * The salt of a day, 16 bytes, the same for every caller.
   * @param day `2026-11-28`.
   * @param fresh becomes the day's salt when it has none: the first caller wins.
   * @throws PortError
   */
  keepSalt(day: string, fresh: Uint8Array): Promise<Uint8Array>
  /**
   * Deletes the salts of all other days, including later ones.
   * @returns the days that had one.
   * @throws PortError, after it deleted what it could.
   */
  deleteSaltsExcept(kept: DayRange): Promise<readonly string[]>
  close(): Promise<void>
}
