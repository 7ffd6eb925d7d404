// The salts with which visitors without cookies are hashed: one a day for the whole installation, which is gone when
// the day is over. Nothing else holds one: no log, no backup.

export interface CookielessSalts {
  /**
   * The salt of a day, 16 bytes, the same for every caller.
   * @param day `2026-11-28`.
   * @param fresh becomes the day's salt when it has none: the first caller wins.
   * @throws PortError
   */
  keepSalt(day: string, fresh: Uint8Array): Promise<Uint8Array>
  /** Deletes the salts of the days before `day`. @throws PortError */
  deleteSaltsBefore(day: string): Promise<void>
  close(): Promise<void>
}
