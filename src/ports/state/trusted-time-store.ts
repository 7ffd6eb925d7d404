// The retention time (core/retention-time.ts), stored across restarts.

import type { TrustedTime } from '#core/retention-time.ts'

/** @throws PortError from every method, like `ManagementStore`. */
export interface TrustedTimeStore {
  /** Null until a worker has read its clock. */
  findTrustedTime(): Promise<TrustedTime | null>
  saveTrustedTime(time: TrustedTime): Promise<void>
}
